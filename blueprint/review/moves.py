"""Verdicts about upgrades for people and programs, and the patch that does what can be done by writing."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blueprint.check.locate import locate
from blueprint.check.rewrite import rewritten
from blueprint.finding import Edit, Source
from blueprint.report.text import printable
from blueprint.report.totals import counted
from blueprint.review.upgrade import Move, Need, Verdict

VERSION = 1
_MOST = 8


def text(moves: Sequence[Move], *, all_rows: bool = False) -> str:
    """Each move with its verdict and what it needs; ends with a newline."""
    lines: list[str] = []
    for each in moves:
        came = f"{each.before} → " if each.before else ""
        lines.append(f"{each.verdict.value.upper():<8} {each.component} {came}{each.after}   {_summary(each)}")
        told = _folded(each.needs)
        shown = told if all_rows else told[:_MOST]
        lines += [_line(*row) for row in shown]
        if len(told) > len(shown):
            lines.append(f"          … and {len(told) - len(shown)} more; --all shows them")
        if each.sources:
            lines.append(f"          read from {', '.join(each.sources)}")
    return "\n".join(lines) + "\n"


def _summary(found: Move) -> str:
    patches = sum(bool(need.patch) for need in found.needs)
    written = f", {counted(patches, 'patch', 'patches')}: --patch writes them" if patches else ""
    return f"{counted(found.objects, 'object')} of it in this tree{written}"


def _folded(needs: Iterable[Need]) -> list[tuple[Need, int]]:
    """Needs that say the same of the same object in several clusters, as one with their number."""
    found: dict[tuple[object, ...], tuple[Need, int]] = {}
    for need in needs:
        key = need.verdict, need.object, need.words
        first, count = found.get(key, (need, 0))
        found[key] = first, count + 1
    return list(found.values())


def _line(need: Need, count: int) -> str:
    about = f"{need.object}: " if need.object else ""
    place = f"  {need.source}" if need.source else ""
    times = f" ×{count}" if count > 1 else ""
    return f"  {need.verdict.value:<8}{printable(about + need.words)}{times}{printable(place)}"


def document(moves: Sequence[Move]) -> dict[str, Any]:
    """The verdicts as plain JSON values (version 1: within it, fields are only added)."""
    return {
        "schema": VERSION,
        "moves": [
            {
                "component": each.component,
                "before": each.before or None,
                "after": each.after,
                "verdict": each.verdict.value,
                "objects": each.objects,
                "sources": list(each.sources),
                "needs": [_need(need) for need in each.needs],
            }
            for each in moves
        ],
    }


def _need(need: Need) -> dict[str, Any]:
    ref, place = need.object, need.source
    return {
        "verdict": need.verdict.value,
        "words": need.words,
        "object": {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name} if ref else None,
        "source": {"file": place.file, "line": place.line} if place else None,
        "apiVersion": need.patch or None,
        "patch": [_operation(edit) for edit in need.edits],
        "reason": need.reason or None,
    }


def _operation(edit: Edit) -> dict[str, Any]:
    value = {"value": json.loads(edit.value)} if edit.value else {}
    return {"op": edit.op, "path": edit.path, **({"from": edit.source} if edit.source else {}), **value}


def placed(moves: Iterable[Move], base: Path = Path()) -> list[Move]:
    """The same moves, with needs that stand on the line of the field that they mean."""
    texts: dict[str, str] = {}
    return [replace(each, needs=tuple(_placed(need, texts, base) for need in each.needs)) for each in moves]


def _placed(need: Need, texts: dict[str, str], base: Path) -> Need:
    if not need.path or need.source is None or not need.source.line:
        return need
    file = need.source.file
    try:
        text = texts[file] if file in texts else texts.setdefault(file, (base / file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return need
    return replace(need, source=locate(text, need.source, need.path))


@dataclass(frozen=True, slots=True)
class Patch:
    """A unified diff, "" for none, and the needs that it leaves: their files are built as edits do not know."""

    text: str
    left: tuple[Need, ...] = ()


def patch(moves: Iterable[Move], base: Path = Path()) -> Patch:
    """The diff that writes every object that needs no more than writing: its version, and the fields that move."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    left: list[Need] = []
    for need in dict.fromkeys(need for each in moves for need in each.needs if need.patch and need.source):
        assert need.source is not None and need.object is not None  # noqa: S101 - an object that is written again
        file = need.source.file
        if file not in before:
            before[file] = after[file] = (base / file).read_text("utf-8")
        written = rewritten(after[file], need.object, need.edits)
        if written is None and len(need.edits) == 1:
            written = _versioned(after[file], need.source, need.patch)
        if written is None:
            left.append(need)
        else:
            after[file] = written
    return Patch("".join(_diff(file, before[file], after[file]) for file in sorted(before)), tuple(left))


def _versioned(text: str, source: Source, version: str) -> str | None:
    """Only the version, in text of any form; it stands on the line where it stood, for nothing else was written."""
    lines = text.splitlines(keepends=True)
    number = locate(text, Source(source.file, source.line, 1), "apiVersion").line
    line = lines[number - 1]
    head, found, rest = line.partition("apiVersion")
    if not found:
        return None
    quote = '"' if rest.lstrip().startswith('"') else ""  # JSON
    ending = rest[len(rest.rstrip("\n")) :]
    tail = "," if rest.rstrip().endswith(",") else ""
    lines[number - 1] = f"{head}apiVersion{quote}: {quote}{version}{quote}{tail}{ending}"
    return "".join(lines)


def _diff(file: str, before: str, after: str) -> str:
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(difflib.unified_diff(old, new, f"a/{file}", f"b/{file}"))


def worst(moves: Iterable[Move]) -> Verdict:
    """The worst verdict of all."""
    ranks = {verdict: rank for rank, verdict in enumerate(Verdict)}
    return max((each.verdict for each in moves), key=lambda each: ranks[each], default=Verdict.SAFE)
