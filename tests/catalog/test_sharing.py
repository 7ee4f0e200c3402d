from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blueprint.catalog.sharing import children, rebuilt, share

LEAF = st.sampled_from([{"type": "string"}, {"type": "integer", "minimum": 0}, {"enum": ["a" * 200]}, {}])
NAMES = st.sampled_from(["a", "b", "items", "properties", "x/y", "p%q", "t~u", "h#i"])


def branches(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.builds(lambda p: {"type": "object", "properties": p}, st.dictionaries(NAMES, inner, max_size=4)),
        st.builds(lambda i: {"type": "array", "items": i}, inner),
        st.builds(lambda i: {"type": "object", "additionalProperties": i}, inner),
        st.builds(lambda a, n: {"anyOf": a, "not": n}, st.lists(inner, max_size=3), inner),
    )


SCHEMAS = st.recursive(LEAF, branches, max_leaves=25)


def expanded(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        for written, meant in (("%23", "#"), ("%25", "%"), ("~1", "/"), ("~0", "~")):
            name = name.replace(written, meant)
        return expanded(defs[name], defs)
    plain = {word: value for word, value in schema.items() if word != "$defs"}
    return rebuilt(plain, [(w, n, expanded(c, defs)) for w, n, c in children(plain)])


@given(SCHEMAS)
def test_sharing_changes_nothing_but_the_place(schema: dict[str, Any]) -> None:
    shared = share(schema)
    assert expanded(shared, shared.get("$defs", {})) == schema


def test_what_is_said_twice_is_said_once() -> None:
    big = {"type": "object", "properties": {f"field{i}": {"type": "string"} for i in range(20)}}
    shared = share({"type": "object", "properties": {"one": big, "two": big}})
    assert shared["properties"]["one"] == shared["properties"]["two"] == {"$ref": "#/$defs/one"}
    assert shared["$defs"] == {"one": big}


def test_small_repetition_stays_in_place() -> None:
    small = {"type": "string"}
    schema = {"type": "object", "properties": {"one": small, "two": small}}
    assert share(schema) == schema
