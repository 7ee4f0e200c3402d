"""The diff as mathematics: what it says leads from one value to the other, and order means what the API says."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.catalog.schemas import ListMap
from blueprint.review.diff import MISSING, Edit, Item, Lists, Member, apply, diff, normal, same

LISTS = Lists(
    {
        ("spec", "items"): ListMap(("name",), {}),
        ("spec", "items", "[]", "ports"): ListMap(("port", "protocol"), {"protocol": "TCP"}),
        ("spec", "groups", "{}", "rows"): ListMap(("name",), {}),
    },
    [("spec", "words")],
)

names = st.sampled_from(["a", "b", "c", "name"])
scalars = st.one_of(st.integers(-3, 3), st.booleans(), st.sampled_from("abc"), st.none())
plain = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner)), max_leaves=6
)
port = st.fixed_dictionaries(
    {"port": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "x": scalars}
)
row = st.fixed_dictionaries(
    {"name": st.sampled_from("pqrs")}, optional={"value": plain, "ports": st.lists(port, max_size=3)}
)
group = st.fixed_dictionaries({"rows": st.lists(row, max_size=3)})
bodies = st.fixed_dictionaries(
    {},
    optional={
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "items": st.lists(row, max_size=4),
                "words": st.lists(st.sampled_from("xyz"), max_size=4),
                "groups": st.dictionaries(st.sampled_from("gh"), group),
                "free": plain,
            },
        )
    },
)


@settings(deadline=None)
@given(bodies, bodies)
def test_edits_lead_from_one_to_the_other(old: Any, new: Any) -> None:
    edits = diff(old, new, LISTS).edits
    assert same(normal(apply(edits, old, LISTS), LISTS), normal(new, LISTS))


@settings(deadline=None)
@given(plain, plain)
def test_without_lists_they_lead_there_exactly(old: Any, new: Any) -> None:
    assert same(apply(diff(old, new).edits, old), new)


@settings(deadline=None)
@given(bodies)
def test_the_same_is_no_difference(body: Any) -> None:
    found = diff(body, body, LISTS)
    assert found.edits == () and found.reordered == ()


@settings(deadline=None)
@given(bodies, st.randoms(use_true_random=False))
def test_order_of_items_and_members_means_nothing(body: Any, random: Any) -> None:
    spec = body.get("spec", {})
    shuffled = {**body, "spec": {**spec}} if "spec" in body else dict(body)
    for field in ("items", "words"):
        if field in spec:
            shuffled["spec"][field] = random.sample(spec[field], len(spec[field]))
    keyed = {i["name"] for i in spec.get("items", [])}
    if len(keyed) == len(spec.get("items", [])) and len(set(spec.get("words", []))) == len(spec.get("words", [])):
        assert diff(body, shuffled, LISTS).edits == ()


@settings(deadline=None)
@given(bodies, bodies)
def test_no_edit_says_the_same_twice(old: Any, new: Any) -> None:
    edits = diff(old, new, LISTS).edits
    assert len({repr(edit.steps) for edit in edits}) == len(edits)
    assert all(not same(edit.before, edit.after) for edit in edits)


def test_items_are_named_by_their_keys() -> None:
    old = {"spec": {"items": [{"name": "p", "value": 1}, {"name": "q"}]}}
    new = {"spec": {"items": [{"name": "q", "value": 2}, {"name": "p", "value": 1}]}}
    found = diff(old, new, LISTS)
    assert found.edits == (Edit(("spec", "items", Item((("name", "q"),)), "value"), MISSING, 2),)
    assert found.reordered == (("spec", "items"),)


def test_a_key_that_is_left_out_is_its_default() -> None:
    old = {"spec": {"items": [{"name": "p", "ports": [{"port": 1}]}]}}
    new = {"spec": {"items": [{"name": "p", "ports": [{"port": 1, "protocol": "TCP"}]}]}}
    (edit,) = diff(old, new, LISTS).edits
    assert edit.steps[-1] == "protocol" and edit.before is MISSING


def test_repeated_keys_make_it_a_plain_list() -> None:
    old = {"spec": {"items": [{"name": "p", "value": 1}, {"name": "p", "value": 2}]}}
    new = {"spec": {"items": [{"name": "p", "value": 2}, {"name": "p", "value": 1}]}}
    assert [edit.steps for edit in diff(old, new, LISTS).edits] == [("spec", "items")]  # as a whole: only its order
    new["spec"]["items"][0]["value"] = 3
    assert [edit.steps for edit in diff(old, new, LISTS).edits] == [("spec", "items")]  # one of them only moved
    new["spec"]["items"][1]["value"] = 4
    assert [edit.steps[2] for edit in diff(old, new, LISTS).edits] == [0, 1]


def test_members_of_a_set_come_and_go() -> None:
    edits = diff({"spec": {"words": ["x", "y"]}}, {"spec": {"words": ["y", "z"]}}, LISTS).edits
    assert [(edit.steps[-1], edit.after is MISSING) for edit in edits] == [(Member("x"), True), (Member("z"), False)]


def test_true_is_not_one() -> None:
    assert diff({"a": True}, {"a": 1}).edits
    assert not diff({"a": 1}, {"a": 1.0}).edits
