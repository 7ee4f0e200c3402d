"""Fill in the defaults of a structural schema, as an API server does before it validates.

k8s.io/apiextensions-apiserver@v0.35.4 pkg/apiserver/schema/defaulting/algorithm.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blueprint.catalog.crds import Json


def with_defaults(tree: Mapping[str, Any], value: Json) -> Json:
    """`value` with the defaults of `tree` (the form of `catalog.crds.defaults`).

    What changes is copied, what does not is shared with `value` and with the pack: treat the result as read-only.
    """
    if isinstance(value, dict):
        out = _properties(tree["p"], value) if "p" in tree else value
        return _values(tree["v"], out, tree.get("p", ())) if "v" in tree else out
    if isinstance(value, list) and "i" in tree:
        return _items(tree["i"], value)
    return value


def _stands(tree: Mapping[str, Any], value: Json) -> bool:
    """Whether a value keeps its place: a null that the field does not allow gives way to the default."""
    return value is not None or "n" in tree or "=" not in tree


def _properties(trees: Mapping[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    out = value
    for name, tree in trees.items():
        if name in value and _stands(tree, value[name]):
            old = value[name]
        elif "=" in tree:
            old = tree["="]
        else:
            continue
        new = with_defaults(tree, old)
        if name not in value or new is not value[name]:
            if out is value:
                out = value.copy()
            out[name] = new
    return out


def _values(tree: Mapping[str, Any], value: dict[str, Any], named: Mapping[str, Any] | tuple[()]) -> dict[str, Any]:
    out = value
    for name, old in value.items():
        if name in named:
            continue
        new = with_defaults(tree, old if _stands(tree, old) else tree["="])
        if new is not old:
            if out is value:
                out = value.copy()
            out[name] = new
    return out


def _items(tree: Mapping[str, Any], value: list[Any]) -> list[Any]:
    out = value
    for index, old in enumerate(value):
        new = with_defaults(tree, old if _stands(tree, old) else tree["="])
        if new is not old:
            if out is value:
                out = value.copy()
            out[index] = new
    return out
