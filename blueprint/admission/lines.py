"""What waits in a ClusterQueue, in order, with workloads that are alike kept together.

Source: kueue v0.17.0 pkg/cache/queue/cluster_queue.go (order, sticky head, requeueing, inadmissible workloads). Kueue
looks at each workload on its own; of workloads that differ in age only, where one finds no room a younger one finds
none either. Ten thousand copies of a job are therefore looked at as one, until something changes for them.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from blueprint.admission.amounts import FlavorResource
from blueprint.admission.attempt import Attempt
from blueprint.admission.demand import Workload
from blueprint.admission.flavors import Tried
from blueprint.admission.reasons import Kind, Reason
from blueprint.admission.state import Queue

Order = tuple[int, float, str]
"""Sorts a queue: higher priority first, then the older one."""

Version = tuple[int, ...]
"""A fingerprint of what a queue's decisions depend on: what runs in its tree of cohorts, and what on its nodes."""

_MOST_REFUSALS = 256


@dataclass(slots=True, eq=False)
class Waiting:
    """A workload in a queue: `order` is higher priority first, then the older one (by `created`).

    `tried` is where its search for flavors stopped. One that was preempted stands `alone` until it was looked at: those
    like it sleep on.
    """

    workload: Workload
    queue: Queue
    created: float
    tried: Tried = ()
    alone: bool = False
    order: Order = field(init=False)

    def __post_init__(self) -> None:
        self.order = (-self.workload.priority, self.created, self.workload.key)

    @property
    def group(self) -> tuple[str, int]:
        """What those that differ in age only have in common."""
        alike = "" if self.alone else self.workload.alike
        return (alike or self.workload.key, self.workload.priority)


@dataclass(slots=True, eq=False)
class Alike:
    """Workloads that differ in age only, in order. Those before `looked` were looked at since something changed.

    `asleep` is the version at which the last one found no room, None while the group is looked at in turn. `lacks` is
    what there was too little of then, `placeless` the flavors with enough of everything but no place for it on nodes.
    `refused` are looks that found nothing, by the version of then.
    """

    members: list[Waiting] = field(default_factory=list)
    looked: int = 0
    asleep: Version | None = None
    lacks: tuple[FlavorResource, ...] = ()
    placeless: tuple[str, ...] = ()
    refused: dict[Version, Attempt] = field(default_factory=dict)
    _needs: list[tuple[int, tuple[FlavorResource, ...]]] | None = None

    def needs(self, queue: Queue) -> list[tuple[int, tuple[FlavorResource, ...]]]:
        """What each pod set needs at least of each resource, and the flavors in its queue that could give it."""
        if self._needs is None:
            self._needs = []
            for demand in self.first.workload.demands:
                podset = demand.podset
                count = podset.count if podset.min_count is None else min(podset.count, podset.min_count)
                for resource, amount in demand.charge.items():
                    covering = queue.spec.group(resource) if amount else None
                    if covering is not None:
                        keys = tuple(FlavorResource(flavor, resource) for flavor in covering.flavors)
                        self._needs.append((amount * count, keys))
        return self._needs

    def __lt__(self, _: Alike) -> bool:
        return False  # two places of one workload in the heap, of which one is stale

    @property
    def first(self) -> Waiting:
        """Whom to ask what the group needs."""
        return self.members[0]

    @property
    def fresh(self) -> bool:
        """Whether somebody has not been looked at."""
        return self.looked < len(self.members)

    def refuse(self, version: Version, found: Attempt) -> None:
        """Keep a look that found nothing."""
        if len(self.refused) >= _MOST_REFUSALS:
            self.refused.clear()
        self.refused[version] = found

    def note(self, reasons: Iterable[Reason]) -> None:
        """Keep of the reasons of a refusal what there was too little of."""
        short = [reason for reason in reasons if reason.resource and reason.flavor]
        bare = [reason.flavor for reason in reasons if reason.kind is Kind.TOPOLOGY and reason.flavor]
        self.lacks = tuple(dict.fromkeys(FlavorResource(reason.flavor, reason.resource) for reason in short))
        self.placeless = () if short else tuple(dict.fromkeys(bare))

    def insert(self, entry: Waiting) -> int:
        """Put a workload in its place, which is returned."""
        place = bisect.bisect(self.members, entry.order, key=attrgetter("order"))
        self.members.insert(place, entry)
        self.looked = min(self.looked, place)
        return place


@dataclass(slots=True)
class Line:
    """What waits in one ClusterQueue: `heap` is looked at in turn, sleeping groups only when something has changed.

    `sticky` is the key of the workload that is preempting for its place.
    """

    groups: dict[tuple[str, int], Alike] = field(default_factory=dict)
    heap: list[tuple[Order, Alike]] = field(default_factory=list)
    sticky: str = ""

    def push(self, entry: Waiting) -> Alike:
        """Put a workload where its turn comes; a sleeping group sleeps on."""
        group = self.groups.setdefault(entry.group, Alike())
        group.insert(entry)
        if group.asleep is None:
            self.call(group)
        return group

    def call(self, group: Alike) -> None:
        """Let the first of a group that was not looked at be looked at in turn."""
        group.asleep = None
        if group.fresh:
            # A stale place in the heap is passed over by `pop`; a member may have come in before the one that is there.
            heapq.heappush(self.heap, (group.members[group.looked].order, group))

    def pop(self) -> Waiting | None:
        """The head: the one that is preempting for its place, else the first in order."""
        if self.sticky and (entry := self._take_sticky()) is not None:
            return entry
        while self.heap:
            order, group = heapq.heappop(self.heap)
            if group.asleep is None and group.fresh and group.members[group.looked].order == order:
                return group.members.pop(group.looked)
        return None

    def _take_sticky(self) -> Waiting | None:
        for group in self.groups.values():
            if group.asleep is not None:
                continue
            for index in range(group.looked, len(group.members)):
                if group.members[index].workload.key == self.sticky:
                    return group.members.pop(index)
        return None

    def follow(self, entry: Waiting) -> None:
        """Let those like a workload that left the queue have their turn."""
        group = self.groups.get(entry.group)
        if group is not None and not group.members:
            del self.groups[entry.group]
        elif group is not None and group.asleep is None:
            self.call(group)

    def park(self, entry: Waiting, version: Version) -> Alike:
        """Put aside a workload that found no room, and with it all that are like it."""
        if entry.alone:
            self.groups.pop(entry.group, None)
            entry.alone = False
        group = self.groups.setdefault(entry.group, Alike())
        before = group.looked
        place = group.insert(entry)
        group.looked = max(before + (place < before), place + 1)
        group.asleep = version
        return group

    def rest(self) -> None:
        """By now all of a sleeping group would have been looked at."""
        for group in self.sleeping():
            group.looked = len(group.members)

    def lively(self) -> bool:
        """Whether somebody is to be looked at."""
        return any(group.asleep is None and group.fresh for _, group in self.heap)

    def ready(self) -> Iterator[Waiting]:
        """All that are to be looked at."""
        for group in self.groups.values():
            if group.asleep is None:
                yield from group.members[group.looked :]

    def sleeping(self) -> Iterator[Alike]:
        """Groups that found no room."""
        return (group for group in self.groups.values() if group.asleep is not None)

    def waiting(self) -> Iterator[Waiting]:
        """Everything that waits."""
        for group in self.groups.values():
            yield from group.members
