"""What `why` found out, for people and for programs."""

from __future__ import annotations

from typing import Any

from blueprint.report.text import printable
from blueprint.report.totals import counted
from blueprint.review.why import Answer, Line

VERSION = 1
_WIDTH = 100


def text(found: Answer) -> str:
    """The answer in lines; ends with a newline."""
    asked = found.asked
    lines = [f"{asked.place}  {printable(asked.text.strip())}"]
    if found.document is not None:
        lines.append(f"  the object comes from {found.document.file}:{found.document.line}")
    lines += [f"  {_line(each)}" for each in found.lines]
    for value in found.fixed:
        lines.append(
            f"  {value.place}: no other value than {printable(value.written)} is valid alone: nothing is found out"
        )
    if not found.lines and not found.fixed:
        lines.append(f"  {_nothing(found)}")
    lines.append(f"  {counted(found.tried, 'rendering')}, each with one value changed")
    return "\n".join(lines) + "\n"


def _line(each: Line) -> str:
    shown = printable(each.text.strip())
    return f"{each.place}  {shown if len(shown) <= _WIDTH else shown[: _WIDTH - 1] + '…'}"


def _nothing(found: Answer) -> str:
    if found.document is None:
        return "no rendered line depends on this line"
    return f"no value in {', '.join(found.looked)} decides this line: it is the same for all"


def document(found: Answer) -> dict[str, Any]:
    """The answer as plain JSON values (version 1: within it, fields are only added)."""
    return {
        "schema": VERSION,
        "asked": _place(found.asked),
        "document": {"file": found.document.file, "line": found.document.line} if found.document else None,
        "lines": [_place(each) for each in found.lines],
        "fixed": [{"file": v.place.file, "line": v.place.line, "value": v.written} for v in found.fixed],
        "looked": list(found.looked),
        "renderings": found.tried,
    }


def _place(each: Line) -> dict[str, Any]:
    return {"file": each.place.file, "line": each.place.line, "text": each.text}
