"""Of two findings with one cause, one is told: a word that YAML reads as another type than is asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from blueprint.finding import Finding

_SURPRISE, _WRONG_TYPE = "YML201", "SCH106"


def joined(findings: Iterable[Finding]) -> list[Finding]:
    """Join a wrong type (SCH106) with the surprise of YAML (YML201) that made it, the value behind the same key."""
    found = list(findings)
    surprises = [finding for finding in found if finding.code == _SURPRISE]
    wrong: dict[object, list[Finding]] = defaultdict(list)
    for finding in found if surprises else ():
        if finding.code == _WRONG_TYPE:
            wrong[_line(finding)].append(finding)
    causes: dict[Finding, Finding] = {}
    for surprise in sorted(surprises, key=_column):
        before = [finding for finding in wrong[_line(surprise)] if _column(finding) <= _column(surprise)]
        if before:
            causes.setdefault(max(before, key=_column), surprise)
    gone = set(causes.values())
    return [_with(f, causes[f]) if f in causes else f for f in found if f not in gone]


def _line(finding: Finding) -> tuple[str, int] | None:
    return finding.source and finding.source[:2]


def _column(finding: Finding) -> int:
    return finding.source.column if finding.source else 0


def _with(wrong: Finding, surprise: Finding) -> Finding:
    fix = surprise.fix.partition(",")[0] if "a string" in wrong.message else surprise.fix
    return replace(wrong, message=f"{wrong.message}: {surprise.message}", fix=fix)
