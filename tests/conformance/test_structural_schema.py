"""Values and rules that no real CRD of the pack has, judged by us and by the server: formats, null, numbers, CEL."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import Validator
from blueprint.conform.controlplane import ControlPlane
from blueprint.finding import Source
from blueprint.objects import Manifest
from tests.check.test_cel_library import ERRORS, TRUE
from tests.check.test_formats import TABLE

_SPELLING = {"datetime": "date-time", "k8sshortname": "k8s-short-name", "k8slongname": "k8s-long-name"}
FORMATS = {name: (good, bad) for name, good, bad in TABLE if name not in ("rfc3339", "base64")}

FIELDS: dict[str, dict[str, Any]] = {
    "above": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
    "below": {"type": "integer", "maximum": 5, "exclusiveMaximum": True},
    "threes": {"type": "integer", "multipleOf": 3},
    "choice": {"type": "string", "nullable": True, "enum": ["a", None]},
    "short": {"type": "string", "nullable": True, "maxLength": 2},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "mixed": {"x-kubernetes-int-or-string": True},
    "percent": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%?$", "maximum": 10},
    "object": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    "closed": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
    "open": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}},
    },
    "map": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 2},
    "nulls": {"type": "object", "additionalProperties": {"type": "integer", "nullable": True}},
    "list": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "words": {"type": "string", "pattern": "^\\w+\\s\\d$"},
    "filled": {
        "type": "object",
        "default": {"y": "a"},
        "minProperties": 1,
        "properties": {"x": {"type": "integer", "default": 3}, "y": {"type": "string"}},
    },
    "one": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "number": {"type": "number"},
    "small": {"type": "integer", "format": "int32"},
    "flag": {"type": "boolean"},
}
POD = {"apiVersion": "v1", "kind": "Pod"}
VALUES: list[Any] = [
    *(0, -1, 0.1, 5, 4, 3, 6, 1.0, 2.5, 2**40, 2**63, -(2**63), 1e300, 11, True, None),
    *("", "a", "ab", "abc", "aé", "5", "50%", "x%", "a 1", "é 1"),
    *([], [None], ["a"], ["a", "a"], ["a", "b"]),
    *({}, {"x": 1}, {"x": None}, {"y": None}, {"a": None}, {"a": "x"}, {"a": "x", "b": "y"}, {"a": 1, "b": 2, "c": 3}),
    *({"a": {"b": 1}}, {"a": {"c": 1}}, POD, POD | {"metadata": {"name": "Bad_Name"}}, POD | {"metadata": None}),
    *(POD | {"metadata": {"labels": {"a": 1}}}, POD | {"metadata": {"zz": 1}}, POD | {"foo": 1}, {"kind": "Pod"}),
    {"apiVersion": "", "kind": ""},
]


def crd(kind: str, properties: dict[str, Any]) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.quirks.example.com"},
        "spec": {
            "group": "quirks.example.com",
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def body(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "quirks.example.com/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def manifest(value: dict[str, Any]) -> Manifest:
    return Manifest(value, Source("quirk.yaml", 1, 1))


def test_values_get_the_verdict_of_the_server(control_plane: ControlPlane) -> None:
    formats = {name: {"type": "string", "format": _SPELLING.get(name, name)} for name in FORMATS}
    definition = crd("Quirk", FIELDS | formats)
    control_plane.load_crds([definition])
    validator = Validator(SchemaPack.shipped().with_crds([manifest(definition)]), rules=())
    cases = [(field, value) for field in FIELDS for value in VALUES]
    cases += [(name, text) for name, (good, bad) in FORMATS.items() for text in [*good, *bad]]
    differ = []
    for field, value in cases:
        case = body("Quirk", {field: value})
        refused = any(finding.fails for finding in validator.create(manifest(case)))
        answer = control_plane.client.create(case, dry_run=True)
        if refused == answer.ok:
            differ.append((field, value, "refused by us" if refused else answer.message))
    assert differ == []


def test_a_list_for_a_string_with_a_format_is_the_one_thing_that_we_alone_refuse(control_plane: ControlPlane) -> None:
    """The server looks at the type only when there is no format; kube-openapi pkg/validation/validate/type.go."""
    definition = crd("Laxity", {"at": {"type": "string", "format": "date-time"}})
    control_plane.load_crds([definition])
    case = body("Laxity", {"at": ["anything"]})
    validator = Validator(SchemaPack.shipped().with_crds([manifest(definition)]), rules=())
    assert [finding.code for finding in validator.create(manifest(case))] == ["SCH106"]
    assert control_plane.client.create(case, dry_run=True).ok


@pytest.mark.parametrize(("kind", "rules", "accepted"), [("Truth", TRUE, True), ("Fault", ERRORS, False)])
def test_library_functions_are_those_of_the_server(
    control_plane: ControlPlane, kind: str, rules: list[str], accepted: bool
) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "maxItems": 5}
    shape = {"type": "object", "properties": {"list": numbers, "none": numbers}}
    fields = {
        f"f{index}": shape | {"x-kubernetes-validations": [{"rule": f"dyn({rule}) != null"}]}
        if not accepted
        else shape | {"x-kubernetes-validations": [{"rule": rule}]}
        for index, rule in enumerate(rules)
    }
    definition = crd(kind, fields)
    control_plane.load_crds([definition])
    validator = Validator(SchemaPack.shipped().with_crds([manifest(definition)]), rules=())
    for field in fields:
        case = body(kind, {field: {"list": [3, 1], "none": []}})
        answer = control_plane.client.create(case, dry_run=True)
        codes = [finding.code for finding in validator.create(manifest(case))]
        assert answer.ok is accepted, (fields[field], answer.message)
        assert codes == ([] if accepted else ["CEL102"]), (fields[field], codes)
    assert validator.cel.skipped == {}
