"""The scheduler over time: workloads arrive, wait, are admitted, preempt each other and end.

One cycle is one look at the head of every queue. Source: kueue v0.17.0 pkg/scheduler/scheduler.go (`schedule`),
pkg/scheduler/fair_sharing_iterator.go, pkg/cache/queue/cluster_queue.go (order of a queue, requeueing).
An eviction ends with the cycle that asks for it, as if the job were gone at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from blueprint.admission.amounts import Usage
from blueprint.admission.attempt import Attempt, Scheduler, running, unwritable
from blueprint.admission.demand import Workload, demands
from blueprint.admission.fairness import Share, dominant
from blueprint.admission.flavors import Tried, pending
from blueprint.admission.gates import queue_way
from blueprint.admission.modes import Mode
from blueprint.admission.podsets import Job, job
from blueprint.admission.preemption import Target
from blueprint.admission.quota import QuotaNode
from blueprint.admission.reasons import refusals
from blueprint.admission.state import Queue, Running, State
from blueprint.objects import Manifest

#: Two queues that preempt each other in turn would go on for ever, as they do in a cluster.
_MOST_CYCLES = 200


@dataclass(slots=True, eq=False)
class Waiting:
    """A workload in a queue. `created` orders it, `tried` is where its search for flavors stopped."""

    workload: Workload
    queue: Queue
    created: float
    tried: Tried = ()

    @property
    def order(self) -> tuple[int, float, str]:
        """Higher priority first, then the older one."""
        return (-self.workload.priority, self.created, self.workload.key)


@dataclass(slots=True)
class _Line:
    """What waits in one ClusterQueue: `heap` is looked at in turn, `parked` only when something has been given back."""

    heap: list[tuple[tuple[int, float, str], Waiting]] = field(default_factory=list)
    parked: dict[str, Waiting] = field(default_factory=dict)
    sticky: str = ""

    def push(self, entry: Waiting) -> None:
        """Put an entry where its turn comes."""
        heapq.heappush(self.heap, (entry.order, entry))

    def pop(self) -> Waiting | None:
        """The head: the one that is preempting for its place, else the first in order."""
        for index, (_, entry) in enumerate(self.heap):
            if self.sticky and entry.workload.key == self.sticky:
                self.heap[index] = self.heap[-1]
                self.heap.pop()
                heapq.heapify(self.heap)
                return entry
        return heapq.heappop(self.heap)[1] if self.heap else None


@dataclass(slots=True, eq=False)
class _Entry:
    waiting: Waiting
    attempt: Attempt
    admitted: bool = False
    skipped: bool = False
    preempting: bool = False

    @property
    def usage(self) -> Usage:
        return self.attempt.assignment.usage


@dataclass(frozen=True, slots=True)
class Event:
    """What a cycle did to a workload: `admitted`, `preempted`."""

    what: str
    key: str
    by: str = ""


def submitted(state: State, manifest: Manifest) -> tuple[Workload, Queue] | None:
    """A job as it stands in its queue; None where it never comes to stand there, or is never looked at."""
    asked = job(manifest, state.world.find, state.world.manifests)
    if not isinstance(asked, Job):
        return None
    way = queue_way(state.world, state, manifest, asked)
    namespace = manifest.ref.namespace or "default"
    found, problems = demands(state.world, namespace, asked.podsets)
    if way.queue is None or refusals((*way.reasons, *problems)):
        return None
    return Workload(f"{namespace}/{manifest.ref.name}", namespace, found, way.priority, problems), way.queue


class Engine:
    """Queues and running workloads; `events` of the last `settle` say what happened.

    `restless` is set once workloads preempted each other in turn without an end.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.scheduler = Scheduler(state)
        self.lines: dict[str, _Line] = {name: _Line() for name in state.queues}
        self.running: dict[str, tuple[Waiting, Running]] = {}
        self.due: list[Queue] = []
        self.clock = 0.0
        self.events: list[Event] = []
        self.restless = False

    def submit(self, workload: Workload, queue: Queue, created: float) -> None:
        """Let a workload arrive."""
        self.lines[queue.name].push(Waiting(workload, queue, created))

    def finish(self, key: str) -> None:
        """Let a running workload end; what waits in its tree of cohorts is looked at again."""
        self._give_back(*self.running.pop(key))

    def settle(self, now: float) -> list[Event]:
        """Run cycles until nothing more happens."""
        self.clock, self.events = now, []
        cycles = _MOST_CYCLES + 10 * sum(len(line.heap) + len(line.parked) for line in self.lines.values())
        while cycles:
            cycles -= 1
            if any(line.heap for line in self.lines.values()) and self._cycle():
                continue
            if not self.due:
                return self.events
            self._wake()
        self.restless = True
        return self.events

    def waiting(self) -> Iterator[Waiting]:
        """Everything that waits."""
        for line in self.lines.values():
            yield from (entry for _, entry in line.heap)
            yield from line.parked.values()

    def _give_back(self, waiting: Waiting, ended: Running) -> None:
        """Free what a workload used. What is parked hears of it only later, in a batch (pkg/cache/queue requeuer)."""
        self.state.stop(ended)
        self.due.append(waiting.queue)
        for _, entry in self.lines[waiting.queue.name].heap:
            entry.tried = ()

    def _wake(self) -> None:
        """Let all that is parked in the trees of queues with something new be looked at again."""
        for queue in self.due:
            for node in queue.node.root().all_queues() if queue.node.parent is not None else (queue.node,):
                line = self.lines[node.name]
                for entry in line.parked.values():
                    line.push(entry)
                line.parked.clear()
        self.due.clear()

    def _cycle(self) -> bool:
        """One cycle; whether another one may bring something new."""
        heads = [head for line in self.lines.values() if (head := line.pop()) is not None]
        entries = [
            _Entry(each, self.scheduler.attempt(each.workload, each.queue, each.tried, each.created)) for each in heads
        ]
        for entry in entries:
            entry.waiting.tried = entry.attempt.assignment.tried
        gone: dict[str, Target] = {}
        assumed: list[_Entry] = []
        for entry in self._turns(entries):
            self._process(entry, gone, assumed)
        for entry in assumed:
            self._count(entry, -1)
        for entry in entries:
            if entry.admitted:
                self._admit(entry)
        lively = [self._requeue(entry) for entry in entries if not entry.admitted]
        for key, target in gone.items():
            self._evict(key, target)
        return any(lively) or any(entry.admitted for entry in entries) or bool(gone)

    def _process(self, entry: _Entry, gone: dict[str, Target], assumed: list[_Entry]) -> None:
        """Decide about one entry with all before it in this cycle counted; Kueue's `schedule`, step 5."""
        assignment, targets = entry.attempt.assignment, entry.attempt.targets
        if assignment.mode is Mode.NO_FIT:
            return
        if assignment.mode is Mode.PREEMPT and not targets:
            if entry.waiting.queue.spec.policies.within_cohort != "Any":
                self._reserve(entry)
                assumed.append(entry)
            return
        if any(target.workload.key in gone for target in targets):
            entry.skipped = True
            return
        leaving = {target.workload.key: target.workload for target in (*gone.values(), *targets)}
        with self.state.without(leaving.values()):
            fits = self._fits(entry)
        if not fits:
            entry.skipped = True
            return
        gone.update({target.workload.key: target for target in targets})
        self._count(entry, 1)
        assumed.append(entry)
        entry.admitted = assignment.mode is Mode.FIT and unwritable(assignment) is None
        entry.preempting = assignment.mode is Mode.PREEMPT

    def _fits(self, entry: _Entry) -> bool:
        queue = entry.waiting.queue
        if any(queue.node.available(key) < amount for key, amount in entry.usage.items()):
            return False
        planned = self._running(entry)
        return all(queue.topologies[each.flavor].has_room(each.spread, each.pod) for each in planned.nodes)

    def _running(self, entry: _Entry) -> Running:
        waiting = entry.waiting
        return running(
            waiting.workload, waiting.queue, entry.attempt.assignment, created=waiting.created, reserved=self.clock
        )

    def _count(self, entry: _Entry, sign: int) -> None:
        """Count what an entry uses for the rest of the cycle, or no more."""
        self.state.use(entry.waiting.queue, entry.usage, self._running(entry).nodes, sign)

    def _reserve(self, entry: _Entry) -> None:
        """Hold back what a workload waits for that nobody can be preempted for, up to its limits."""
        queue, assignment = entry.waiting.queue, entry.attempt.assignment
        for key, amount in assignment.usage.items():
            quota, used = queue.node.quota(key), queue.node.used.get(key, 0)
            if assignment.borrowing == 0:
                assignment.usage[key] = max(0, min(amount, quota.nominal - used))
            elif quota.borrowing is not None:
                assignment.usage[key] = max(0, min(amount, quota.nominal + quota.borrowing - used))
        self._count(entry, 1)

    def _admit(self, entry: _Entry) -> None:
        waiting = entry.waiting
        started = self._running(entry)
        self.state.start(started)
        self.running[started.key] = (waiting, started)
        line = self.lines[waiting.queue.name]
        if line.sticky == started.key:
            line.sticky = ""
        self.events.append(Event("admitted", started.key))

    def _requeue(self, entry: _Entry) -> bool:
        """Put a head back: where its turn comes again, or aside; whether looking again may help."""
        waiting = entry.waiting
        line = self.lines[waiting.queue.name]
        if entry.skipped or entry.preempting:
            waiting.tried = ()
        again = entry.skipped or entry.preempting or pending(waiting.tried)
        if entry.preempting and not waiting.queue.spec.strict:
            line.sticky = waiting.workload.key
        if again or waiting.queue.spec.strict:
            line.push(waiting)
            return again
        waiting.tried = ()
        line.parked[waiting.workload.key] = waiting
        return bool(line.heap)

    def _evict(self, key: str, target: Target) -> None:
        waiting, ended = self.running.pop(key)
        self._give_back(waiting, ended)
        waiting.tried = ()
        self.lines[waiting.queue.name].push(waiting)
        self.events.append(Event("preempted", key))

    def _turns(self, entries: list[_Entry]) -> Iterator[_Entry]:
        """The order within a cycle: own quota before borrowing, priority, age; or by shares under fair sharing."""
        if self.state.world.settings.strategies is not None:
            yield from _Tournament(
                self.state, entries, by_nominal=self._gate("FairSharingPrioritizeNonBorrowing")
            ).turns()
            return
        yield from sorted(entries, key=lambda e: (e.attempt.assignment.borrowing, *e.waiting.order))

    def _gate(self, name: str) -> bool:
        return self.state.world.settings.gate(name)


class _Tournament:
    """Under fair sharing: at every cohort the entry wins whose side borrows least with it (kueue KEP 1714)."""

    def __init__(self, state: State, entries: list[_Entry], *, by_nominal: bool) -> None:
        self.state = state
        self.by_nominal = by_nominal
        self.left = {entry.waiting.queue.node: entry for entry in entries}

    def turns(self) -> Iterator[_Entry]:
        """Entries in order; shares are worked out anew after each, since it may have been admitted."""
        while self.left:
            node = min(self.left, key=lambda each: self.left[each].waiting.order)
            winner = self.left[node] if node.parent is None else self._winner(node.root(), self._shares(node.root()))
            assert winner is not None  # noqa: S101 - `node` itself takes part
            del self.left[winner.waiting.queue.node]
            yield winner

    def _shares(self, root: QuotaNode) -> dict[tuple[QuotaNode, _Entry], tuple[bool, Share]]:
        """For each cohort and entry below it: whether its side borrows what it asks for, and its share, with it in."""
        shares: dict[tuple[QuotaNode, _Entry], tuple[bool, Share]] = {}
        for node in root.all_queues():
            entry = self.left.get(node)
            if entry is None:
                continue
            self.state.use(entry.waiting.queue, entry.usage)
            side: QuotaNode = node
            for above in node.ancestors():
                found = dominant(side)
                borrows = self.by_nominal and any(entry.usage.get(key, 0) > 0 for key in found.borrowed)
                shares[above, entry] = (borrows, found.share)
                side = above
            self.state.use(entry.waiting.queue, entry.usage, sign=-1)
        return shares

    def _winner(self, cohort: QuotaNode, shares: dict[tuple[QuotaNode, _Entry], tuple[bool, Share]]) -> _Entry | None:
        below = [self._winner(child, shares) for child in cohort.cohorts()]
        below += [self.left.get(child) for child in cohort.queues()]
        rivals = [entry for entry in below if entry is not None]
        return min(rivals, key=lambda e: (*shares[cohort, e], *e.waiting.order)) if rivals else None
