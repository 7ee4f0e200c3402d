from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blueprint.catalog.schemas import ListMap, SchemaPack
from blueprint.check.lists import Lists
from tests.check.objects import CLUSTER_QUEUE, changed, create

ITEMS = st.lists(
    st.dictionaries(
        st.sampled_from(["port", "protocol", "x"]), st.sampled_from([1, "1", "TCP", True, 1.5]), max_size=3
    ),
    max_size=5,
)


@given(ITEMS)
def test_repeats_are_those_of_a_plain_comparison(items: list[dict[str, Any]]) -> None:
    tree = Lists(below={"ports": Lists(unique=ListMap(("port", "protocol"), {"protocol": "TCP"}))})

    def key(item: dict[str, Any]) -> tuple[Any, ...]:
        held = {"protocol": "TCP"} | item
        return tuple((name, type(held.get(name)), held.get(name)) for name in ("port", "protocol"))

    keys = [key(item) for item in items]
    expected = [("ports", index) for index in range(len(items)) if keys[index] in keys[:index]]
    assert [path for path, _ in tree.repeats({"ports": items})] == expected


@given(st.lists(st.sampled_from(["a", 1, True, 1.0, {"a": 1}, {"b": [1]}, None]), max_size=5))
def test_sets_compare_whole_items(items: list[Any]) -> None:
    tree = Lists(below={"s": Lists(unique=ListMap((), {}))})
    kept: list[Any] = []
    for item in items:
        if not any(type(item) is type(other) and item == other for other in kept):
            kept.append(item)
    assert len(items) - len(list(tree.repeats({"s": items}))) == len(kept)


def test_lists_inside_free_maps_and_items_are_found() -> None:
    tree = Lists(below={"{}": Lists(below={"[]": Lists(below={"a": Lists(unique=ListMap(("k",), {}))})})})
    value = {"any": [{"a": [{"k": 1}]}, {"a": [{"k": 1}, {"k": 2}, {"k": 1}]}]}
    assert list(tree.repeats(value)) == [(("any", 1, "a", 2), {"k": 1})]


def test_items_without_a_key_are_alike() -> None:
    tree = Lists(below={"a": Lists(unique=ListMap(("k",), {}))})
    assert list(tree.repeats({"a": [{}, {"k": 1}, {"x": 2}]})) == [(("a", 2), {})]


def test_metadata_is_left_to_the_server() -> None:
    pod = SchemaPack.shipped().kind("v1", "Pod")
    assert pod is not None
    assert "metadata" not in Lists.of(pod).below


def test_the_words_name_the_keys() -> None:
    flavor = CLUSTER_QUEUE["spec"]["resourceGroups"][0]["flavors"][0]
    (found,) = create(changed(CLUSTER_QUEUE, "spec", "resourceGroups", 0, "flavors", [flavor, flavor]))
    assert (found.code, found.path) == ("SCH109", "spec.resourceGroups[0].flavors[1]")
    assert "name 'h100'" in found.message
