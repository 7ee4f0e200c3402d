"""Molds: an object from a mold is the object that rendering in full gives, and what does not fit a mold is refused."""

from __future__ import annotations

from enum import StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.render.molds import MARKS, Molds
from blueprint.render.templates import SUFFIX, TemplateProblem, Templates
from tests.render.strings import NASTY, nasty_text

TEXT = """\
kind: Thing
metadata: {name: {{ name }}, labels: {{ labels }}}
{% if many %}
spec:
  items:
  {% for one in many %}
    - {{ one }}
    - at: {{ loop.index }}
      {{ name }}: same
  {% endfor %}
{% endif %}
"""


class Colour(StrEnum):
    RED = "red"


def _templates(folder, text, name="Thing"):
    (folder / f"{name}{SUFFIX}").write_text(text, encoding="utf-8")
    return Templates([folder], shipped=folder)


scalars = st.one_of(nasty_text, st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False))
values = st.recursive(
    st.one_of(scalars, st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(nasty_text, inner, max_size=3)),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(NASTY), st.dictionaries(nasty_text, values, max_size=3), st.lists(values, max_size=2)
        ),
        max_size=4,
    )
)
def test_every_object_is_the_one_that_is_rendered_in_full(tmp_path_factory, objects):
    folder = tmp_path_factory.mktemp("templates")
    molded = _templates(folder, TEXT)
    for name, labels, many in objects:
        given_values = {"name": name, "labels": labels, "many": many}
        try:
            full = _templates(folder, TEXT).render("Thing", **given_values)
        except TemplateProblem as problem:
            with pytest.raises(TemplateProblem) as other:
                molded.render("Thing", **given_values)
            assert other.value.finding == problem.finding
        else:
            assert repr(molded.render("Thing", **given_values)) == repr(full)


def test_a_mold_is_used_the_second_time(tmp_path, monkeypatch):
    templates = _templates(tmp_path, TEXT)
    templates.render("Thing", name="a", labels={}, many=[1])
    monkeypatch.setattr("blueprint.render.templates.yaml_rs.loads", None)
    assert templates.render("Thing", name="b", labels={"x": None}, many=[(2, 3)]) == {
        "kind": "Thing",
        "metadata": {"name": "b", "labels": {}},
        "spec": {"items": [[2, 3], {"at": 1, "b": "same"}]},
    }


@pytest.mark.parametrize(
    "text",
    [
        "{% set text %}{{ v }}{% endset %}\nk: {{ text }}\nsize: {{ text | length }}\n",
        "{% filter upper %}k: {{ v }}{% endfilter %}\n",
        "{% macro m(x) %}{{ x }}{% endmacro %}\nk: {{ m(v) }}\n",
        "{% block b %}k: {{ v }}{% endblock %}\n\nsize: {{ self.b() | length }}\n",
        "k: [{% for x in [[v]] recursive %}{{ (loop(x) if x is not string else x) | length }}{% endfor %}]\n",
        "k: # {{ v }}\n",
    ],
)
def test_a_template_that_looks_at_its_own_text_is_rendered_in_full(tmp_path, text):
    templates = _templates(tmp_path, text)
    for value in ("ab", "cde", "ab"):
        assert templates.render("Thing", v=value) == _templates(tmp_path, text).render("Thing", v=value)


def test_an_included_template_that_captures_counts(tmp_path):
    _templates(tmp_path, "{% filter upper %}{{ v }}{% endfilter %}", "Part")
    templates = _templates(tmp_path, "v: {{ v }}\n{% if part %}k: {% include 'Part.yaml.j2' %}{% endif %}\n")
    assert templates.render("Thing", v="a", part=False) == {"v": "a"}
    assert templates.render("Thing", v="a", part=True) == {"k": "A", "v": "a"}
    assert templates.render("Thing", v="b", part=True) == {"k": "B", "v": "b"}


@pytest.mark.parametrize(
    ("value", "code"),
    [(float("nan"), "TPL106"), (2**64, "TPL106"), ("\ud800", "TPL106"), (object(), "TPL106"), ({1: 2}, "TPL106")],
)
def test_what_cannot_be_written_is_told_at_its_line_even_with_a_mold(tmp_path, value, code):
    templates = _templates(tmp_path, "k: 1\nv: {{ v }}\n")
    templates.render("Thing", v="fine")
    with pytest.raises(TemplateProblem) as problem:
        templates.render("Thing", v=value)
    assert (problem.value.finding.code, problem.value.finding.source.line) == (code, 2)


def test_two_keys_that_come_out_equal_are_refused_even_with_a_mold(tmp_path):
    templates = _templates(tmp_path, "{{ a }}: 1\n{{ b }}: 2\n")
    assert templates.render("Thing", a="x", b="y") == {"x": 1, "y": 2}
    with pytest.raises(TemplateProblem):
        templates.render("Thing", a="x", b="x")


def test_special_kinds_of_text_come_out_as_text(tmp_path):
    templates = _templates(tmp_path, "k: {{ v }}\n")
    for value in ("blue", Colour.RED):
        assert type(templates.render("Thing", v=value)["k"]) is str


def test_more_values_than_marks(tmp_path):
    templates = _templates(tmp_path, "k:\n{% for one in many %}\n  - {{ one }}\n{% endfor %}\n")
    many = list(range(len(MARKS) + 1))
    assert templates.render("Thing", many=many) == templates.render("Thing", many=many) == {"k": many}


def test_objects_of_one_mold_share_nothing(tmp_path):
    templates = _templates(tmp_path, "k: {a: [1]}\nv: {{ v }}\n")
    labels = {"x": {"y": 1}}
    templates.render("Thing", v=labels)
    one, other = (templates.render("Thing", v=labels) for _ in range(2))
    one["k"]["a"].append(2)
    one["v"]["x"]["y"] = 3
    assert other == {"k": {"a": [1]}, "v": {"x": {"y": 1}}}


def test_a_mold_that_gives_something_else_is_not_kept():
    molds = Molds()
    molds.learn(f"k: {MARKS[0]}\n", ["a"], {"k": "b"})
    assert molds.cast(f"k: {MARKS[0]}\n", ["a"]) is None
