from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from blueprint.catalog import crds
from blueprint.catalog.crds import defaults, records, unknown_only

META = {"type": "object", "additionalProperties": False, "properties": {"name": {"type": "string"}}}


def close(schema: dict[str, Any]) -> dict[str, Any]:
    return crds.close(schema, META)


def valid(schema: dict[str, Any], value: object) -> bool:
    four = jsonschema_rs.Draft4Validator(schema).is_valid(value)
    assert four == jsonschema_rs.Draft202012Validator(schema).is_valid(value)
    return four


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": "x"}, {"b": "x"}),
        ({"type": "object"}, {}, {"a": 1}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"any": "x"}, {"any": 1}),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"any": [1]}, "text"),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, "50%", 1.5),
        ({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+$"}, "5", "x"),
        ({"type": "string", "nullable": True}, None, 1),
        ({"type": "string"}, "x", None),
        ({"type": "integer", "format": "int32"}, 2**31, 2**63),
        ({"type": "integer"}, -(2**63), -(2**63) - 1),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, 0.1, 0),
        ({"type": "number", "maximum": 9, "exclusiveMaximum": True}, 8, 9),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": False}, 0, -1),
    ],
)
def test_closed_schemas(schema: dict[str, Any], good: object, bad: object) -> None:
    closed = close(schema)
    assert valid(closed, good)
    assert not valid(closed, bad)


def test_preserved_fields_are_judged_where_they_are_named() -> None:
    closed = close(
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}},
        }
    )
    assert valid(closed, {"other": 1, "a": {"b": "x"}})
    assert not valid(closed, {"a": {"c": "x"}})


def test_alternatives_close_nothing() -> None:
    closed = close(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"properties": {"b": {"enum": ["x"]}}, "required": ["b"]}],
        }
    )
    assert valid(closed, {"a": "1"})
    assert valid(closed, {"b": "x"})
    assert not valid(closed, {"b": "y"})
    assert not valid(closed, {"a": "1", "b": "x"})


def test_formats_that_no_server_enforces_are_dropped() -> None:
    assert "format" not in close({"type": "string", "format": "idn-hostname"})
    assert close({"type": "string", "format": "date-time"})["format"] == "datetime"


def test_embedded_objects_say_what_they_are() -> None:
    closed = close(
        {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
    )
    assert valid(closed, {"apiVersion": "v1", "kind": "X", "spec": {}})
    assert valid(closed, {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}})
    assert not valid(closed, {"kind": "X"})
    assert not valid(closed, {"apiVersion": "v1", "kind": ""})
    assert not valid(closed, {"apiVersion": "v1", "kind": "X", "metadata": {"nome": "a"}})


def test_a_null_among_the_allowed_values_is_not_taken() -> None:
    closed = close({"type": "string", "nullable": True, "enum": ["a", None]})
    assert valid(closed, "a")
    assert not valid(closed, None)


def test_a_dropped_status_is_asked_only_for_unknown_fields() -> None:
    schema = unknown_only(
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "maxLength": 1}}}
    )
    assert valid(schema, {})
    assert valid(schema, {"a": 17})
    assert not valid(schema, {"b": 1})


CRD = {
    "spec": {
        "group": "example.com",
        "names": {"kind": "Toy", "plural": "toys"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas"}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}},
                            "spec": {
                                "type": "object",
                                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "no change"}],
                                "properties": {
                                    "replicas": {"type": "integer", "default": 1},
                                    "weight": {"type": "number"},
                                    "ports": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "port": {"type": "integer"},
                                                "protocol": {"type": "string", "default": "TCP"},
                                            },
                                        },
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "required": ["phase"],
                                "properties": {"phase": {"type": "string", "default": "New"}},
                            },
                        },
                    }
                },
            },
            {"name": "v1alpha1", "served": False, "storage": False, "deprecated": True, "deprecationWarning": "gone"},
        ],
    }
}


def test_a_crd_gives_one_record_a_version() -> None:
    new, old = records(CRD, META)
    assert (new["apiVersion"], new["scale"], new["status"]) == ("example.com/v1", "spec.replicas", True)
    assert new["lists"] == [[("spec", "ports"), ["port", "protocol"], {"protocol": "TCP"}]]
    assert new["casts"] == [[("spec", "weight"), "double"]]
    assert new["immutable"] == [[("spec",), "CEL rule", "", None]]
    assert new["rules"][0]["transition"] is True
    assert new["defaults"]["p"]["spec"]["p"]["replicas"] == {"=": 1}
    assert "status" not in new["defaults"]["p"]
    body = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "a"}, "spec": {}, "status": {}}
    assert valid(new["schema"], body)
    assert not valid(new["schema"], body | {"metadata": {"name": "too-long"}})
    assert not valid(new["schema"], body | {"status": {"x": 1}})
    assert not valid(new["schema"], {name: value for name, value in body.items() if name != "spec"})
    assert (old["served"], old["deprecated"], old["deprecation"]) == (False, True, "gone")


def test_defaults_are_a_tree() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "x"}}},
            "l": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "integer", "default": 0}}}},
            "m": {"type": "object", "additionalProperties": {"type": "string", "nullable": True, "default": "d"}},
            "n": {"type": "string"},
        },
    }
    assert defaults(schema) == {
        "p": {
            "a": {"=": {}, "p": {"b": {"=": "x"}}},
            "l": {"i": {"p": {"c": {"=": 0}}}},
            "m": {"v": {"=": "d", "n": True}},
        }
    }
