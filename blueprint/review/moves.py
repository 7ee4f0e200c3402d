"""Verdicts about upgrades for people and programs, and the patch that does what can be done by writing."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from blueprint.check.locate import locate
from blueprint.finding import Source
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
        "reason": need.reason or None,
    }


def patch(moves: Iterable[Move], base: Path = Path()) -> str:
    """A unified diff that writes the new `apiVersion` of every object that needs no more than that; "" for none."""
    wanted: dict[str, dict[int, str]] = defaultdict(dict)
    texts: dict[str, str] = {}
    for need in (need for each in moves for need in each.needs if need.patch and need.source):
        assert need.source is not None  # noqa: S101 - filtered above
        file = need.source.file
        if file not in texts:
            texts[file] = (base / file).read_text("utf-8")
        start = Source(file, need.source.line, 1)
        wanted[file][locate(texts[file], start, "apiVersion").line] = need.patch
    return "".join(_diff(file, texts[file], lines) for file, lines in sorted(wanted.items()))


def _diff(file: str, written: str, lines: dict[int, str]) -> str:
    before = written.splitlines(keepends=True)
    after = list(before)
    for number, version in lines.items():
        line = before[number - 1]
        head, found, rest = line.partition("apiVersion")
        if found:
            quote = '"' if rest.lstrip().startswith('"') else ""  # JSON
            ending = rest[len(rest.rstrip("\n")) :]
            tail = "," if rest.rstrip().endswith(",") else ""
            after[number - 1] = f"{head}apiVersion{quote}: {quote}{version}{quote}{tail}{ending}"
    return "".join(difflib.unified_diff(before, after, f"a/{file}", f"b/{file}"))


def worst(moves: Iterable[Move]) -> Verdict:
    """The worst verdict of all."""
    ranks = {verdict: rank for rank, verdict in enumerate(Verdict)}
    return max((each.verdict for each in moves), key=lambda each: ranks[each], default=Verdict.SAFE)
