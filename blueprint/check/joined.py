"""Of two findings with one cause, one is told: the one that says more of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from blueprint.finding import Finding

_SURPRISE, _WRONG_TYPE = "YML201", "SCH106"


def joined(findings: Iterable[Finding]) -> list[Finding]:
    """Join a wrong type (SCH106) with the surprise of YAML (YML201) that made it, the value behind the same key.

    Of two rules that say the same of one place, the one that says less is left out.
    """
    found = _once(list(findings))
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


def _once(found: list[Finding]) -> list[Finding]:
    """Leave out what another finding about the same object says better."""
    codes = {finding.code for finding in found}
    if not any(less in codes and more in codes for less, more in _SAYS_MORE):
        return found
    beside: dict[object, list[Finding]] = defaultdict(list)
    for finding in found:
        beside[finding.object, finding.source and finding.source.file].append(finding)
    return [
        finding
        for finding in found
        if not any(
            (less := _SAYS_MORE.get((finding.code, other.code))) and less(finding, other)
            for other in beside[finding.object, finding.source and finding.source.file]
        )
    ]


def _misspelt_image(without: Finding, unknown: Finding) -> bool:
    """A container has no image because the field with it is misspelt."""
    inside, _, _ = unknown.path.rpartition(".")
    return without.path == inside and without.message.endswith("has no image") and "`image`" in unknown.fix


def _mounted_twice(repeated: Finding, mount: Finding) -> bool:
    """A path is mounted twice: the item is there twice, too, for lists of mounts are told apart by the path."""
    return mount.path == f"{repeated.path}.mountPath" and "mounted twice" in mount.message


def _limit_without_cohort(rule: Finding, limit: Finding) -> bool:
    """A limit without a cohort, which a rule of the CRD says of the whole queue, and Kueue's own check of the field."""
    field = limit.path.rpartition(".")[2]
    return rule.message.startswith(f"{field} must be nil when cohort") and limit.message.startswith(f"{field} needs ")


_SAYS_MORE: Mapping[tuple[str, str], Callable[[Finding, Finding], bool]] = {
    ("NAT102", "SCH104"): _misspelt_image,
    ("SCH110", "NAT104"): _mounted_twice,
    ("CEL101", "KQ123"): _limit_without_cohort,
}
"""Pairs of codes, the first of which is left out where the second says the same, and when that is so."""


def _line(finding: Finding) -> tuple[str, int] | None:
    return finding.source and finding.source[:2]


def _column(finding: Finding) -> int:
    return finding.source.column if finding.source else 0


def _with(wrong: Finding, surprise: Finding) -> Finding:
    fix = surprise.fix.partition(",")[0] if "a string" in wrong.message else surprise.fix
    return replace(wrong, message=f"{wrong.message}: {surprise.message}", fix=fix)
