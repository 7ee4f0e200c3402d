"""What an update may not do: change an immutable field of a built-in kind. Those of a CRD are CEL rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blueprint.catalog.crds import Json, Path
from blueprint.catalog.schemas import Immutable, Kind
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest
from blueprint.quantity import QuantityError, parse_quantity


def immutable(manifest: Manifest, kind: Kind, new: dict[str, Any], old: dict[str, Any]) -> Iterator[Finding]:
    """One finding for each immutable field that differs; `new` and `old` are whole objects.

    A difference that is only an omission inside the field is doubtful: the server may fill in what was there.
    """
    if not kind.core:
        return
    for field in kind.immutable:
        if "`immutable`" in field.unless and old.get("immutable") is not True:
            continue
        now, then = (_at(body, field.path) or field.default or None for body in (new, old))
        if now == then:
            continue
        if now is None or then is None or _differ(now, then):
            yield _finding(manifest, field, "this field cannot be changed; the object must be deleted and made anew")
        else:
            message = "this field cannot be changed, and leaves something out: refused unless a default is the same"
            yield _finding(manifest, field, message, Confidence.LIKELY, Severity.WARNING)


def _at(value: Json, path: Path) -> Json:
    """The value at a path of names; None where there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _differ(new: Json, old: Json) -> bool:
    """Whether two values differ in what both say. An empty value says nothing, as Go compares."""
    if isinstance(new, dict) and isinstance(old, dict):
        return any(_differ(new[name], old[name]) for name in new.keys() & old.keys())
    if new == old or new in (None, "", {}, []) or old in (None, "", {}, []):
        return False
    if isinstance(new, list) and isinstance(old, list):
        return len(new) != len(old) or any(map(_differ, new, old))
    return not _same_amount(new, old)


def _same_amount(new: Json, old: Json) -> bool:
    """Whether two scalars are one quantity in two spellings."""
    try:
        return parse_quantity(new) == parse_quantity(old)
    except (QuantityError, TypeError):
        return False


def _finding(
    manifest: Manifest,
    field: Immutable,
    message: str,
    confidence: Confidence = Confidence.CERTAIN,
    severity: Severity = Severity.ERROR,
) -> Finding:
    from blueprint.check.locate import field_path

    return Finding(
        code="SCH115",
        message=message,
        source=manifest.source,
        severity=severity,
        confidence=confidence,
        object=manifest.ref,
        path=field_path(*field.path),
        fix=f"allowed only when {field.unless}" if field.unless and "`immutable`" not in field.unless else "",
    )
