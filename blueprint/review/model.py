"""What a review says, as values: statements with a class of risk, and everything that stands beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from blueprint.finding import Finding, Ref, Source
from blueprint.objects import Manifest


class Risk(StrEnum):
    """Classes of risk, the least first. `unknown` is what no row of the table speaks of: never taken for nothing."""

    NONE = "none"
    UNKNOWN = "not judged"
    RESTART = "rolling restart"
    CAPACITY = "capacity and scheduling"
    TRAFFIC = "traffic and SLO"
    SECURITY = "security"
    DESTRUCTIVE = "destructive"

    @property
    def rank(self) -> int:
        """Its place in the order, 0 for `none`."""
        return _RANKS[self]

    @property
    def short(self) -> str:
        """The word for tables and options: restart, capacity, traffic, security, destructive."""
        return self.name.lower()


_RANKS = {risk: rank for rank, risk in enumerate(Risk)}


@dataclass(frozen=True, slots=True)
class Pair:
    """One object on both sides; None where it is not there. `renamed`: the head has it under another identity."""

    cluster: str
    old: Manifest | None
    new: Manifest | None
    renamed: bool = False

    @property
    def there(self) -> Manifest:
        """The object of the head, or of the base where it is removed."""
        found = self.new or self.old
        assert found is not None  # noqa: S101 - a pair has at least one side
        return found

    @property
    def ref(self) -> Ref:
        """The identity; that of the head where the two differ."""
        return self.there.ref


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a change does to one object.

    `rule` is the row or the code that says so (`pvc-removed`), `source` where that is known from, `path` the field.
    `old` and `new` are the places of the object on both sides, None where it is not there.
    """

    risk: Risk
    rule: str
    words: str
    ref: Ref
    cluster: str = ""
    path: str = ""
    source: str = ""
    old: Source | None = None
    new: Source | None = None

    @property
    def place(self) -> Source | None:
        """Where to look: in the head, or in the base for what is gone."""
        return self.new or self.old


@dataclass(frozen=True, slots=True)
class Row:
    """The same statement about several clusters, or about several objects: `count` of them; `statement` is the first.

    In `words` and `refs` the cluster's name is left open where it is all that differs.
    """

    statement: Statement
    clusters: tuple[str, ...]
    count: int
    refs: tuple[Ref, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Objects by what happened to them. `form` counts those that are written otherwise and mean the same, `moved` those
    in another file."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    renamed: int = 0
    form: int = 0
    moved: int = 0
    same: int = 0

    @property
    def touched(self) -> int:
        """Objects of which anything is different in meaning."""
        return self.added + self.changed + self.removed + self.renamed


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the change means for somebody: a sentence, the cluster, and who is meant (a team, a job)."""

    risk: Risk
    words: str
    cluster: str
    subject: str
    kind: str
    """`quota`, `job`, `canary`, `wave`."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Findings on both sides: those that come new, those that are gone, and how many stay.

    `whole` is False where the trees are so large that only the objects that changed were judged.
    """

    new: tuple[Finding, ...] = ()
    fixed: tuple[Finding, ...] = ()
    old: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Review:
    """Everything that a review of `base` against `head` found."""

    base: str
    head: str
    clusters: tuple[str, ...]
    counts: Counts
    statements: tuple[Statement, ...]
    meanings: tuple[Meaning, ...] = ()
    waves: tuple[Meaning, ...] = ()
    radius: tuple[str, ...] = ()
    findings: Judged = field(default_factory=Judged)
    place: str = ""
    """The path in the repository that files of the head are below."""

    @property
    def risk(self) -> Risk:
        """The highest class of all statements and meanings."""
        everything = [each.risk for each in self.statements] + [each.risk for each in self.meanings]
        return max(everything, key=lambda risk: risk.rank, default=Risk.NONE)

    def fails(self, limit: Risk | None) -> bool:
        """Whether the review ends with exit code 1: a new finding that fails, or a class at or above the limit."""
        if any(finding.fails for finding in self.findings.new):
            return True
        return limit is not None and self.risk.rank >= limit.rank


def rows(statements: Iterable[Statement]) -> list[Row]:
    """Statements that say the same as one row: over clusters first, then over objects of one kind; highest class first.

    An object whose name has the cluster's in it (`prod-a-queues`, an Application) is the same one in each cluster. Rows
    of a class stand in the order in which their statements came.
    """
    over_clusters: dict[tuple[object, ...], list[Statement]] = {}
    for each in statements:
        key = (each.risk, each.rule, of_any(each.words, each.cluster), _ref_of_any(each), each.path)
        over_clusters.setdefault(key, []).append(each)
    over_objects: dict[tuple[object, ...], list[list[Statement]]] = {}
    for same in over_clusters.values():
        first, clusters = same[0], tuple(each.cluster for each in same)
        kind = (first.ref.group, first.ref.kind)
        over_objects.setdefault((first.risk, first.rule, _words(same), kind, clusters), []).append(same)
    found = [
        Row(
            groups[0][0],
            tuple(dict.fromkeys(each.cluster for each in groups[0])),
            sum(len(group) for group in groups),
            tuple(dict.fromkeys(_ref(group) for group in groups)),
            _words(groups[0]),
        )
        for groups in over_objects.values()
    ]
    return sorted(found, key=lambda row: -row.statement.risk.rank)


_ANY = "{cluster}"


def of_any(text: str, cluster: str) -> str:
    """A text with the cluster's own name left open."""
    if not cluster or cluster not in text:
        return text
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(cluster)}(?![A-Za-z0-9])", _ANY, text)


def _ref_of_any(each: Statement) -> Ref:
    return each.ref._replace(name=of_any(each.ref.name, each.cluster))


def _ref(same: Sequence[Statement]) -> Ref:
    return same[0].ref if len({each.ref for each in same}) == 1 else _ref_of_any(same[0])


def _words(same: Sequence[Statement]) -> str:
    first = same[0]
    return first.words if len({each.words for each in same}) == 1 else of_any(first.words, first.cluster)


CauseKey = tuple[object, ...]
"""What statements and meanings are found again by."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Places in specs, as the head was named: from where a review runs, or from the root of the platform.

    `documents` are by rendered file, as a review names it. `found` are by what is said, with the words that were said.
    """

    documents: Mapping[str, Source] = field(default_factory=dict)
    found: Mapping[CauseKey, Sequence[tuple[str, Source]]] = field(default_factory=dict)

    def of(self, said: Statement | Meaning | None) -> Source | None:
        """The line that caused a statement or a meaning, None where nobody knows."""
        if said is None:
            return None
        for key in cause_keys(said):
            if places := self.found.get(key):
                return next((place for words, place in places if words == said.words), places[0][1])
        place = said.place if isinstance(said, Statement) else None
        return self.documents.get(place.file) if place else None


def cause_keys(said: Statement | Meaning) -> Iterator[CauseKey]:
    """From what names it best to what names it at all; a review of one cluster alone does not say which it is."""
    if isinstance(said, Meaning):
        yield said.kind, said.subject, said.cluster, said.words
        yield said.kind, said.subject, said.cluster
        return
    for cluster in dict.fromkeys((said.cluster, "")):
        yield said.ref, cluster, said.path
    for cluster in dict.fromkeys((said.cluster, "")):
        yield said.ref, cluster
