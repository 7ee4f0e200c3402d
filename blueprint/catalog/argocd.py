"""What Argo CD knows about kinds: which have a health check, which it never looks at, and its order within a wave.

The table is generated from the sources by scripts/argocd_facts.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from blueprint.catalog.tables import table

GroupKind = tuple[str, str]
"""The group ("" for the core group) and the kind."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A check that Argo CD ships; `group` and `kind` may hold `*`.

    `statuses` are those that the check can set. A check that is `computed` also hands on a word from the object's own
    status. A wave waits while the status is Progressing, Suspended, Missing or Unknown, and fails on Degraded
    (gitops-engine pkg/sync/sync_context.go).
    """

    group: str
    kind: str
    by: str
    statuses: frozenset[str]
    computed: bool

    @property
    def can_suspend(self) -> bool:
        """Whether an object of this kind can hold back every later wave without anything being wrong."""
        return "Suspended" in self.statuses


def version() -> str:
    """The version of Argo CD that the table describes, without the `v`."""
    return str(table("argocd")["version"])


@cache
def _checks() -> dict[GroupKind, HealthCheck]:
    # Scripts come after functions in the table and replace them: that is their precedence.
    return {
        (row["group"], row["kind"]): HealthCheck(
            row["group"], row["kind"], row["by"], frozenset(row["statuses"]), row.get("computed", False)
        )
        for row in table("argocd")["health"]
    }


@cache
def health_check(group: str, kind: str) -> HealthCheck | None:
    """The check that decides the health of a kind, or None: Argo CD then calls every object of it done at once.

    An exact script goes before a wildcard, a wildcard before the functions in Go (util/lua/lua.go GetHealthScript).
    """
    exact = _checks().get((group, kind))
    if exact and exact.by == "lua":
        return exact
    for check in sorted(_checks().values(), key=lambda c: (c.group, c.kind)):
        if "*" in check.group + check.kind and fnmatchcase(group, check.group) and fnmatchcase(kind, check.kind):
            return check
    return exact


@cache
def checked_kinds() -> frozenset[GroupKind]:
    """Every kind that Argo CD judges by itself; `*` stands for any name."""
    return frozenset(_checks())


@cache
def sync_rank(kind: str) -> int:
    """The place of a kind within a wave, negative for the kinds that Argo CD sorts; 0, the last, for all others.

    Source: gitops-engine pkg/sync/sync_tasks.go, which looks at the kind alone, not at its group.
    """
    order = table("argocd")["kind_order"]
    return order.index(kind) - len(order) if kind in order else 0


@cache
def is_excluded(group: str, kind: str) -> bool:
    """Whether the shipped `resource.exclusions` make Argo CD blind to a kind: it must not be in a tree."""
    return any(group in row["groups"] and kind in row["kinds"] for row in table("argocd")["exclusions"])
