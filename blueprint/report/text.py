"""Findings as text for a terminal: the place at the right, the reason below, repetitions folded."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from blueprint.finding import Finding, Ref, Report, Severity
from blueprint.report.totals import Totals, counted

_INDENT = " " * 8
_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "33", Severity.NOTE: "36"}
_DIM, _BOLD = "2", "1"


def wants_colour(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether to colour what is written to `stream`: a terminal, and nobody objects (https://no-color.org)."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def text(report: Report, *, width: int = 100, colour: bool = False, each: int = 10) -> str:
    """All findings, "" for none, in the order of the report.

    The same words about several places are one entry that lists the places; of one code at most `each` entries are
    shown and the rest counted. Lines are wrapped at `width` columns where they have blanks.
    """
    groups, hidden = grouped(report, each)
    entries = ["\n".join(_entry(same, width, colour)) for same in groups]
    entries += [f"{code}   … and {number:,} more; -o json lists all" for code, number in sorted(hidden.items())]
    return "\n".join(entries) + "\n" if entries else ""


def grouped(report: Report, each: int) -> tuple[list[list[Finding]], Counter[str]]:
    """Findings that say the same of several places together, and by code how many are left out of those.

    Of one code at most `each` groups are kept.
    """
    folded: dict[tuple[object, ...], list[Finding]] = {}
    for finding in report.findings:
        key = (finding.code, finding.severity, finding.message, finding.fix)
        folded.setdefault(key, []).append(finding)
    shown: Counter[str] = Counter()
    hidden: Counter[str] = Counter()
    groups: list[list[Finding]] = []
    for same in folded.values():
        code = same[0].code
        if shown[code] < each:
            shown[code] += 1
            groups.append(same)
        else:
            hidden[code] += len(same)
    return groups, hidden


def closing(report: Report, totals: Totals, seconds: float | None = None) -> str:
    """The last line: what was looked at, how many findings of which severity, and how long it took."""
    parts = []
    if totals.objects or totals.clusters:
        where = f" in {counted(totals.clusters, 'cluster')}" if totals.clusters else ""
        parts.append(counted(totals.objects, "object") + where)
    severities = Counter(f.severity for f in report.findings)
    detail = ", ".join(counted(severities[s], s.value) for s in Severity if severities[s])
    parts.append(f"{counted(len(report.findings), 'finding')} ({detail})" if detail else "no findings")
    if totals.silenced:
        parts.append(f"{totals.silenced:,} silenced")
    if seconds is not None:
        parts.append(f"{seconds:.1f} s")
    return " · ".join(parts) + "\n"


def printable(value: str) -> str:
    """`value` without the power to move the cursor, change colours or turn the reading direction."""
    if value.isprintable():
        return value
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)


def _entry(same: list[Finding], width: int, colour: bool) -> Iterator[str]:
    first = same[0]
    headline, *details = first.message.splitlines() or [""]
    label = f"{first.severity.value:<7}"
    start = f"{first.code:<7} {label} "
    place = printable(str(first.source)) if first.source else ""
    lines = _wrapped(printable(headline), width - len(start))
    gap = width - len(start) - len(lines[0]) - len(place)
    beside = place and len(lines) == 1 and gap >= 2
    tail = " " * gap + _paint(place, _DIM, colour) if beside else ""
    yield (
        f"{_paint(f'{first.code:<7}', _BOLD, colour)} {_paint(label, _COLOURS[first.severity], colour)} "
        f"{lines[0]}{tail}".rstrip()
    )
    yield from (" " * len(start) + line for line in lines[1:])
    if place and not beside:
        yield _INDENT + _paint(place, _DIM, colour)
    subject = " · ".join(filter(None, (_named(first.object), printable(first.path))))
    if subject:
        yield _INDENT + subject
    yield from ((_INDENT + printable(line)).rstrip() for line in details)
    if first.fix:
        fix = _wrapped(f"fix: {printable(' '.join(first.fix.split()))}", width - len(_INDENT))
        yield from (_INDENT + line for line in fix)
    if len(same) > 1:
        yield from (_INDENT + line for line in _others(same[1:], width - len(_INDENT)))


def _named(ref: Ref | None) -> str:
    return printable(str(ref)) if ref else ""


def _others(same: Iterable[Finding], width: int) -> list[str]:
    """Where else: up to three places, or objects where no place is known."""
    known = dict.fromkeys(str(f.source or f.object or "") for f in same)
    places = [printable(place) for place in known if place]
    if not places:
        return []
    more = f" and {len(places) - 3:,} more" if len(places) > 3 else ""
    return _wrapped(f"also: {', '.join(places[:3])}{more}", width)


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, max(width, 20), break_long_words=False, break_on_hyphens=False) or [""]


def _paint(value: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{value}\x1b[0m" if colour and value else value
