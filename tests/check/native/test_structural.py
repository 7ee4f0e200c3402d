"""Schemas of CustomResourceDefinitions; the same kinds of faults go to a real server in tests/conformance/foreign."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.check.native.structural import faults

TEXT = {"type": "string"}


def fields(**named: Any) -> dict[str, Any]:
    return {"type": "object", "properties": named}


def said(part: dict[str, Any], *, status: bool = False, root: bool = False) -> list[tuple[str, str]]:
    schema = part if root else fields(spec=part)
    return [
        (fault.path.removeprefix("at.properties.spec"), fault.message) for fault in faults(schema, "at", status=status)
    ]


@pytest.mark.parametrize(
    ("part", "path", "words"),
    [
        ({"properties": {"a": TEXT}}, "", "a field needs a type"),
        (fields(a={"type": "int"}), ".properties.a.type", "type 'int' is not one of"),
        (fields(a={"type": "array"}), ".properties.a", "needs items"),
        (fields(a={"type": "array", "items": [TEXT]}), ".properties.a.items", "not a list"),
        (fields(a={"type": "array", "items": {}}), ".properties.a.items", "what an array holds needs a type"),
        ({**fields(a=TEXT), "additionalProperties": TEXT}, ".additionalProperties", "exclude each other"),
        (fields(a={"$ref": "#/b", "type": "string"}), ".properties.a.$ref", "not supported"),
        (fields(a={"type": "integer", "default": "3"}), ".properties.a.default", "no integer"),
        (fields(a={"type": "boolean", "default": 1}), ".properties.a.default", "no boolean"),
        ({**fields(a=TEXT), "anyOf": [{"type": "object"}]}, ".anyOf[0].type", "may not stand inside"),
        ({**fields(a=TEXT), "not": {"properties": {"metadata": {}}}}, ".not.properties.metadata", "about metadata"),
        (
            fields(a={"type": "array", "items": fields(n=TEXT), "x-kubernetes-list-type": "map"}),
            ".properties.a",
            "needs x-kubernetes-list-map-keys",
        ),
        (
            fields(a={"type": "array", "items": fields(n=TEXT), "x-kubernetes-list-type": "set"}),
            ".properties.a.items",
            "must be atomic",
        ),
    ],
)
def test_a_fault_is_told_at_its_place(part: dict[str, Any], path: str, words: str) -> None:
    ((where, message),) = said(part)
    assert where == path
    assert words in message


@pytest.mark.parametrize(
    "part",
    [
        fields(a=TEXT),
        fields(a={"x-kubernetes-preserve-unknown-fields": True}),
        fields(a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        fields(a={"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]}),
        {"type": "object", "additionalProperties": True, "properties": {"a": TEXT}},
        fields(a={"type": "integer", "default": 3.0}, b={"type": "number", "default": 3}),
        {**fields(a=TEXT), "oneOf": [{"required": ["a"]}, {"properties": {"b": {"minLength": 1}}}]},
    ],
)
def test_nothing_is_said_of_what_the_server_takes(part: dict[str, Any]) -> None:
    assert said(part) == []


def test_the_root_is_an_object_and_its_conditions_name_its_fields() -> None:
    assert said({"type": "array", "items": TEXT}, root=True) == [("at.type", "the root must be an object, not array")]
    condition = {**fields(spec=TEXT), "oneOf": [{"properties": {"b": {"minLength": 1}}}]}
    assert said(condition, root=True)[0][0] == "at.oneOf[0].properties.b"
    assert said(condition, root=True, status=True)[0][1].startswith("oneOf may not stand at the root")
    assert said(fields(metadata=fields(name=TEXT, labels={"type": "object"})), root=True)[0][0].endswith("labels")
