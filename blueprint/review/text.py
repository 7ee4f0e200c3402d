"""The first screen of a review for a terminal: at most 40 lines, the worst first, with a verdict."""

from __future__ import annotations

import textwrap

from blueprint.report.text import printable
from blueprint.review.entries import Entry, entries, findings, totals, verdict, waves
from blueprint.review.model import Review, Risk

LINES = 40
_LABEL = 12
_COLOURS = {Risk.DESTRUCTIVE: "1;31", Risk.SECURITY: "31", Risk.TRAFFIC: "33", Risk.CAPACITY: "33", Risk.RESTART: "36"}


def text(review: Review, *, width: int = 100, colour: bool = False, lines: int | None = LINES) -> str:
    """The review, in at most `lines` lines (None for all of it); ends with a newline."""
    told = entries(review)
    head = [
        f"review {printable(review.base)} → {printable(review.head)}   {totals(review)}",
        f"{_paint(review.risk.short.upper(), review.risk, colour)}: {verdict(review)}",
        "",
    ]
    tail = _tail(review, width)
    loud = [entry for entry in told if entry.risk is not Risk.NONE]
    quiet = [entry for entry in told if entry.risk is Risk.NONE]
    room = None if lines is None else lines - len(head) - len(tail) - 2
    body: list[str] = []
    shown = 0
    for entry in (*loud, *quiet):
        block = _block(entry, width, colour, most=None if lines is None else 2)
        if room is not None and len(body) + len(block) > room:
            break
        body += block
        shown += 1
    rest = (*loud, *quiet)[shown:]
    if rest:
        classes: dict[str, int] = {}
        for entry in rest:
            classes[entry.risk.short] = classes.get(entry.risk.short, 0) + 1
        counted = ", ".join(f"{number} {name}" for name, number in classes.items())
        body.append(f"… and {len(rest)} more rows ({counted}); --all shows them")
    parts = (*head, *body, *([""] if body else []), *tail)
    return "\n".join(line.rstrip() for line in parts) + "\n"


def _block(entry: Entry, width: int, colour: bool, most: int | None) -> list[str]:
    label = entry.risk.short.upper() if entry.risk is not Risk.NONE else "nothing"
    words = printable(entry.words) + (f"  [{printable(entry.where)}]" if entry.where else "")
    wrapped = textwrap.wrap(words, max(width - _LABEL - 1, 30), break_long_words=True, break_on_hyphens=False) or [""]
    if most is not None and len(wrapped) > most:
        wrapped = wrapped[:most]
        wrapped[-1] = wrapped[-1][: max(width - _LABEL - 3, 20)] + " …"
    first = f"{_paint(f'{label:<{_LABEL}}', entry.risk, colour)} {wrapped[0]}"
    return [first, *(" " * (_LABEL + 1) + line for line in wrapped[1:])]


def _tail(review: Review, width: int) -> list[str]:
    found = [("reaches", words) for words in review.radius[:4]]
    plans = waves(review)
    found += [("waves", words) for words in plans[:3]]
    if len(plans) > 3:
        found.append(("waves", f"and {len(plans) - 3} more plans"))
    found.append(("findings", findings(review)))
    for finding in [f for f in review.findings.new if f.fails][:3]:
        found.append(("", f"{finding.code} {finding.message.splitlines()[0]}  {finding.source or ''}"))
    cut = max(width - _LABEL - 1, 30)
    lines = [f"{label:<{_LABEL}} {_cut(printable(words), cut)}" for label, words in found]
    return lines


def _cut(words: str, width: int) -> str:
    return words if len(words) <= width else words[: width - 2] + " …"


def _paint(value: str, risk: Risk, colour: bool) -> str:
    return f"\x1b[{_COLOURS[risk]}m{value}\x1b[0m" if colour and risk in _COLOURS else value
