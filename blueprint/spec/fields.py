"""What pydantic says of a document, as findings at the line of the field and in the words of people who write specs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from blueprint.finding import Finding, Source
from blueprint.spec.base import Model, shown
from blueprint.spec.nearest import nearest, plain
from blueprint.spec.outline import fields_at, homes
from blueprint.spec.positions import Place, Segment, written
from blueprint.spec.reader import Text

UNKNOWN: Final = "SPC131"
MISSING: Final = "SPC132"
WRONG_TYPE: Final = "SPC133"
NOT_ALLOWED: Final = "SPC134"
OUT_OF_RANGE: Final = "SPC135"
BAD_VALUE: Final = "SPC136"
CONTRADICTION: Final = "SPC137"

_WANTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_LIMITS: Final = {
    "greater_than_equal": ("at least {ge}", "ge"),
    "less_than_equal": ("at most {le}", "le"),
    "greater_than": ("more than {gt}", "gt"),
    "less_than": ("less than {lt}", "lt"),
}


def findings(error: ValidationError, model: type[Model], text: Text) -> Iterator[Finding]:
    """One finding for each field that is wrong.

    Args:
        error: what `model.model_validate_json` raised.
        model: the model of the document's kind.
        text: the document; fields that it calls tainted are passed over.
    """
    said = set[tuple[Segment, ...]]()
    alike: dict[tuple[object, ...], list[Segment]] = {}
    found: list[tuple[tuple[object, ...], Finding]] = []
    details = error.errors(include_url=False)
    # A union reports once for each alternative: what our own readers say of units helps more than a type's name.
    for detail in sorted(details, key=lambda d: d["type"] != "value_error"):
        path = _path(detail, text.place)
        if (
            _only_seems_short(detail)
            or path in said
            or any(path[: len(tainted)] == tainted for tainted in text.tainted)
        ):
            continue
        said.add(path)
        # Of a plain list that is wrong all along, like `[5, 20]` for `[5%, 20%]`, the first entry is enough.
        together = detail["type"] == "missing" or (path and isinstance(path[-1], int))
        entry: tuple[object, ...] = (path[:-1], detail["type"]) if together else path
        if entry not in alike:
            found.append((entry, _finding(detail, path, model, text)))
        alike.setdefault(entry, []).append(path[-1] if path else "")
    for entry, finding in found:
        others = alike[entry][1:]
        if others and finding.code == MISSING:
            yield replace(finding, message=f"{finding.message}, and so are {', '.join(map(str, others))}")
        elif others:
            more = f"{len(others)} more {'entry' if len(others) == 1 else 'entries'}"
            yield replace(finding, message=f"{finding.message} (and {more})")
        else:
            yield finding


def mistakes(error: ValidationError, text: Text) -> frozenset[tuple[Segment, ...]]:
    """The fields whose value cannot be taken; of an unknown field nothing is wanted, so it is none of them."""
    return frozenset(
        _path(detail, text.place)
        for detail in error.errors(include_url=False)
        if detail["type"] != "extra_forbidden" and not _only_seems_short(detail)
    )


def _only_seems_short(detail: ErrorDetails) -> bool:
    """A list whose entries are wrong counts as short of entries, too."""
    return detail["type"] == "too_short" and len(detail["input"]) >= (detail.get("ctx") or {})["min_length"]


def _path(detail: ErrorDetails, root: Place) -> tuple[Segment, ...]:
    """The field that an error is about; pydantic's own marks (of unions, of keys) are cut off."""
    found, _ = root.deepest(detail["loc"])
    if detail["type"] == "missing":
        return (*found, detail["loc"][-1])
    blamed = (detail.get("ctx") or {}).get("field")
    return (*found, *_segments(str(blamed))) if blamed else found


def _segments(blamed: str) -> Iterator[Segment]:
    """The field that a validator blames; a number is the entry of a list."""
    yield from (int(part) if part.isdigit() else part for part in blamed.split("."))


def _finding(detail: ErrorDetails, path: tuple[Segment, ...], model: type[Model], text: Text) -> Finding:
    found, place = text.place.deepest(path)
    code, message, fix = _explain(detail, path, model, place)
    is_key = code in (UNKNOWN, MISSING) or detail["loc"][-1:] == ("[key]",) or len(found) < len(path)
    # A mapping or list below its key is better known by the key.
    is_key = is_key or place.line != place.key_line
    at = (place.key_line, place.key_column) if is_key else (place.line, place.column)
    return Finding(code, message, Source(text.file, *at), path=written(path), fix=fix)


def _explain(detail: ErrorDetails, path: tuple[Segment, ...], model: type[Model], place: Place) -> tuple[str, str, str]:
    """Code, message and fix of one error."""
    kind, value = detail["type"], detail["input"]
    context: Mapping[str, Any] = detail.get("ctx") or {}
    if kind == "extra_forbidden":
        return UNKNOWN, *_unknown(path, model)
    if kind == "missing":
        where = written(path[:-1])
        return MISSING, f"{path[-1]} is missing" + (f" in {where}" if where else ""), f"add {path[-1]}"
    if kind == "contradiction":
        return CONTRADICTION, str(context["message"]), ""
    if kind == "unlocked":
        return BAD_VALUE, str(context["message"]), str(context["fix"])
    if kind == "value_error":
        code = CONTRADICTION if isinstance(value, dict) else BAD_VALUE
        return code, str(context["error"]), ""
    if kind in _WANTED:
        return WRONG_TYPE, *_wrong_type(_WANTED[kind], value, place)
    if kind in ("literal_error", "enum"):
        return NOT_ALLOWED, *_not_allowed(str(context["expected"]), value)
    if kind in _LIMITS:
        form, _ = _LIMITS[kind]
        return OUT_OF_RANGE, f"{form.format_map(context)} is expected, not {shown(value)}", ""
    if kind == "too_short":
        what = "entry" if context["min_length"] == 1 else "entries"
        return (
            OUT_OF_RANGE,
            f"at least {context['min_length']} {what} are expected".replace("1 entry are", "1 entry is"),
            "",
        )
    if kind == "string_too_short":
        return OUT_OF_RANGE, "empty text", ""
    if kind == "string_pattern_mismatch":
        return BAD_VALUE, f"{shown(value)} does not have the form {context['pattern']}", ""
    return BAD_VALUE, detail["msg"].replace("Input should", "the value should"), ""


def _wrong_type(wanted: str, value: object, place: Place) -> tuple[str, str]:
    written_as = place.text if place.text is not None else shown(value)
    if value is None:
        return f"nothing is given; {wanted} is expected", "write a value, or leave the field out"
    if wanted == "text" and isinstance(value, (int, float)):
        what = "true or false" if isinstance(value, bool) else f"the number {shown(value)}"
        return f"text is expected; without quotes YAML reads {written_as[:40]} as {what}", f'write "{written_as[:40]}"'
    if isinstance(value, str) and place.quoted:
        if wanted == "a whole number" and re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", value):
            return f"a number is expected, not text: write {value}, not {shown(value)}", "leave the quotes out"
        if wanted == "true or false" and value.lower() in ("true", "false"):
            return f"{wanted} is expected, not text: write {value.lower()}, not {shown(value)}", "leave the quotes out"
    if wanted == "a list" and not isinstance(value, dict):
        return f"a list is expected, not {shown(value)}", f"write [{written_as[:40]}]"
    if isinstance(value, (dict, list)):
        return f"{wanted} is expected, not {'a mapping' if isinstance(value, dict) else 'a list'}", ""
    return f"{wanted} is expected, not {shown(value)}", ""


def _not_allowed(expected: str, value: object) -> tuple[str, str]:
    allowed = re.findall(r"'([^']*)'", expected)
    near = nearest(value, allowed) if isinstance(value, str) else None
    message = f"{shown(value)} is none of {', '.join(allowed)}"
    return (f"{message}; did you mean {near}?", f"write {near}") if near else (message, "")


def _unknown(path: tuple[Segment, ...], model: type[Model]) -> tuple[str, str]:
    """An unknown field: a misspelt neighbour, a field of another place, or nothing that we know."""
    name, where = str(path[-1]), written(path[:-1])
    siblings = fields_at(model, path[:-1])
    message = f"unknown field {name[:60]}" + (f" in {where}" if where else "")
    key = plain(name)
    same = next((field for field in siblings if plain(field) == key), None)
    if same is None:
        others = [home for field, home in homes(model) if plain(field) == key]
        if others:
            home = min(others, key=lambda h: (_distance(h, path[:-1]), h))
            return f"{message}; it belongs in {written(home) or 'the document'}", f"move it to {written(home)}"
        same = nearest(name, siblings)
    if same is not None:
        return f"{message}; did you mean {same}?", f"write {same}"
    return f"{message}; there are {', '.join(siblings)}", "leave it out"


def _distance(home: tuple[str, ...], here: tuple[Segment, ...]) -> int:
    """Steps through the tree from one mapping to another; list positions do not count."""
    there = tuple(step for step in here if isinstance(step, str))
    common = 0
    for one, other in zip(home, there, strict=False):
        if one != other:
            break
        common += 1
    return len(home) + len(there) - 2 * common
