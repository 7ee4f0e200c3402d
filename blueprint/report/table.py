"""What was rendered and what it changed, as text."""

from __future__ import annotations

from collections.abc import Iterable

from blueprint.report.text import printable
from blueprint.report.totals import Application, Changes, counted


def rendered(applications: Iterable[Application]) -> str:
    """A table of the Applications, cluster by cluster in the order given, "" for none."""
    listed = list(applications)
    if not listed:
        return ""
    rows = [("cluster", "application", "objects", "waves")]
    previous = None
    for application in listed:
        cluster = "" if application.cluster == previous else printable(application.cluster)
        rows.append((cluster, printable(application.name), f"{application.objects:,}", f"{application.waves:,}"))
        previous = application.cluster
    clusters = counted(len({application.cluster for application in listed}), "cluster")
    objects = f"{sum(application.objects for application in listed):,}"
    rows.append((clusters, counted(len(listed), "application"), objects, ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:{mark}{w}}" for cell, mark, w in zip(row, "<<>>", widths, strict=True)) for row in rows]
    rule = "─" * len(lines[0])
    return "\n".join(line.rstrip() for line in (lines[0], rule, *lines[1:-1], rule, lines[-1])) + "\n"


def changes(made: Changes, *, each: int = 20) -> str:
    """One line a file (`+` added, `~` changed, `-` removed), at most `each` of a kind, then the sums."""
    if not made:
        return "nothing changed\n"
    lines: list[str] = []
    sums: list[str] = []
    for mark, what, paths in (
        ("+", "added", made.added),
        ("~", "changed", made.changed),
        ("-", "removed", made.removed),
    ):
        lines += [f"{mark} {printable(path)}" for path in paths[:each]]
        if len(paths) > each:
            lines.append(f"{mark} … and {len(paths) - each:,} more")
        if paths:
            sums.append(f"{len(paths):,} {what}")
    return "\n".join((*lines, ", ".join(sums) or "only blueprint.lock changed")) + "\n"
