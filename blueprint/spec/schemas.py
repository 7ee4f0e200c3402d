"""JSON Schemas of the specs, for editors: one for each kind, and one that tells the kinds apart."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from blueprint.spec.base import API_VERSION, Model
from blueprint.spec.load import KINDS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
#: The schema for any spec, which an editor can use for all files of the spec folders.
ANY: Final = "spec"

_SNAKE: Final = re.compile(r"`([a-z]+(?:_[a-z]+)+)`")


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas by name: `cluster`, `inferenceservice` … in lower case, and `spec` for any of them."""
    kinds = {kind: _schema(model) for kind, model in KINDS.items()}
    single = {kind.lower(): {"$schema": DIALECT, **schema} for kind, schema in kinds.items()}
    return {**single, ANY: _any(kinds)}


def files() -> dict[str, bytes]:
    """The schemas as files: their names and what is in them, the same on every machine."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return {f"{name}.schema.json": orjson.dumps(schema, option=options) for name, schema in schemas().items()}


def _schema(model: type[Model]) -> dict[str, Any]:
    schema: dict[str, Any] = _tidy(model.model_json_schema(by_alias=True, mode="validation"))
    # A model made in Python knows its version; a document must say that it is a spec.
    schema["required"] = ["apiVersion", *schema["required"]]
    return schema


def _any(kinds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Choose by `kind`, so that an editor complains of the fields of that kind and not of all kinds."""
    definitions: dict[str, Any] = {}
    for kind, schema in kinds.items():
        # Two kinds may have a part of the same name; each keeps its own.
        inner = {name: _prefixed(part, kind) for name, part in schema["$defs"].items()}
        definitions |= {f"{kind}.{name}": part for name, part in inner.items()}
        definitions[kind] = _prefixed({key: part for key, part in schema.items() if key != "$defs"}, kind)
    return {
        "$schema": DIALECT,
        "title": "Spec",
        "description": "Any spec of a platform.",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {"apiVersion": {"const": API_VERSION}, "kind": {"enum": sorted(kinds)}},
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{kind}"},
            }
            for kind in sorted(kinds)
        ],
        "$defs": definitions,
    }


def _prefixed(node: Any, kind: str) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(node, dict):
        return {
            key: value.replace("#/$defs/", f"#/$defs/{kind}.") if key == "$ref" else _prefixed(value, kind)
            for key, value in node.items()
        }
    return [_prefixed(item, kind) for item in node] if isinstance(node, list) else node


def _tidy(node: Any) -> Any:  # noqa: ANN401 - any JSON
    """Say names as people write them, and drop titles that only repeat a field's name."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {key: _tidy(value) for key, value in node.items() if key != "title" or not isinstance(value, str)}
    if "$ref" in tidy:
        # The default of a whole mapping: pydantic writes its durations in ISO 8601, and each field says its own.
        tidy.pop("default", None)
    if "patternProperties" in tidy:
        tidy["additionalProperties"] = False
    if isinstance(tidy.get("description"), str):
        tidy["description"] = _SNAKE.sub(lambda match: f"`{_camel(match[1])}`", tidy["description"])
    return tidy


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
