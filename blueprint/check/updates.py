"""What an update may not do: change an immutable field, or break a rule that compares new with old."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blueprint.catalog.crds import ITEM, VALUE, Json, Path
from blueprint.catalog.schemas import Kind
from blueprint.finding import Confidence, Finding
from blueprint.objects import Manifest


def immutable(manifest: Manifest, kind: Kind, new: dict[str, Any], old: dict[str, Any]) -> Iterator[Finding]:
    """One finding for each immutable field of a built-in kind that differs; those of a CRD are CEL rules.

    `new` and `old` are whole objects as the server validates them.
    """
    from blueprint.check.locate import field_path

    if not kind.core:
        return
    for field in kind.immutable:
        condition = field.source.partition("; unless ")[2]
        if condition == "`immutable` is not true" and old.get("immutable") is not True:
            continue
        now, then = _at(new, field.path), _at(old, field.path)
        if now == then:
            continue
        message = "this field cannot be changed; the object must be deleted and made anew"
        fix = f"allowed only when {condition}" if condition and "immutable" not in condition else ""
        confidence = Confidence.CERTAIN
        if _leaves_out(now, then):
            message = "this field cannot be changed, and is left out now: refused unless its default is what it was"
            confidence = Confidence.LIKELY
        yield Finding(
            code="SCH115",
            message=message,
            source=manifest.source,
            confidence=confidence,
            object=manifest.ref,
            path=field_path(*field.path),
            fix=fix,
        )


def _leaves_out(new: Json, old: Json) -> bool:
    """Whether the new value differs only by what it does not say, which the server fills in before it compares."""
    if isinstance(new, dict) and isinstance(old, dict):
        return new.keys() <= old.keys() and all(_leaves_out(new.get(name), value) for name, value in old.items())
    return new == old or new in (None, "")


def _at(value: Json, path: Path) -> Json:
    """The value at a path of names; a missing one equals an empty one, as Go compares."""
    for step in path:
        if step in (ITEM, VALUE) or not isinstance(value, dict):
            return None
        value = value.get(step)
    return value or None
