"""Findings as Markdown, for a comment on a pull request or the summary of a CI job."""

from __future__ import annotations

import re

from blueprint.finding import Finding, Report
from blueprint.report.text import closing, grouped, printable
from blueprint.report.totals import Totals, counted

LIMIT = 60_000
"""Characters; GitHub takes 65,536 in a comment, and 1,024 KiB in the summary of a step."""

# Letters with a meaning in Markdown, in HTML, or to the forges (mentions and numbers of issues).
_SPECIAL = re.compile(r"[&<>|`*_\[\]~\\!@#]")


def markdown(report: Report, totals: Totals, *, limit: int = LIMIT, each: int = 10) -> str:
    """A headline and one table; the same words about several places are one row, of one code at most `each` rows.

    What does not fit into `limit` characters is left out and counted.
    """
    head = f"**{plain(closing(report, totals).strip())}**\n"
    if not report.findings:
        return head
    lines = [head, "| | where | what |", "|---|---|---|"]
    room = limit - sum(len(line) + 1 for line in lines) - 100
    shown = 0
    for same in grouped(report, each)[0]:
        row = _row(same)
        if len(row) + 1 > room:
            break
        room -= len(row) + 1
        lines.append(row)
        shown += len(same)
    if left := len(report.findings) - shown:
        lines.append(f"\n… and {counted(left, 'more finding')}; `-o json` lists all.")
    return "\n".join(lines) + "\n"


def _row(same: list[Finding]) -> str:
    first = same[0]
    places = list(dict.fromkeys(str(f.source or "") for f in same))
    where = [f"<code>{plain(place)}</code>" for place in places[:3] if place]
    if len(places) > 3:
        where.append(f"and {len(places) - 3:,} more")
    headline, *details = first.message.splitlines() or [""]
    subject = " · ".join(filter(None, (str(first.object or ""), first.path)))
    what = [f"**{plain(headline)}**" if headline.strip() else ""]
    what += [f"<sub>{plain(subject)}</sub>"] if subject else []
    what += [plain(line) for line in details]
    what += [f"fix: {plain(' '.join(first.fix.split()))}"] if first.fix else []
    return f"| {first.severity.value} {plain(first.code)} | {'<br>'.join(where)} | {'<br>'.join(filter(None, what))} |"


def plain(text: str) -> str:
    """A text that is shown letter by letter."""
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", printable(text.strip()))
