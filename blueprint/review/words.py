"""Values in few words."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from blueprint.catalog.crds import Json
from blueprint.review.diff import MISSING, Edit, same

LONGEST = 60
"""Letters of a value in a sentence."""


def shown(value: Json) -> str:
    """A value in a sentence: text as it is, digests and what is long cut."""
    if value is MISSING:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = _digest(" ".join(value.split())) or '""'
    elif isinstance(value, int | float) or value is None:
        text = str(value) if value is not None else "null"
    elif isinstance(value, list) and all(isinstance(each, str | int) for each in value):
        text = ", ".join(shown(each) for each in value) or "nothing"
    else:
        text = _digest(orjson.dumps(value, default=str).decode().replace('"', "").replace(",", ", "))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def named(names: Sequence[str]) -> str:
    """A list of names in a sentence: the first two, and how many more."""
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _digest(text: str) -> str:
    head, at, tail = text.partition("@sha256:")
    return f"{head.rpartition('/')[2]}@{tail[:8]}…{tail[64:]}" if at and len(tail) >= 64 else text


def shown_pair(edit: Edit) -> tuple[str, str]:
    """Both values of an edit; of two lists only what is not in the other, of long texts where they part."""
    before, after = edit.before, edit.after
    if isinstance(before, list) and isinstance(after, list):
        gone = [each for each in before if not any(same(each, other) for other in after)]
        come = [each for each in after if not any(same(each, other) for other in before)]
        if gone or come:
            return (shown(gone) if gone else "nothing"), (shown(come) if come else "nothing")
        return f"{shown(before)} in this order", shown(after)
    if isinstance(before, str) and isinstance(after, str) and max(len(before), len(after)) > LONGEST:
        return _parting(before, after)
    return shown(before), shown(after)


def _parting(before: str, after: str) -> tuple[str, str]:
    left, right = before.split(), after.split()
    at = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    if "@sha256:" in before:
        return shown(before), shown(after)
    lead = "… " if at else ""
    return lead + (shown(" ".join(left[at : at + 8])) or "nothing"), lead + (shown(" ".join(right[at : at + 8])))
