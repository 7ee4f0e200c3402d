"""From a CustomResourceDefinition to what the pack holds about a kind.

The conversion follows what an API server does with a structural schema: it drops unknown fields (so the JSON Schema
here is closed), fills in defaults, then validates. Source of each step: k8s.io/apiextensions-apiserver@v0.35.4
pkg/apiserver/schema/{pruning,defaulting,listtype,cel} and pkg/apiserver/validation.

A path here is a tuple of property names in which `[]` stands for "each item" and `{}` for "each value of the map".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from blueprint.catalog.sharing import share

Path = tuple[str, ...]
Schema = dict[str, Any]
Record = dict[str, Any]
Json = Any  # what JSON can hold

ITEM = "[]"
VALUE = "{}"

# An int64 in Go: a bigger number decodes to a float and is refused as one.
INT64 = {"minimum": -(2**63), "maximum": 2**63 - 1}

# Formats that an API server 1.35 enforces in a CRD, without their dashes; it ignores any other.
# k8s.io/apiextensions-apiserver@v0.35.4 pkg/apiserver/validation/formats.go
FORMATS = frozenset(
    {"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5"}
    | {"isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration"}
    | {"datetime", "k8sshortname", "k8slongname"}
)

_NOT_NULL = ["array", "boolean", "number", "object", "string"]
_COPIED = (
    *("enum", "multipleOf", "pattern", "required", "maxItems", "maxLength", "maxProperties"),
    *("minItems", "minLength", "minProperties"),
)
_CASTS = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_OLD_SELF = re.compile(r"\boldSelf\b")
_SAME = re.compile(r"\s*(self\s*==\s*oldSelf|oldSelf\s*==\s*self)\s*")


def records(crd: Mapping[str, Any], object_meta: Schema, *, small: bool = True) -> Iterator[Record]:
    """One pack record for each version of a CRD; `object_meta` is the closed schema of `metadata`.

    A `small` one says each repeated part of its schema once, which pays where it is kept.

    Raises KeyError or TypeError when the CRD lacks what its own API requires.
    """
    spec = crd["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        structure: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
        }
        subresources = version.get("subresources") or {}
        status = "status" in subresources
        root = close(_without_status(structure) if status else structure, object_meta)
        _standard_fields(root, structure, object_meta)
        if status and "status" in structure.get("properties", {}):
            root["properties"]["status"] = unknown_only(structure["properties"]["status"])
        walked = _without_status(structure) if status else structure
        scale = (subresources.get("scale") or {}).get("specReplicasPath", "").lstrip(".")
        if scale:
            _limit_scale(root, scale.split("."))
        rules = [_rule(path, rule) for path, rule in _rules(walked)]
        yield {
            "apiVersion": f"{spec['group']}/{version['name']}",
            "kind": names["kind"],
            "plural": names["plural"],
            "scope": spec["scope"],
            "served": version["served"],
            "storage": version["storage"],
            "deprecated": bool(version.get("deprecated")),
            "deprecation": version.get("deprecationWarning") or "",
            "core": False,
            "status": status,
            "scale": scale,
            "schema": share(root) if small else root,
            "defaults": defaults(walked) or {},
            "lists": [[path, *_keys(node)] for path, node in _lists(walked, "map")],
            "sets": [path for path, _ in _lists(walked, "set")],
            "rules": rules,
            "casts": [[path, cast] for path, cast in _casts(walked)] if rules else [],
            "immutable": [[r["path"], "CEL rule", "", None] for r in rules if _SAME.fullmatch(r["rule"])],
        }


def close(schema: Schema, object_meta: Schema) -> Schema:
    """The closed JSON Schema of a structural schema: what is not named is refused.

    `object_meta` is the closed schema of `metadata`, for objects that are embedded in a field.
    """
    out = _value(schema)
    if "properties" in schema:
        out["properties"] = {name: _named(child, object_meta) for name, child in schema["properties"].items()}
    if isinstance(schema.get("items"), dict):
        out["items"] = close(schema["items"], object_meta)
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        out["additionalProperties"] = _named(additional, object_meta)
    elif schema.get("x-kubernetes-embedded-resource"):
        _embedded(out, object_meta)
    if additional is None and _is_object(schema) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        out["additionalProperties"] = False
    return out


def _named(schema: Schema, object_meta: Schema) -> Schema:
    """The schema of a named value: a null there is dropped before anything is validated, unless it is nullable."""
    out = close(schema, object_meta)
    if "type" not in out and not schema.get("nullable"):
        out["type"] = _NOT_NULL
    return out


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def _embedded(out: Schema, object_meta: Schema) -> None:
    """A whole object inside a field: it must say what it is, and its `metadata` is read like that of any object."""
    properties = out.setdefault("properties", {})
    for name in ("apiVersion", "kind"):
        properties[name] = properties.get(name, {"type": "string"}) | {"minLength": 1}
    properties["metadata"] = object_meta
    out["required"] = sorted({*out.get("required", ()), "apiVersion", "kind"})


def _value(schema: Schema) -> Schema:
    """The part of a schema that looks at values; it also serves inside `allOf` and its like, which close nothing."""
    out: Schema = {key: schema[key] for key in _COPIED if key in schema}
    if "enum" in out:
        out["enum"] = [option for option in out["enum"] if option is not None]  # a server takes no null for one
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        kind = ["integer", "string"]
    if kind is not None:
        kinds = kind if isinstance(kind, list) else [kind]
        out["type"] = [*kinds, "null"] if schema.get("nullable") else kind
        if "integer" in kinds:
            out |= INT64
    for limit in ("minimum", "maximum"):
        if limit in schema:
            exclusive = "exclusive" + limit.capitalize()
            out[limit] = schema[limit]
            if schema.get(exclusive):
                # Said with `not`, because the keyword differs between the drafts that read this schema.
                opposite = "minimum" if limit == "maximum" else "maximum"
                out.setdefault("allOf", []).append({"not": {"type": "number", opposite: schema[limit]}})
    name = str(schema.get("format", "")).replace("-", "")
    if name in FORMATS and kind in ("string", None):
        out["format"] = name
    for word in ("allOf", "anyOf", "oneOf"):
        if word in schema and not _says_int_or_string(schema, word):
            out[word] = [*out.get(word, ()), *(_branch(child) for child in schema[word])]
    if "not" in schema:
        out["not"] = _branch(schema["not"])
    return out


def _branch(schema: Schema) -> Schema:
    out = _value(schema)
    if "properties" in schema:
        out["properties"] = {name: _branch(child) for name, child in schema["properties"].items()}
    if isinstance(schema.get("items"), dict):
        out["items"] = _branch(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        out["additionalProperties"] = _branch(schema["additionalProperties"])
    return out


def _says_int_or_string(schema: Schema, word: str) -> bool:
    """The two alternatives that `x-kubernetes-int-or-string` already says."""
    return bool(schema.get("x-kubernetes-int-or-string")) and schema[word] == [{"type": "integer"}, {"type": "string"}]


def unknown_only(schema: Schema) -> Schema:
    """A schema that refuses unknown fields and nothing else: all that is asked of a `status` that is then dropped."""
    if schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
        return {}
    out: Schema = {}
    if "properties" in schema:
        out["properties"] = {name: unknown_only(child) for name, child in schema["properties"].items()}
    if isinstance(schema.get("items"), dict):
        out["items"] = unknown_only(schema["items"])
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        out["additionalProperties"] = unknown_only(additional)
    elif additional is None and _is_object(schema) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        out["additionalProperties"] = False
    return out


def _without_status(schema: Schema) -> Schema:
    properties = schema.get("properties", {})
    if "status" not in properties:
        return schema
    kept = {name: child for name, child in properties.items() if name != "status"}
    return schema | {"properties": kept, "required": [name for name in schema.get("required", ()) if name != "status"]}


def _standard_fields(root: Schema, structure: Schema, object_meta: Schema) -> None:
    """What every object has; a CRD may only narrow `metadata.name` and `metadata.generateName`."""
    properties = root.setdefault("properties", {})
    properties["apiVersion"] = properties["kind"] = {"type": "string"}
    own = structure.get("properties", {}).get("metadata", {}).get("properties", {})
    narrowed = {name: _value(own[name]) for name in ("name", "generateName") if name in own}
    properties["metadata"] = object_meta | ({"allOf": [{"properties": narrowed}]} if narrowed else {})
    if not root.get("required"):
        root.pop("required", None)


def _limit_scale(root: Schema, path: list[str]) -> None:
    """The replica count that `/scale` shows is an int32 that is not negative, whatever its own schema says.

    k8s.io/apiextensions-apiserver@v0.35.4 pkg/registry/customresource/validator.go ValidateScaleSpec
    """
    node = root
    for name in path:
        node = node.get("properties", {}).get(name, {})
    if node.get("type") == "integer":
        node["minimum"] = max(node.get("minimum", 0), 0)
        node["maximum"] = min(node.get("maximum", 2**31 - 1), 2**31 - 1)


def walk(schema: Schema, path: Path = ()) -> Iterator[tuple[Path, Schema]]:
    """Each node of a structural schema with its path, parents first."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, (*path, name))
    if isinstance(schema.get("items"), dict):
        yield from walk(schema["items"], (*path, ITEM))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], (*path, VALUE))


def _rules(schema: Schema) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for path, node in walk(schema):
        for rule in node.get("x-kubernetes-validations", ()):
            yield path, rule


def _casts(schema: Schema, path: Path = (), judged: bool = False) -> Iterator[tuple[Path, str]]:
    """The values under a rule that CEL sees as another type than JSON has.

    k8s.io/apiserver@v0.35.4 pkg/cel/common/schemas.go SchemaDeclType
    """
    judged = judged or bool(schema.get("x-kubernetes-validations"))
    cast = "double" if schema.get("type") == "number" else _CASTS.get(str(schema.get("format")), "")
    if judged and cast and schema.get("type") in ("number", "string"):
        yield path, cast
    for name, child in schema.get("properties", {}).items():
        yield from _casts(child, (*path, name), judged)
    if isinstance(schema.get("items"), dict):
        yield from _casts(schema["items"], (*path, ITEM), judged)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _casts(schema["additionalProperties"], (*path, VALUE), judged)


def _rule(path: Path, rule: Mapping[str, Any]) -> Record:
    out: Record = {"path": path, "rule": rule["rule"].strip()}
    for key in ("message", "messageExpression", "fieldPath", "reason", "optionalOldSelf"):
        if rule.get(key):
            out[key] = rule[key]
    if _OLD_SELF.search(rule["rule"]):
        out["transition"] = True
    return out


def _lists(schema: Schema, kind: str) -> Iterator[tuple[Path, Schema]]:
    return ((path, node) for path, node in walk(schema) if node.get("x-kubernetes-list-type") == kind)


def _keys(node: Schema) -> tuple[list[str], Record]:
    """The keys of a list-map and the defaults they have: these are filled in before two items are compared."""
    keys = list(node.get("x-kubernetes-list-map-keys", ()))
    fields = node.get("items", {}).get("properties", {})
    return keys, {key: fields[key]["default"] for key in keys if "default" in fields.get(key, {})}


def defaults(schema: Schema) -> Record | None:
    """The tree of defaults: `=` a value, `n` null is a value of its own, `p` properties, `i` items, `v` map values."""
    node: Record = {}
    if schema.get("default") is not None:
        node["="] = schema["default"]
    children = {name: tree for name, child in schema.get("properties", {}).items() if (tree := defaults(child))}
    if children:
        node["p"] = children
    if isinstance(schema.get("items"), dict) and (tree := defaults(schema["items"])):
        node["i"] = tree
    if isinstance(schema.get("additionalProperties"), dict) and (tree := defaults(schema["additionalProperties"])):
        node["v"] = tree
    if node and schema.get("nullable"):
        node["n"] = True
    return node or None
