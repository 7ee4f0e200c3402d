"""The schemas in a CustomResourceDefinition: what the API server refuses in them before any object comes.

Source: k8s.io/apiextensions-apiserver@v0.35.4 pkg/apiserver/schema/validation.go and complete.go (structural schemas),
pkg/apis/apiextensions/validation/validation.go (ValidateCustomResourceDefinitionOpenAPISchema). Expressions are read by
`expressions`; what rules cost, and whether defaults fit deeper than their type, is left to the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from blueprint.check.shapes import Body, items, mapping, maps, text, texts

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_OUTSIDE_ONLY = ("type", "default", "title", "description", "nullable")
"""What says how a value is built: it stands in the schema itself, not in a condition about it."""
_FORBIDDEN_EXTENSIONS = (
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
)
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_AT_ROOT = frozenset(
    {
        *("description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
        *(
            "maxLength",
            "minLength",
            "pattern",
            "maxItems",
            "minItems",
            "uniqueItems",
            "multipleOf",
            "required",
            "items",
        ),
        *("properties", "externalDocs", "example"),
        *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"),
    }
)
"""What may stand at the root of a schema whose status is a subresource: the status is judged by itself."""
_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


class Fault(NamedTuple):
    """What is wrong at a place of a schema."""

    path: str
    message: str
    fix: str = ""


def faults(schema: Body, at: str, *, status: bool) -> Iterator[Fault]:
    """Everything that is wrong with the schema of a version; `status`: it has that subresource."""
    if status and (extra := [str(key) for key, value in schema.items() if value and key not in _AT_ROOT]):
        yield Fault(at, f"{extra[0]} may not stand at the root where status is a subresource")
    if schema.get("nullable") is True:
        yield Fault(at, "nullable may not stand at the root")
    yield from _schema(schema, at, "root")


def _schema(schema: Body, at: str, level: str) -> Iterator[Fault]:
    """A schema that says how a value is built, and those of its parts."""
    yield from _plain(schema, at)
    yield from _built(schema, at, level)
    yield from _lists(schema, at)
    yield from _junctors(schema, schema if level == "root" else None, at)
    for name, part in mapping(schema.get("properties")).items():
        if isinstance(part, dict):
            yield from _schema(part, f"{at}.properties.{name}", "field")
    for name, inner in (("items", "item"), ("additionalProperties", "field")):
        if isinstance(schema.get(name), dict):
            yield from _schema(mapping(schema[name]), f"{at}.{name}", inner)


def _plain(schema: Body, at: str) -> Iterator[Fault]:
    """What no schema may hold, wherever it stands."""
    kind = schema.get("type")
    if isinstance(kind, str) and kind and kind not in _TYPES:
        near = get_close_matches(kind, _TYPES, 1, 0.5) or _MEANT.get(kind, [])
        hint = "use nullable" if kind == "null" else f"did you mean {near[0]}?" if near else ""
        yield Fault(f"{at}.type", f"type {kind!r} is not one of {', '.join(_TYPES)}", hint)
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield Fault(f"{at}.{name}", f"{name} is not supported in the schema of a CRD")
    if isinstance(schema.get("items"), list):
        yield Fault(f"{at}.items", "items is one schema, not a list of them")
    if schema.get("uniqueItems") is True:
        yield Fault(f"{at}.uniqueItems", "uniqueItems may not be true", "x-kubernetes-list-type: set")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield Fault(f"{at}.x-kubernetes-preserve-unknown-fields", "must be true, or not be there")
    default, wanted = schema.get("default"), _JSON_TYPES.get(text(kind))
    if default is not None and wanted and schema.get("x-kubernetes-int-or-string") is not True:
        wrong = not isinstance(default, wanted) or (isinstance(default, bool) and kind != "boolean")
        if wrong and not (kind == "integer" and isinstance(default, float) and default.is_integer()):
            yield Fault(f"{at}.default", f"the default {default!r} is no {kind}")


_MEANT = {"int": ["integer"], "int32": ["integer"], "int64": ["integer"], "float": ["number"], "double": ["number"]}
_MEANT |= {"bool": ["boolean"], "str": ["string"], "map": ["object"], "dict": ["object"], "list": ["array"]}


def _built(schema: Body, at: str, level: str) -> Iterator[Fault]:
    """Whether it is said how the value is built."""
    kind, embedded = text(schema.get("type")), schema.get("x-kubernetes-embedded-resource") is True
    either = schema.get("x-kubernetes-int-or-string") is True
    whatever = schema.get("x-kubernetes-preserve-unknown-fields") is True
    if kind == "array" and schema.get("items") is None:
        yield Fault(at, "an array needs items", "say what its items are")
    if embedded and kind != "object":
        yield Fault(at, "the type must be object where x-kubernetes-embedded-resource is true")
    elif not kind and not either and not whatever and schema.get("type") in (None, ""):
        what = {"root": "the root of a schema", "item": "what an array holds", "field": "a field"}[level]
        yield Fault(at, f"{what} needs a type", "type: object" if schema.get("properties") else "say its type")
    if level == "root" and kind and kind != "object":
        yield Fault(f"{at}.type", f"the root must be an object, not {kind}")
    if either and (whatever or embedded):
        yield Fault(at, "x-kubernetes-int-or-string excludes preserving unknown fields and embedded resources")
    more = schema.get("additionalProperties")
    if more is not None:
        if level == "root" or embedded:
            yield Fault(f"{at}.additionalProperties", "an object of Kubernetes cannot have additionalProperties")
        if mapping(schema.get("properties")) and (more is False or isinstance(more, dict)):
            message = "properties and additionalProperties exclude each other"
            yield Fault(f"{at}.additionalProperties", message, "fields that are not named are dropped anyway")
    if level == "root" or embedded:
        yield from _head(mapping(schema.get("properties")), at, root=level == "root")
    if embedded and not whatever and not mapping(schema.get("properties")):
        yield Fault(at, "an embedded resource needs properties, or x-kubernetes-preserve-unknown-fields")


def _head(properties: Body, at: str, *, root: bool) -> Iterator[Fault]:
    for name in ("kind", "apiVersion"):
        if name in properties and mapping(properties[name]).get("type") != "string":
            yield Fault(f"{at}.properties.{name}", f"{name} must be a string")
    metadata = mapping(properties.get("metadata"))
    if "metadata" not in properties:
        return
    if metadata.get("type") != "object":
        yield Fault(f"{at}.properties.metadata", "metadata must be an object")
    extra = [name for name in mapping(metadata.get("properties")) if name not in ("name", "generateName")]
    if root and extra:
        message = f"metadata may restrict name and generateName only, not {extra[0]}"
        yield Fault(f"{at}.properties.metadata.properties.{extra[0]}", message)


def _lists(schema: Body, at: str) -> Iterator[Fault]:
    """How lists and maps are merged."""
    kind, merged = text(schema.get("type")), schema.get("x-kubernetes-list-type")
    if isinstance(of := schema.get("x-kubernetes-map-type"), str):
        if of not in ("atomic", "granular"):
            yield Fault(f"{at}.x-kubernetes-map-type", f"{of!r} is not atomic or granular")
        if kind != "object":
            yield Fault(at, "the type must be object where x-kubernetes-map-type is given")
    keys = texts(schema.get("x-kubernetes-list-map-keys"))
    if keys and merged != "map":
        yield Fault(f"{at}.x-kubernetes-list-map-keys", "keys need x-kubernetes-list-type: map")
    if not isinstance(merged, str):
        return
    if merged not in ("atomic", "set", "map"):
        yield Fault(f"{at}.x-kubernetes-list-type", f"{merged!r} is not atomic, set or map")
    if kind != "array":
        yield Fault(at, "the type must be array where x-kubernetes-list-type is given")
        return
    held = mapping(schema.get("items"))
    if merged in ("set", "map") and held.get("nullable") is True:
        yield Fault(f"{at}.items.nullable", f"items of a {merged} cannot be null")
    if merged == "set":
        loose = {"array": held.get("x-kubernetes-list-type") not in (None, "atomic")}
        loose["object"] = held.get("x-kubernetes-map-type") != "atomic"
        if loose.get(text(held.get("type"))):
            yield Fault(f"{at}.items", "items of a set must be atomic", f"x-kubernetes-{_part(held)}-type: atomic")
    elif merged == "map":
        yield from _keyed(held, keys, at)


def _part(held: Body) -> str:
    return "list" if held.get("type") == "array" else "map"


def _keyed(held: Body, keys: list[str], at: str) -> Iterator[Fault]:
    if not keys:
        yield Fault(at, "x-kubernetes-list-type: map needs x-kubernetes-list-map-keys")
    if held and held.get("type") != "object":
        yield Fault(f"{at}.items", "items of a list of the type map must be objects")
        return
    properties, required = mapping(held.get("properties")), texts(held.get("required"))
    for key in keys:
        part = mapping(properties.get(key))
        if key not in properties:
            yield Fault(f"{at}.x-kubernetes-list-map-keys", f"{key} is no field of the items")
        elif part.get("type") in ("array", "object"):
            yield Fault(f"{at}.items.properties.{key}", f"{key} tells items apart, so it must be one value")
        elif key not in required and part.get("default") is None:
            message = f"{key} tells items apart, so it must be required or have a default"
            yield Fault(f"{at}.items.properties.{key}", message)
        elif part.get("nullable") is True:
            yield Fault(f"{at}.items.properties.{key}", f"{key} tells items apart, so it cannot be null")


def _junctors(holder: Body, built: Body | None, at: str) -> Iterator[Fault]:
    """Conditions: they may not say how a value is built, and may name only what is built outside of them.

    The second is asked only of conditions at the root (`built`), as the server does.
    """
    for name in (*_JUNCTORS, "not"):
        listed, given = name != "not", holder.get(name)
        for index, part in enumerate(maps(given) if listed else [given] if isinstance(given, dict) else []):
            here = f"{at}.{name}[{index}]" if listed else f"{at}.{name}"
            first = name == "anyOf" or (name == "allOf" and index == 0)
            if first and _spells_int_or_string(holder if name == "anyOf" else part, name):
                continue
            yield from _condition(part, built, here)


def _spells_int_or_string(holder: Body, name: str) -> bool:
    """The two forms in which a schema may say `integer or string` in a condition."""
    return items(holder.get("anyOf")) == _INT_OR_STRING and (name == "anyOf" or "anyOf" in holder)


def _condition(part: Body, built: Body | None, at: str) -> Iterator[Fault]:
    yield from _plain(part, at)
    for name in (*_OUTSIDE_ONLY, *_FORBIDDEN_EXTENSIONS, "additionalProperties"):
        if part.get(name):
            message = f"{name} may not stand inside of allOf, anyOf, oneOf or not"
            yield Fault(f"{at}.{name}", message, "put it into the schema around them")
    own = None if built is None else mapping(built.get("properties"))
    for name, inner in mapping(part.get("properties")).items():
        here = f"{at}.properties.{name}"
        if name == "metadata":
            yield Fault(here, "a condition may not be about metadata")
        if own is not None and name not in own:
            yield Fault(here, f"{name} is no field of the schema around the condition", "name it there, with its type")
        elif isinstance(inner, dict):
            yield from _condition(inner, None if own is None else mapping(own[name]), here)
    if isinstance(part.get("items"), dict):
        held = None if built is None else built.get("items")
        if built is not None and not isinstance(held, dict):
            yield Fault(f"{at}.items", "the schema around the condition has no items")
        else:
            yield from _condition(mapping(part["items"]), held, f"{at}.items")
    yield from _junctors(part, built, at)
