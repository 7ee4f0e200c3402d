"""The scheduler over time: workloads arrive, wait, are admitted, preempt each other and end.

One cycle is one look at the head of every queue. Source: kueue v0.17.0 pkg/scheduler/scheduler.go (`schedule`),
pkg/cache/queue/cluster_queue.go (order of a queue, requeueing), pkg/cache/queue/inadmissible_workloads.go.
An eviction ends with the cycle that asks for it, as if the job were gone at once.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from blueprint.admission.amounts import Usage
from blueprint.admission.attempt import Attempt, Scheduler, running, unwritable
from blueprint.admission.demand import Workload, demands
from blueprint.admission.flavors import pending
from blueprint.admission.gates import queue_way
from blueprint.admission.lines import Line, Version, Waiting
from blueprint.admission.modes import Mode
from blueprint.admission.podsets import Job, job
from blueprint.admission.preemption import Target
from blueprint.admission.prospects import Prospects
from blueprint.admission.quota import QuotaNode
from blueprint.admission.reasons import refusals
from blueprint.admission.state import Queue, Running, State
from blueprint.admission.topology import Topology
from blueprint.admission.tournament import Entry, Tournament
from blueprint.objects import Manifest

#: Two queues that preempt each other in turn would go on for ever, as they do in a cluster (kueue#14682): after so many
#: times in one instant the one that preempts has to wait.
_MOST_TURNS = 3
_MOST_CYCLES = 200
#: Under this policy an older workload may preempt where one like it may not.
_BY_AGE = "LowerOrNewerEqualPriority"


@dataclass(frozen=True, slots=True)
class Event:
    """What a cycle did to a workload: `admitted`, or `preempted` `by` another one for a reason of Kueue's (`why`)."""

    what: str
    workload: Running
    by: str = ""
    why: str = ""

    @property
    def key(self) -> str:
        """The workload's name, with its namespace."""
        return self.workload.key


@dataclass(frozen=True, slots=True)
class _Eviction:
    target: Target
    by: str


def submitted(state: State, manifest: Manifest) -> tuple[Workload, Queue] | None:
    """A job as it stands in its queue; None where it never comes to stand there, or is never looked at."""
    asked = job(manifest, state.world.find, state.world.manifests)
    return queued(state, manifest, asked) if isinstance(asked, Job) else None


def queued(state: State, manifest: Manifest, asked: Job) -> tuple[Workload, Queue] | None:
    """The same for a job that was read already."""
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
        self.lines: dict[str, Line] = {name: Line() for name in state.queues}
        self.running: dict[str, tuple[Waiting, Running]] = {}
        self.due: set[QuotaNode] = set()
        self.clock = 0.0
        self.events: list[Event] = []
        self.restless = False
        self._prints: dict[QuotaNode | Topology, int] = {}
        self._parts: dict[str, tuple[QuotaNode | Topology, ...]] = {
            name: (queue.node.root(), *queue.topologies.values()) for name, queue in state.queues.items()
        }
        self._turn: Counter[tuple[str, str]] = Counter()
        self._tired: set[str] = set()

    def submit(self, workload: Workload, queue: Queue, created: float) -> None:
        """Let a workload arrive."""
        group = self.lines[queue.name].push(Waiting(workload, queue, created))
        if group.asleep is not None and group.asleep != self._version(queue) and _may_preempt(queue):
            self.lines[queue.name].call(group)
        elif group.asleep is not None:
            group.looked = len(group.members)  # those like it have just found no room

    def finish(self, key: str) -> None:
        """Let a running workload end; what waits in its tree of cohorts is looked at again."""
        self._give_back(*self.running.pop(key))

    def settle(self, now: float) -> list[Event]:
        """Run cycles until nothing more happens."""
        self.clock, self.events = now, []
        self._turn.clear()
        self._tired.clear()
        cycles = _MOST_CYCLES + 10 * sum(
            len(group.members) for line in self.lines.values() for group in line.groups.values()
        )
        while cycles:
            cycles -= 1
            if any(line.heap for line in self.lines.values()) and self._cycle():
                continue
            if not self.due:
                break
            self._wake()
        else:
            self.restless = True
        for line in self.lines.values():
            line.rest()
        return self.events

    def waiting(self) -> Iterator[Waiting]:
        """Everything that waits."""
        for line in self.lines.values():
            yield from line.waiting()

    def _version(self, queue: Queue) -> Version:
        """Of all that a decision in this queue depends on: what runs in its tree of cohorts, and on its nodes."""
        prints = self._prints
        return tuple([prints.get(part, 0) for part in self._parts[queue.name]])

    def _changed(self, waiting: Waiting, workload: Running, sign: int) -> None:
        """Note that a workload runs, or with -1 runs no more; the like in the same place leaves the same mark."""
        asked = waiting.workload
        mark = (
            workload.queue,
            asked.alike or asked.key,
            asked.priority,
            sorted(workload.usage.items()),
            [n.spread for n in workload.nodes],
        )
        print_ = sign * int.from_bytes(hashlib.blake2b(repr(mark).encode(), digest_size=16).digest())
        for part in self._parts[waiting.queue.name]:
            self._prints[part] = self._prints.get(part, 0) + print_

    def _give_back(self, waiting: Waiting, ended: Running) -> None:
        """Free what a workload used. What is parked hears of it only later, in a batch (pkg/cache/queue requeuer)."""
        self.state.stop(ended)
        self._changed(waiting, ended, -1)
        self.due.add(waiting.queue.node.root())
        for entry in self.lines[waiting.queue.name].ready():
            entry.tried = ()

    def _wake(self) -> None:
        """Let all that is parked in the trees of queues with something new be looked at again."""
        prospects = Prospects(self.state)
        for root in self.due:
            for node in root.all_queues() if not root.queue else (root,):
                line, queue = self.lines[node.name], self.state.queues[node.name]
                for group in list(line.sleeping()):
                    group.looked = 0
                    if not prospects.hopeless(queue, group):
                        line.call(group)
        self.due.clear()

    def _cycle(self) -> bool:
        """One cycle; whether another one may bring something new."""
        heads = [head for line in self.lines.values() if (head := line.pop()) is not None]
        entries = [Entry(each, self._look(each)) for each in heads]
        for entry in entries:
            entry.waiting.tried = entry.attempt.assignment.tried
        gone: dict[str, _Eviction] = {}
        assumed: list[Entry] = []
        for entry in self._turns(entries):
            self._process(entry, gone, assumed)
        for entry in assumed:
            self._count(entry, -1)
        for entry in entries:
            if entry.admitted:
                self._admit(entry)
        lively = [self._requeue(entry) for entry in entries if not entry.admitted]
        for entry in entries:
            self.lines[entry.waiting.queue.name].follow(entry.waiting)
        for key, eviction in gone.items():
            self._evict(key, eviction)
        for root in dict.fromkeys(entry.waiting.queue.node.root() for entry in entries if entry.admitted):
            self._tempt(root)
        return any(lively) or any(entry.admitted for entry in entries) or bool(gone)

    def _look(self, waiting: Waiting) -> Attempt:
        """What the scheduler finds for a head; of one that found nothing when all was as now, what it found then."""
        group, version = self.lines[waiting.queue.name].groups[waiting.group], self._version(waiting.queue)
        if not waiting.tried and (known := group.refused.get(version)) is not None:
            return known
        found = self.scheduler.attempt(waiting.workload, waiting.queue, waiting.tried, waiting.created)
        if _final(found) and not waiting.tried and waiting.queue.spec.policies.within_queue != _BY_AGE:
            group.refuse(version, found)
        return found

    def _process(self, entry: Entry, gone: dict[str, _Eviction], assumed: list[Entry]) -> None:
        """Decide about one entry with all before it in this cycle counted; Kueue's `schedule`, step 5."""
        assignment, targets = entry.attempt.assignment, entry.attempt.targets
        if entry.inert:
            return
        if assignment.mode is Mode.PREEMPT and not targets:
            self._reserve(entry)
            assumed.append(entry)
            return
        if targets and entry.waiting.workload.key in self._tired:
            return
        if any(target.workload.key in gone for target in targets):
            entry.skipped = True
            return
        leaving = {t.workload.key: t.workload for t in (*(each.target for each in gone.values()), *targets)}
        with self.state.without(leaving.values()):
            fits = self._fits(entry)
        if not fits:
            entry.skipped = True
            return
        by = entry.waiting.workload.key
        gone.update({target.workload.key: _Eviction(target, by) for target in targets})
        self._count(entry, 1)
        assumed.append(entry)
        entry.admitted = assignment.mode is Mode.FIT and unwritable(assignment) is None
        entry.preempting = assignment.mode is Mode.PREEMPT

    def _fits(self, entry: Entry) -> bool:
        queue = entry.waiting.queue
        if any(queue.node.available(key) < amount for key, amount in entry.usage.items()):
            return False
        planned = self._running(entry)
        return all(queue.topologies[each.flavor].has_room(each.spread, each.pod) for each in planned.nodes)

    def _running(self, entry: Entry) -> Running:
        if entry.planned is None:
            waiting, assignment = entry.waiting, entry.attempt.assignment
            entry.planned = running(
                waiting.workload, waiting.queue, assignment, created=waiting.created, reserved=self.clock
            )
        return entry.planned

    def _count(self, entry: Entry, sign: int) -> None:
        """Count what an entry uses for the rest of the cycle, or no more."""
        self.state.use(entry.waiting.queue, entry.usage, self._running(entry).nodes, sign)

    def _reserve(self, entry: Entry) -> None:
        """Hold back what a workload waits for that nobody can be preempted for, up to its limits."""
        queue, assignment = entry.waiting.queue, entry.attempt.assignment
        held: Usage = {}
        for key, amount in assignment.usage.items():
            quota, used = queue.node.quota(key), queue.node.used.get(key, 0)
            most = amount
            if assignment.borrowing == 0:
                most = quota.nominal - used
            elif quota.borrowing is not None:
                most = quota.nominal + quota.borrowing - used
            held[key] = max(0, min(amount, most))
        entry.held = held
        self._count(entry, 1)

    def _admit(self, entry: Entry) -> None:
        waiting = entry.waiting
        started = self._running(entry)
        self.state.start(started)
        self._changed(waiting, started, 1)
        self.running[started.key] = (waiting, started)
        line = self.lines[waiting.queue.name]
        if line.sticky == started.key:
            line.sticky = ""
        self.events.append(Event("admitted", started))

    def _requeue(self, entry: Entry) -> bool:
        """Put a head back: where its turn comes again, or aside; whether looking again may help."""
        waiting = entry.waiting
        line = self.lines[waiting.queue.name]
        if entry.skipped or entry.preempting:
            waiting.tried = ()
        again = entry.skipped or entry.preempting or pending(waiting.tried)
        if entry.preempting and not waiting.queue.spec.strict:
            line.sticky = waiting.workload.key
        if again or waiting.queue.spec.strict:
            line.push(waiting).note(entry.attempt.assignment.reasons)
            return again
        waiting.tried = ()
        line.park(waiting, self._version(waiting.queue)).note(entry.attempt.assignment.reasons)
        return line.lively()

    def _tempt(self, root: QuotaNode) -> None:
        """Somebody new runs: those who may preempt and have not been looked at since have their turn."""
        prospects = Prospects(self.state)
        for node in root.all_queues() if not root.queue else (root,):
            line, other = self.lines[node.name], self.state.queues[node.name]
            if _may_preempt(other):
                for group in line.sleeping():
                    if group.fresh and not prospects.hopeless(other, group):
                        line.call(group)

    def _evict(self, key: str, eviction: _Eviction) -> None:
        waiting, ended = self.running.pop(key)
        self._give_back(waiting, ended)
        waiting.tried, waiting.alone = (), True
        self.lines[waiting.queue.name].push(waiting)
        self._turn[key, eviction.by] += 1
        if self._turn[key, eviction.by] >= _MOST_TURNS:
            self._tired.add(eviction.by)
            self.restless = True
        self.events.append(Event("preempted", ended, eviction.by, eviction.target.why))

    def _turns(self, entries: list[Entry]) -> Iterable[Entry]:
        """The order within a cycle: own quota before borrowing, priority, age; or by shares under fair sharing."""
        settings = self.state.world.settings
        if settings.strategies is not None:
            by_nominal = settings.gate("FairSharingPrioritizeNonBorrowing")
            return Tournament(self.state, entries, by_nominal=by_nominal).turns()
        return sorted(entries, key=lambda e: (e.attempt.assignment.borrowing, *e.waiting.order))


def _final(found: Attempt) -> bool:
    """Whether looking again brings nothing as long as nothing changes."""
    return found.assignment.mode is not Mode.FIT and not found.targets and not pending(found.assignment.tried)


def _may_preempt(queue: Queue) -> bool:
    policies = queue.spec.policies
    return policies.within_queue != "Never" or (queue.node.parent is not None and policies.within_cohort != "Never")
