"""The tree of quotas: what a ClusterQueue has, lends, borrows and could ever get.

Source: kueue v0.17.0 pkg/cache/scheduler/resource_node.go (`available`, `potentialAvailable`, `addUsage`,
`removeUsage`, `QuantitiesFitInQuota`), and pkg/scheduler/preemption/classical/hierarchical_preemption.go
(`FindHeightOfLowestSubtreeThatFits`). All amounts are Kueue's integers (see `amounts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from blueprint.admission.amounts import FlavorResource, Usage


@dataclass(frozen=True, slots=True)
class Quota:
    """One row of a ClusterQueue or Cohort; None is no limit."""

    nominal: int
    borrowing: int | None = None
    lending: int | None = None


NOTHING = Quota(0)


@dataclass(slots=True, eq=False)
class QuotaNode:
    """A ClusterQueue (a leaf) or a Cohort in the tree.

    `subtree` is the nominal quota here and all that the children lend; `used` counts against it. An inactive
    ClusterQueue stays in the sums, but not in heights and not among candidates: `active` says which. Once the tree has
    settled only `used` changes; what follows from the rest is worked out once.
    """

    name: str
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    queue: bool = False
    active: bool = True
    weight: float = 1.0
    parent: QuotaNode | None = None
    children: list[QuotaNode] = field(default_factory=list)
    subtree: Usage = field(default_factory=dict)
    used: Usage = field(default_factory=dict)
    _kept: Usage = field(default_factory=dict)
    _most_from_above: dict[FlavorResource, int | None] = field(default_factory=dict)
    _capacity: Usage = field(default_factory=dict)
    _lendable: dict[str, int] = field(default_factory=dict)
    _queues: tuple[QuotaNode, ...] | None = None
    _cohorts: tuple[QuotaNode, ...] | None = None

    def adopt(self, child: QuotaNode) -> None:
        """Hang a node below this one."""
        child.parent = self
        self.children.append(child)
        self._cohorts = None

    def settle(self) -> None:
        """Compute `subtree` of this node and all below it, from nominal quotas and lending limits."""
        self._kept, self._capacity, self._lendable, self._queues = {}, {}, {}, None
        self._most_from_above = {}
        self.subtree = {key: quota.nominal for key, quota in self.quotas.items()}
        for child in self.children:
            child.settle()
            for key, amount in child.subtree.items():
                self.subtree[key] = self.subtree.get(key, 0) + amount - child.kept(key)

    def quota(self, key: FlavorResource) -> Quota:
        """The row for a flavor and resource; nothing where there is none."""
        return self.quotas.get(key, NOTHING)

    def kept(self, key: FlavorResource) -> int:
        """What the lending limit keeps back from the parent."""
        kept = self._kept.get(key)
        if kept is None:
            lending = self.quota(key).lending
            kept = self._kept[key] = 0 if lending is None else max(0, self.subtree.get(key, 0) - lending)
        return kept

    def free_at_home(self, key: FlavorResource) -> int:
        """What is left of the part that is kept back."""
        return max(0, self.kept(key) - self.used.get(key, 0))

    def room(self, key: FlavorResource) -> int:
        """What is free now; below zero for a node in debt."""
        used = self.used.get(key, 0)
        if self.parent is None:
            return self.subtree.get(key, 0) - used
        kept = self.kept(key)
        above, most = self.parent.room(key), self._above(key)
        if used > kept:
            return above if most is None else min(above, most - used + kept)
        return kept - used + (above if most is None else min(above, most))

    def _above(self, key: FlavorResource) -> int | None:
        """The most that can come from the parent at once, None without a limit."""
        try:
            return self._most_from_above[key]
        except KeyError:
            borrowing = self.quota(key).borrowing
            most = None if borrowing is None else self.subtree.get(key, 0) - self.kept(key) + borrowing
            self._most_from_above[key] = most
            return most

    def available(self, key: FlavorResource) -> int:
        """What a workload may take now without preemption; never below zero."""
        return max(0, self.room(key))

    def capacity(self, key: FlavorResource) -> int:
        """The most that a single workload could ever get, with everything else gone."""
        if self.parent is None:
            return self.subtree.get(key, 0)
        most = self._capacity.get(key)
        if most is None:
            most = self.kept(key) + self.parent.capacity(key)
            borrowing = self.quota(key).borrowing
            if borrowing is not None:
                most = min(most, self.subtree.get(key, 0) + borrowing)
            self._capacity[key] = most
        return most

    def lendable(self) -> Mapping[str, int]:
        """What a child of this node could get at most of each resource, over all flavors of the tree."""
        if not self._lendable:
            for key in self.root().subtree:
                self._lendable[key.resource] = self._lendable.get(key.resource, 0) + self.capacity(key)
        return self._lendable

    def exceeds(self, key: FlavorResource, more: int = 0) -> bool:
        """Whether use and `more` are above what this subtree itself has: it would borrow."""
        return self.used.get(key, 0) + more > self.subtree.get(key, 0)

    def within(self, keys: Iterable[FlavorResource]) -> bool:
        """Whether this subtree borrows none of the keys."""
        used, subtree = self.used, self.subtree
        for key in keys:  # noqa: SIM110 - a loop is faster, and this is asked most of all
            if used.get(key, 0) > subtree.get(key, 0):
                return False
        return True

    def take(self, key: FlavorResource, amount: int) -> None:
        """Count use here, and above what exceeds the part kept at home."""
        used = self.used.get(key, 0)
        self.used[key] = used + amount
        if self.parent is not None:
            home = self.kept(key) - used
            more = amount - home if home > 0 else amount
            if more > 0:
                self.parent.take(key, more)

    def give_back(self, key: FlavorResource, amount: int) -> None:
        """Undo `take`."""
        used = self.used.get(key, 0)
        self.used[key] = used - amount
        if self.parent is not None:
            above = used - self.kept(key)
            if above > 0:
                self.parent.give_back(key, min(amount, above))

    def ancestors(self) -> Iterator[QuotaNode]:
        """The parent, its parent, up to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def root(self) -> QuotaNode:
        """The top of the tree."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def cohorts(self) -> tuple[QuotaNode, ...]:
        """The cohorts right below."""
        if self._cohorts is None:
            self._cohorts = tuple(child for child in self.children if not child.queue)
        return self._cohorts

    def queues(self) -> Iterator[QuotaNode]:
        """The active ClusterQueues right below."""
        return (child for child in self.children if child.queue and child.active)

    def all_queues(self) -> tuple[QuotaNode, ...]:
        """The active ClusterQueues in the whole subtree."""
        if self._queues is None:
            below = (queue for cohort in self.cohorts() for queue in cohort.all_queues())
            self._queues = (*self.queues(), *below)
        return self._queues

    def height(self) -> int:
        """The distance to the furthest leaf."""
        below = [cohort.height() + 1 for cohort in self.cohorts()]
        return max([*below, 1 if below or any(self.queues()) else 0])


def fitting(node: QuotaNode, requests: Usage) -> tuple[bool, Usage]:
    """Whether a subtree has room for all requests within its own quota, and what then remains for the one above."""
    fits = not any(node.exceeds(key, amount) for key, amount in requests.items())
    return fits, {key: max(0, amount - node.free_at_home(key)) for key, amount in requests.items()}


def borrowing_height(queue: QuotaNode, key: FlavorResource, amount: int) -> tuple[int, bool]:
    """How far `amount` must be borrowed from: 0 is the queue's own quota, else the height of the lowest subtree that
    has room (the whole tree where none has). And whether that subtree is smaller than the tree: what others borrowed
    of it could be reclaimed.
    """
    if queue.parent is None:
        return 0, False
    if not queue.exceeds(key, amount):
        return 0, True
    rest = amount - queue.free_at_home(key)
    for node in queue.ancestors():
        if not node.exceeds(key, rest):
            return node.height(), node.parent is not None
        rest -= node.free_at_home(key)
    return queue.root().height(), False
