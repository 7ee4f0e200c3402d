"""Canonical quantities: an object says `1`, `100m` and `1Gi` wherever its author said `1000m`, 0.1 and `1024Mi`.

Kubernetes writes quantities back in this form, and Argo CD would show any other as a difference in every object that
embeds a pod without being one (Rollout, PyTorchJob). `blueprint/catalog/data/quantities.yaml` says where quantities
stand; no schema is needed. What cannot be read as a quantity is left for the checks.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import yaml_rs

from blueprint.quantity import QuantityError, canonical_quantity

Ends = dict[str, frozenset[str]]

_NESTED = (dict, list)  # asked for every value: a union would be made anew each time


class _Fields(NamedTuple):
    """The ends of paths of a kind, parent to keys: maps whose values are quantities, and values that are."""

    maps: Ends
    values: Ends


@cache
def _table() -> dict[str, Any]:
    text = resources.files("blueprint.catalog").joinpath("data/quantities.yaml").read_text(encoding="utf-8")
    table: Any = yaml_rs.loads(text, parse_datetime=False)
    return dict(table)


@cache
def _fields(kind: str) -> _Fields:
    def ends(rows: list[dict[str, Any]]) -> Ends:
        found: dict[str, set[str]] = {}
        for row in rows:
            if kind in row.get("kinds", [kind]):
                parent, key = row["path"].split(".")
                found.setdefault(parent, set()).add(key)
        return {parent: frozenset(keys) for parent, keys in found.items()}

    table = _table()
    return _Fields(ends(table["maps"]), ends(table["values"]))


def canonical(body: dict[str, Any]) -> dict[str, Any]:
    """The object with its quantities in canonical form; the input is not changed, equal parts are shared.

    Metadata, status and the kinds that hold text or schemas stay as they are.
    """
    kind = body.get("kind", "")
    if not isinstance(kind, str) or kind in _table()["untouched"]:
        return body
    fields = _fields(kind)
    return {
        key: child if key in ("metadata", "status") else _walk(child, "", key, fields) for key, child in body.items()
    }


def _walk(value: Any, parent: str, key: str, fields: _Fields) -> Any:  # noqa: ANN401 - any JSON value in and out
    if isinstance(value, list):
        items = [_walk(item, parent, key, fields) if isinstance(item, _NESTED) else item for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    all_of_them = key in fields.maps.get(parent, ())
    some = fields.values.get(key, ())
    changed = {}
    for name, child in value.items():
        if all_of_them or name in some:
            new = _quantity(child)
        elif isinstance(child, _NESTED):
            new = _walk(child, key, name, fields)
        else:
            continue
        if new is not child:
            changed[name] = new
    return {**value, **changed} if changed else value


def _quantity(value: Any) -> Any:  # noqa: ANN401
    try:
        text = canonical_quantity(value)
    except QuantityError:
        return value
    return value if text == value else text
