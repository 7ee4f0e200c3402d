"""What a change of a CRD's schema does to the objects that are there: dropped, refused, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blueprint.check.shapes import items
from blueprint.quantity import QuantityError, parse_quantity
from blueprint.review.diff import MISSING, Edit
from blueprint.review.model import Risk
from blueprint.review.words import shown

if TYPE_CHECKING:
    from blueprint.review.special import Case

Said = tuple[Risk, str]

_TOLD = ("description", "title", "example", "externalDocs")
"""Keywords that say something to people alone."""
_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "minLength", "minItems", "minProperties")
_RULES = "x-kubernetes-validations"
_STRICT = ("pattern", "format", "not", "allOf", "anyOf", "oneOf", "multipleOf", "uniqueItems", _RULES)
_KEPT = "x-kubernetes-preserve-unknown-fields"


def changed(case: Case) -> Said | None:
    """One edit of a schema (k8s.io/apiextensions-apiserver v0.35.4 pkg/apiserver/schema, pruning and validation)."""
    edit = case.edit
    if "schema" not in edit.path:
        return Risk.NONE, f"{edit.path[-1]} changes"
    inside = list(edit.path[edit.path.index("schema") + 1 :])
    keyword, of = _keyword(inside)
    name = of or "its objects"
    if keyword == "":  # a field, or everything below a keyword
        if edit.after is MISSING:
            return Risk.DESTRUCTIVE, f"the schema loses {name}: what objects hold there is dropped"
        return Risk.NONE, f"the schema gets {name}" if edit.before is MISSING else f"the schema of {name} changes"
    if keyword in _TOLD:
        return Risk.NONE, f"{keyword} of {name} changes"
    if keyword == _KEPT and edit.after is not True:
        return Risk.DESTRUCTIVE, f"{name} keeps no fields any more that the schema does not name: they are dropped"
    if keyword == "default":
        words = f"{name} is {shown(edit.after)} instead of {shown(edit.before)} where an object does not say it"
        return Risk.UNKNOWN, f"{words}; what its controller makes of that is not known"
    if _stricter(keyword, edit):
        words = f"{keyword} of {name} {shown(edit.before)} → {shown(edit.after)}"
        return Risk.DESTRUCTIVE, f"objects that were valid are refused, the old ones at their next update: {words}"
    return Risk.NONE, f"{keyword} of {name} changes"


def _keyword(steps: list[str]) -> tuple[str, str]:
    """The keyword that is edited, "" where it is a field itself, and the path of the field."""
    fields: list[str] = []
    position = 0
    while position < len(steps):
        step = steps[position]
        if step in ("openAPIV3Schema", "additionalProperties", "items"):
            position += 1
        elif step in ("properties", "patternProperties") and position + 1 < len(steps):
            fields.append(steps[position + 1])
            position += 2
        else:
            return ("" if step == "properties" else step), ".".join(fields)
    return "", ".".join(fields)


def _stricter(keyword: str, edit: Edit) -> bool:
    """Whether a keyword refuses what it let in before."""
    if keyword == "type":
        return not (edit.before == "integer" and edit.after == "number")
    if keyword == "required":
        return any(each not in items(edit.before) for each in items(edit.after)) or isinstance(edit.after, str)
    if keyword == "enum":
        gone = [each for each in items(edit.before) if each not in items(edit.after)]
        return edit.before is MISSING or (bool(gone) and edit.after is not MISSING)
    if keyword == "nullable":
        return edit.before is True
    if keyword in ("exclusiveMaximum", "exclusiveMinimum"):
        return edit.after is True
    if keyword in (*_UPPER, *_LOWER):
        return edit.after is not MISSING and (edit.before is MISSING or _less(edit) is (keyword in _UPPER))
    return keyword in _STRICT and edit.after is not MISSING


def _less(edit: Edit) -> bool | None:
    try:
        return parse_quantity(edit.after) < parse_quantity(edit.before)
    except QuantityError:
        return None
