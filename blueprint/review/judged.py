"""Findings on both sides: what comes new, what is gone, and what was there all along."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.check.config import NAME, Config, load
from blueprint.check.locate import located
from blueprint.check.parse import Reading
from blueprint.finding import Finding, Report, Severity, fingerprints
from blueprint.review.model import Judged
from blueprint.review.sides import Side, Sides

LARGE = 2500
"""Objects of a side from which only those that changed are judged, each by itself: a check of all takes seconds."""


def judged(sides: Sides, pack: SchemaPack, config: Config | None = None) -> Judged:
    """Check both sides, whole where they are small enough, and compare by fingerprint."""
    if not sides.changed and sides.base.built is None and sides.head.built is None:
        return Judged()
    setup = config or Config()
    whole = not any(_large(side) for side in (sides.base, sides.head))
    old, new = (_checked(side, sides, pack, setup, whole=whole) for side in (sides.base, sides.head))
    before, after = (dict(zip(fingerprints(found), found, strict=True)) for found in (old, new))
    return Judged(
        new=tuple(finding for mark, finding in after.items() if mark not in before),
        fixed=tuple(finding for mark, finding in before.items() if mark not in after),
        old=sum(mark in before for mark in after),
        whole=whole,
    )


def configuration(sides: Sides) -> Config:
    """What the repository says about itself, where the head lies in one that does."""
    place = Path(sides.head.place or ".", NAME)
    return load(place) if place.is_file() else Config()


def _large(side: Side) -> bool:
    """Whether a side has more objects than are judged whole; counted no further than that."""
    if side.built is not None:
        return len(side.built.manifests) > LARGE
    counted = 0
    for path in side.files:
        counted += side.count(path)
        if counted > LARGE:
            return True
    return False


def _checked(side: Side, sides: Sides, pack: SchemaPack, config: Config, *, whole: bool) -> Sequence[Finding]:
    reading: Reading = side.whole if whole else side.of(p for p in sides.changed if p in side.files)
    rules = tree_rules(closed=config.closed_kinds, versions=config.versions) if whole else ()
    outcome = validate([*reading.manifests, *reading.aside], pack, tree_rules=rules)
    named = {finding.source.file for finding in outcome.findings if finding.source} & side.files.keys()
    texts = {path: side.files[path].decode("utf-8", "replace") for path in named}
    found = Report.of([*reading.findings, *located(outcome.findings, texts, Path("/nonexistent"))]).findings
    return [finding for finding in found if finding.severity is not Severity.NOTE and not config.ignores(finding)]
