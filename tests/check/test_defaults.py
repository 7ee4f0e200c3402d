from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blueprint.catalog.crds import defaults
from blueprint.check.defaults import with_defaults

NAMES = st.sampled_from("abc")
SCALARS = st.sampled_from([None, 0, "x", True])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


def with_default(schema: st.SearchStrategy[dict[str, Any]], value: st.SearchStrategy[Any]) -> Any:
    nullable = st.sampled_from([{}, {"nullable": True}])
    default = st.one_of(st.just({}), st.builds(lambda v: {} if v is None else {"default": v}, value))
    return st.builds(lambda *parts: {key: v for part in parts for key, v in part.items()}, schema, default, nullable)


SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    with_default(st.just({"type": "string"}), SCALARS),
    lambda inner: st.one_of(
        with_default(
            st.builds(lambda p: {"properties": p}, st.dictionaries(NAMES, inner, max_size=3)),
            st.dictionaries(NAMES, SCALARS, max_size=2),
        ),
        st.builds(lambda i: {"items": i}, inner),
        st.builds(lambda i: {"additionalProperties": i}, inner),
    ),
    max_leaves=10,
)


def as_the_server_does(value: Any, schema: dict[str, Any]) -> None:
    """defaulting/algorithm.go, line by line; changes `value`."""

    def gives_way(held: Any, below: dict[str, Any]) -> bool:
        return held is None and not below.get("nullable") and below.get("default") is not None

    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name, below in properties.items():
            if below.get("default") is not None and (name not in value or gives_way(value[name], below)):
                value[name] = copy.deepcopy(below["default"])
        for name in value:
            if name in properties:
                as_the_server_does(value[name], properties[name])
            elif below := schema.get("additionalProperties"):
                if gives_way(value[name], below):
                    value[name] = copy.deepcopy(below["default"])
                as_the_server_does(value[name], below)
    elif isinstance(value, list) and (below := schema.get("items")):
        for index, held in enumerate(value):
            if gives_way(held, below):
                value[index] = copy.deepcopy(below["default"])
            as_the_server_does(value[index], below)


@given(SCHEMAS, VALUES)
def test_defaults_are_those_of_the_server(schema: dict[str, Any], value: Any) -> None:
    tree = defaults(schema) or {}
    before = copy.deepcopy((tree, value))
    filled = with_defaults(tree, value)
    expected = copy.deepcopy(value)
    as_the_server_does(expected, schema)
    assert filled == expected
    assert (tree, value) == before  # nothing that was given is changed
    assert with_defaults(tree, filled) == filled


def test_what_needs_no_default_is_not_copied() -> None:
    tree = {"p": {"a": {"=": 1}, "b": {"p": {"c": {"=": 2}}}}}
    value = {"a": 0, "b": {"c": 0}, "d": [1]}
    assert with_defaults(tree, value) is value
    changed = with_defaults(tree, {"b": {}, "d": value["d"]})
    assert changed == {"a": 1, "b": {"c": 2}, "d": [1]}
    assert changed["d"] is value["d"]


def test_a_default_is_filled_in_inside_a_default() -> None:
    assert with_defaults({"p": {"a": {"=": {}, "p": {"b": {"=": 1}}}}}, {}) == {"a": {"b": 1}}
