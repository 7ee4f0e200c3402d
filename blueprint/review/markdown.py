"""A review as Markdown: a comment on a pull request that is edited in place, or the summary of a CI step.

The hidden marker in the first line is how the comment is found again. GitHub takes 65,536 characters in a comment and
1,024 KiB in the summary of a step; what does not fit is folded first, then cut, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from blueprint.finding import Finding
from blueprint.report.markdown import plain
from blueprint.report.totals import counted
from blueprint.review.entries import Entry, entries, findings, totals, verdict, waves
from blueprint.review.model import Causes, Review, Risk

MARKER = "<!-- blueprint:review -->"
COMMENT = 60_000
"""Characters; docs.github.com says 65,536, and some of them are lost to escapes."""
SUMMARY = 1_000_000
"""Bytes; docs.github.com, workflow commands: 1,024 KiB a step."""

_OPEN = 12
"""Rows that stand open; what follows is folded."""


def markdown(review: Review, causes: Causes | None = None, *, limit: int = COMMENT) -> str:
    """The review; at most `limit` bytes of UTF-8, which is never more characters than that."""
    told, causes = entries(review), causes or Causes()
    head = [
        MARKER,
        f"### {review.risk.short.upper()}: {plain(verdict(review))}",
        "",
        f"{plain(totals(review))} · findings: {plain(findings(review))}",
        "",
    ]
    tail = _tail(review)
    room = limit - _size(head) - _size(tail) - 400
    body: list[str] = []
    loud = [entry for entry in told if entry.risk is not Risk.NONE]
    quiet = [entry for entry in told if entry.risk is Risk.NONE]
    first, rest = loud[:_OPEN], loud[_OPEN:]
    left = _table(first, causes, body, room)
    for risk, group in groupby(rest, key=lambda entry: entry.risk):
        left += _folded(f"{risk.value}: more", list(group), causes, body, room)
    left += _folded("changes that mean nothing", quiet, causes, body, room)
    if left:
        body.append(f"\n… and {counted(left, 'more row')} left out here; `blueprint review -o json` has all.")
    return "\n".join((*head, *body, *tail)) + "\n"


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


def _table(told: Sequence[Entry], causes: Causes, body: list[str], room: int) -> int:
    """Add a table with as many rows as there is room for; how many are left out."""
    if not told:
        return 0
    lines = ["| | what | where |", "|---|---|---|"]
    for number, entry in enumerate(told):
        row = f"| **{entry.risk.short}** | {plain(entry.words)} | {_where(entry, causes)} |"
        if _size(body) + _size(lines) + _size([row]) > room:
            if number:
                body += lines
            return len(told) - number
        lines.append(row)
    body += lines
    return 0


def _folded(title: str, told: Sequence[Entry], causes: Causes, body: list[str], room: int) -> int:
    if not told:
        return 0
    opening = ["", f"<details><summary>{plain(title)} ({len(told)})</summary>", ""]
    inside: list[str] = []
    left = _table(told, causes, inside, room - _size(body) - _size(opening) - 20)
    if inside:
        body += [*opening, *inside, "", "</details>"]
    return left


def _where(entry: Entry, causes: Causes) -> str:
    parts = [plain(entry.where)] if entry.where else []
    if (cause := causes.of(entry.told)) is not None:
        parts.append(f"<code>{plain(f'{cause.file}:{cause.line}')}</code>")
    if entry.place is not None:
        parts.append(f"<code>{plain(entry.place.file)}</code>")
    return "<br>".join(parts)


def _tail(review: Review) -> list[str]:
    lines = [""]
    if review.radius or review.waves:
        lines += [*(f"- {plain(words)}" for words in review.radius[:8])]
        plans = waves(review)
        lines += [f"- {plain(words)}" for words in plans[:8]]
        lines += [f"- and {len(plans) - 8} more plans of waves"] if len(plans) > 8 else []
    new = sorted(review.findings.new, key=lambda finding: not finding.fails)
    if new:
        lines += ["", f"<details><summary>new findings ({len(new)})</summary>", ""]
        lines += [_finding(finding) for finding in new[:50]]
        lines += [f"- and {len(new) - 50} more"] if len(new) > 50 else []
        lines += ["", "</details>"]
    return lines


def _finding(finding: Finding) -> str:
    place = f" <code>{plain(str(finding.source))}</code>" if finding.source else ""
    headline = (finding.message.splitlines() or [""])[0][:300]
    return f"- **{finding.code}** {finding.severity.value}: {plain(headline)}{place}"
