"""A review from two names to everything that is said: each step once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blueprint.catalog.schemas import SchemaPack
from blueprint.objects import Manifest
from blueprint.review import radius
from blueprint.review.around import Around
from blueprint.review.arrivals import hidden
from blueprint.review.beside import beside
from blueprint.review.changes import Judge
from blueprint.review.judged import configuration, judged
from blueprint.review.lines import placed
from blueprint.review.meaning import meanings, places_differ
from blueprint.review.model import Counts, Judged, Meaning, Pair, Review, Risk, Statement
from blueprint.review.order import plans
from blueprint.review.pairs import paired, places, renames
from blueprint.review.sides import Sides, sides

_DEFINING = (b"CustomResourceDefinition", b"ConstraintTemplate")


def run(base: str, head: str, *, findings: bool = True, lines: bool = False) -> Review:
    """Review two sides; raises UsageError for one that is not there. `lines`: statements stand on lines of fields."""
    with sides(base, head) as opened:
        found = compare(opened, findings=findings)
        return placed(found, opened) if lines else found


def compare(opened: Sides, *, findings: bool = True, shipped: SchemaPack | None = None) -> Review:
    """Review two sides that are open; `shipped` is the pack to start from, for who reviews many times."""
    pack = (shipped or SchemaPack.shipped()).with_crds(opened.head.holding(_DEFINING).manifests)
    old, new = opened.manifests()
    where = places(opened, *_known(opened, old, new))
    pairs = renames(paired(old, new, where), pack)
    around = Around(opened, where, pack)
    judge = Judge(around)
    broken = unreadable(opened)
    said = [(pair, judge.statements(pair)) for pair in pairs if pair.new or pair.there.source.file not in broken]
    statements = [statement for _, found in said for statement in found]
    loud = [pair for pair, found in said if any(each.risk is not Risk.NONE for each in found)]
    quiet = [pair for pair, found in said if places_differ(pair) and all(each.risk is Risk.NONE for each in found)]
    return Review(
        base=opened.base.name,
        head=opened.head.name,
        clusters=tuple(sorted({where.cluster(m) for m in (*old, *new)} - {""})),
        counts=_counts(said, opened, (old, new)),
        statements=tuple(statements),
        meanings=(
            *(*broken.values(), *hidden(opened).values(), *beside(opened)),
            *meanings(opened, [*loud, *quiet], where),
        ),
        waves=tuple(plans(opened, pairs, where)),
        radius=tuple(radius.words(loud, around)),
        findings=judged(opened, pack, configuration(opened)) if findings else Judged(),
        place=opened.head.place,
    )


def unreadable(opened: Sides) -> dict[str, Meaning]:
    """Files of the head that cannot be read: what they hold is neither there nor removed."""
    return {
        finding.source.file: Meaning(
            Risk.UNKNOWN, f"{finding.source} cannot be read: {finding.message.splitlines()[0]}", "", "", "file"
        )
        for finding in reversed(opened.findings())
        if finding.fails and finding.source is not None
    }


def _known(opened: Sides, old: Sequence[Manifest], new: Sequence[Manifest]) -> Iterable[Sequence[Manifest]]:
    """What tells which folders are clusters: everything that changed, and what stands once in a cluster."""
    if opened.base.clusters or opened.head.clusters:
        return ()
    once = (b"kueue.x-k8s.io", b"argocd-cm", b"kind: StorageClass")
    return ([*side.holding(once).manifests, *found] for side, found in ((opened.base, old), (opened.head, new)))


def _counts(
    said: Sequence[tuple[Pair, Sequence[Statement]]], opened: Sides, both: tuple[Sequence[Manifest], Sequence[Manifest]]
) -> Counts:
    added = sum(pair.old is None for pair, _ in said)
    removed = sum(pair.new is None for pair, _ in said)
    renamed = sum(pair.renamed for pair, _ in said)
    paired_ = [(pair, found) for pair, found in said if pair.old and pair.new and not pair.renamed]
    changed = sum(bool(found) for _, found in paired_)
    moved = sum(pair.old.source.file != pair.new.source.file for pair, _ in paired_ if pair.old and pair.new)
    silent = [pair for pair, found in paired_ if not found]
    form = sum(pair.old.body != pair.new.body for pair in silent if pair.old and pair.new)
    same = opened.unchanged + len(both[1]) - added - renamed - changed - form
    return Counts(added, changed, removed, renamed, form, moved, max(0, same))
