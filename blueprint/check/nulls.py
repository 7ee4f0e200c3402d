"""What an API server makes of `null` before it validates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson

from blueprint.catalog.crds import Json, Schema
from blueprint.catalog.schemas import Kind
from blueprint.objects import Manifest

_ZERO: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


def without_nulls(kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
    """A copy in which each `null` has become what the server reads.

    Built-in kinds and `metadata` are decoded into Go structs: null is an absent field, and the zero value inside a list
    or a map. In a CRD a null goes when its field allows none and has no default
    (k8s.io/apiextensions-apiserver@v0.35.4 pkg/apiserver/schema/defaulting/prunenulls.go); inside a list it stays.
    """
    if kind.core:
        out: dict[str, Any] = _decoded(kind, kind.schema, body)
        return out
    pruned: dict[str, Any] = _pruned(kind, kind.schema, kind.defaults, body)
    meta = body.get("metadata")
    if isinstance(meta, dict):
        pruned["metadata"] = _decoded(kind, kind.schema["properties"]["metadata"], meta)
    return pruned


def decoded(manifest: Manifest, kind: Kind) -> Manifest:
    """The object without its nulls, itself where it has none; asked for every object, so the common answer is fast."""
    try:
        if b"null" not in orjson.dumps(manifest.body):
            return manifest
    except TypeError:
        pass  # an integer beyond 64 bits, or what no YAML reader gives
    return replace(manifest, body=without_nulls(kind, manifest.body)) if has_null(manifest.body) else manifest


def has_null(value: Json) -> bool:
    """Whether a null stands anywhere."""
    if value is None:
        return True
    if isinstance(value, dict):
        return any(has_null(child) for child in value.values())
    return isinstance(value, list) and any(has_null(child) for child in value)


def _below(kind: Kind, schema: Schema, value: dict[str, Any]) -> Iterator[tuple[str, Any, Schema | None, bool]]:
    """Each entry with its schema and whether it is an entry of a free map."""
    node = kind.resolve(schema)
    properties, values = node.get("properties", {}), node.get("additionalProperties")
    for name, child in value.items():
        if name in properties:
            yield name, child, kind.resolve(properties[name]), False
        else:
            yield name, child, kind.resolve(values) if isinstance(values, dict) else None, True


def _decoded(kind: Kind, schema: Schema, value: Json) -> Json:
    if isinstance(value, dict):
        out = {}
        for name, child, below, free in _below(kind, schema, value):
            if child is None and below and free:
                out[name] = _zero(below)
            elif child is not None or below is None:
                out[name] = child if below is None else _decoded(kind, below, child)
        return out
    items = kind.resolve(schema).get("items")
    if isinstance(value, list) and isinstance(items, dict):
        below = kind.resolve(items)
        return [_zero(below) if child is None else _decoded(kind, below, child) for child in value]
    return value


def _zero(schema: Schema) -> Json:
    """Go's zero value, as JSON."""
    kinds = schema.get("type")
    first = kinds[0] if isinstance(kinds, list) else kinds
    if "number" in (kinds or ()):
        return 0  # a Quantity
    return {} if first == "object" else [] if first == "array" else _ZERO.get(str(first))


def _pruned(kind: Kind, schema: Schema, defaults: Json, value: Json) -> Json:
    if isinstance(value, dict):
        out = {}
        for name, child, below, _ in _below(kind, schema, value):
            tree = defaults.get("p", {}).get(name) or defaults.get("v") or {}
            if child is None and below is not None and "=" not in tree and not _nullable(below):
                continue
            out[name] = child if below is None else _pruned(kind, below, tree, child)
        return out
    items = kind.resolve(schema).get("items")
    if isinstance(value, list) and isinstance(items, dict):
        return [_pruned(kind, items, defaults.get("i", {}), child) for child in value]
    return value


def _nullable(schema: Schema) -> bool:
    """Whether null is a value here; a field without any type takes it."""
    return "type" not in schema or "null" in schema["type"]
