"""From a JSON Schema error to a finding that a person understands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from jsonschema_rs import ValidationError

from blueprint.catalog.crds import Json, Schema
from blueprint.catalog.schemas import Kind

_ARTICLED = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "a map",
    "string": "a string",
}
_FORMATS = {
    "base64": "base64",
    "byte": "base64",
    "cidr": "an address range such as 10.0.0.0/8",
    "date": "a date such as 2006-01-02",
    "datetime": "a time such as 2006-01-02T15:04:05Z",
    "duration": "a duration such as 1h30m",
    "rfc3339": "a time such as 2006-01-02T15:04:05Z",
}
_LIMITS = {
    "maximum": "at most {}",
    "minimum": "at least {}",
    "maxLength": "at most {} characters",
    "minLength": "at least {} characters",
    "maxItems": "at most {} items",
    "minItems": "at least {} items",
    "maxProperties": "at most {} entries",
    "minProperties": "at least {} entries",
    "multipleOf": "a multiple of {}",
}


class Complaint(NamedTuple):
    """One thing that is wrong: a code, the path of the field, words, and a suggestion ("" for none)."""

    code: str
    path: tuple[str | int, ...]
    message: str
    fix: str = ""


def complaints(kind: Kind, error: ValidationError, body: Json) -> Iterator[Complaint]:
    """What one error of the validator of `kind` on `body` comes to; an error about unknown fields names each."""
    path = tuple(error.instance_path)
    word = error.kind.name
    value: Json = error.instance
    detail: Any = error.kind.value
    if word == "additionalProperties":
        known = _fields(kind.at(path))
        for name in detail:
            yield Complaint("SCH104", (*path, name), f"unknown field `{name}`", _suggestion(name, known))
    elif word == "falseSchema":  # a map that may hold nothing
        for step in path:
            body = body[step]
        for name in body:
            yield Complaint("SCH104", (*path, name), f"unknown field `{name}`")
    elif word == "required":
        yield Complaint("SCH105", (*path, detail), f"`{detail}` is required")
    elif word == "type":
        wanted = " or ".join(_ARTICLED.get(name, name) for name in _names(detail))
        yield Complaint("SCH106", path, f"must be {wanted}, is {_shown(kind, value)}")
    elif word == "enum":
        fix = _suggestion(value, [option for option in detail if isinstance(option, str)])
        yield Complaint("SCH107", path, f"must be one of {_options(detail)}, is {_shown(kind, value)}", fix)
    elif word in _LIMITS:
        yield Complaint("SCH107", path, f"must be {_LIMITS[word].format(detail)}, is {_measured(kind, word, value)}")
    elif word == "pattern" and "KMGTPE" in detail:
        yield Complaint("SCH107", path, f"{_shown(kind, value)} is no quantity such as 500m, 2 or 16Gi")
    elif word == "pattern":
        yield Complaint("SCH107", path, f"{_shown(kind, value)} does not match {_pattern(detail)}")
    elif word == "format":
        yield Complaint("SCH107", path, f"{_shown(kind, value)} is not {_FORMATS.get(detail, detail)}")
    elif word in ("anyOf", "oneOf", "not"):
        yield Complaint("SCH108", path, _alternatives(kind, path, word, too_many=word == "oneOf" and [] in detail))
    else:
        yield Complaint("SCH107", path, error.message)


def _names(detail: object) -> list[str]:
    return [str(name) for name in detail] if isinstance(detail, list) else [str(detail)]


def _fields(schema: Schema | None) -> list[str]:
    return list(schema.get("properties", ())) if schema else []


def _suggestion(name: object, known: Iterable[str]) -> str:
    """The known name that was probably meant, differing in case or by a few letters."""
    if not isinstance(name, str):
        return ""
    by_case = {word.lower(): word for word in known}
    close = get_close_matches(name.lower(), by_case, n=1, cutoff=0.7)
    return f"did you mean `{by_case[close[0]]}`?" if close else ""


def _shown(kind: Kind, value: object) -> str:
    """The value, short; what a Secret holds is never repeated."""
    if isinstance(value, (dict, list)):
        return _ARTICLED["object" if isinstance(value, dict) else "array"]
    if kind.kind == "Secret" and value is not None:
        return "a value that is not shown"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:56]}…{text[-1]}"


def _measured(kind: Kind, word: str, value: Json) -> str:
    if word.endswith("Length"):
        return str(len(value))
    return str(len(value)) if isinstance(value, (dict, list)) else _shown(kind, value)


def _options(options: Iterable[object]) -> str:
    shown = [json.dumps(option, ensure_ascii=False) for option in options]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:12], "…"])


def _pattern(pattern: str) -> str:
    return f"`{pattern}`" if len(pattern) <= 120 else f"`{pattern[:116]}…`"


def _alternatives(kind: Kind, path: tuple[str | int, ...], word: str, *, too_many: bool) -> str:
    """Words for fields that exclude or need each other, where the schema says no more than that."""
    schema = kind.at(path) or {}
    if word == "not":
        asked = _asked(kind.resolve(schema.get("not", {})))
        if not asked:
            return "is a combination that the schema rules out"
        return f"{_listed(asked)} must not be set" + (" together" if len(asked) > 1 else "")
    branches = [kind.resolve(branch) for branch in schema.get(word, ())]
    names = _listed(name for branch in branches for name in _asked(branch))
    if names and all(_asked(branch) or set(branch) == {"not"} for branch in branches):
        return f"only one of {names} may be set" if too_many else f"one of {names} must be set"
    if too_many:
        return "must fit exactly one of the alternatives that the schema allows, and fits several"
    return "fits none of the alternatives that the schema allows"


def _asked(branch: Mapping[str, Any]) -> list[str]:
    """The fields of a branch that does nothing but require them."""
    return list(branch.get("required", ())) if set(branch) <= {"required", "properties", "type"} else []


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))
