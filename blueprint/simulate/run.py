"""The clock: arrivals and ends in order of time, each followed by what Kueue's scheduler makes of it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from blueprint.admission.amounts import Amounts, Usage
from blueprint.admission.engine import Engine, Event
from blueprint.admission.state import Running, State
from blueprint.simulate.measure import Measures
from blueprint.simulate.stream import Stream


@dataclass(slots=True, eq=False)
class Run:
    """One workload from its arrival to its end; times are seconds after the start.

    `started` is its first admission, `since` that of the run under way, `done` what counts of the runs before it.
    `lost` are seconds of work that preemptions made void.
    """

    key: str
    stream: Stream
    arrived: float
    started: float | None = None
    ended: float | None = None
    since: float | None = None
    done: float = 0.0
    lost: float = 0.0
    preemptions: int = 0

    @property
    def team(self) -> str:
        """Whose it is: its namespace."""
        return self.stream.shape.workload.namespace

    def stop(self, now: float) -> None:
        """End the run under way before its time; what lies behind the last checkpoint is lost."""
        spent = now - (self.since or 0.0)
        checkpoint = self.stream.checkpoint
        kept = spent - spent % checkpoint if checkpoint else 0.0
        self.done += kept
        self.lost += spent - kept
        self.since = None
        self.preemptions += 1


@dataclass(frozen=True, slots=True)
class Preemption:
    """Who had to go, for whom, when, Kueue's reason, and what it gave back."""

    at: float
    run: Run
    by: Run
    why: str
    usage: Usage


@dataclass(slots=True)
class Outcome:
    """All runs in the order of their arrival, all preemptions, and what was measured until `end`."""

    runs: list[Run]
    measures: Measures
    preemptions: list[Preemption] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    end: float = 0.0
    restless: bool = False


def simulate(state: State, streams: Sequence[Stream], until: float | None = None) -> Outcome:
    """Let the workloads of all streams arrive, wait, run and end, in an otherwise idle cluster.

    Ends with the last end or, where it is given, at `until` seconds.
    """
    return _Clock(state, streams, until).run()


class _Clock:
    def __init__(self, state: State, streams: Sequence[Stream], until: float | None) -> None:
        self.engine = Engine(state)
        self.until = until
        runs = sorted(_arriving(streams), key=lambda run: run.arrived)
        for number, run in enumerate(runs):
            run.key = f"{run.key}-{number:06}"
        self.by_key = {run.key: run for run in runs}
        self.out = Outcome(runs, Measures(state))
        self.ends: list[tuple[float, str, float]] = []

    def run(self) -> Outcome:
        """All instants."""
        coming = iter(self.out.runs)
        head = next(coming, None)
        while head is not None or self.ends:
            now = min([*([head.arrived] if head else []), *([self.ends[0][0]] if self.ends else [])])
            if self.until is not None and now > self.until:
                break
            self._advance(now)
            if self._finish(now):
                self._settle(now)
            if head is not None and head.arrived <= now:
                while head is not None and head.arrived <= now:
                    self._submit(head)
                    head = next(coming, None)
                self._settle(now)
        if self.until is not None:
            self._advance(self.until)
        self.out.restless = self.engine.restless
        return self.out

    def _advance(self, now: float) -> None:
        self.out.measures.pass_by(self.engine, now - self.out.end)
        self.out.end = now

    def _finish(self, now: float) -> bool:
        """End what ends now; a run that was preempted before its end left a place in the heap that is void."""
        any_ended = False
        while self.ends and self.ends[0][0] <= now:
            _, key, since = heapq.heappop(self.ends)
            run = self.by_key[key]
            if run.since != since:
                continue
            run.ended, run.since = now, None
            self.out.measures.stopped(self.engine.running[key][1], run.team)
            self.engine.finish(key)
            any_ended = True
        return any_ended

    def _submit(self, run: Run) -> None:
        shape = run.stream.shape
        self.out.measures.waits(run.team, 1)
        self.engine.submit(replace(shape.workload, key=run.key), shape.queue, run.arrived)

    def _settle(self, now: float) -> None:
        for event in self.engine.settle(now):
            run = self.by_key[event.key]
            if event.what == "admitted":
                self._started(run, now)
                self.out.measures.started(event.workload, run.team)
                self.out.measures.partial += _short(event.workload, run)
            else:
                self._preempted(run, event, now)
                self.out.measures.stopped(event.workload, run.team)

    def _started(self, run: Run, now: float) -> None:
        self.out.order.append(run.key)
        self.out.measures.waits(run.team, -1)
        if run.started is None:
            run.started = now
        run.since = now
        if run.stream.duration is not None:
            heapq.heappush(self.ends, (now + run.stream.duration - run.done, run.key, now))

    def _preempted(self, run: Run, event: Event, now: float) -> None:
        run.stop(now)
        self.out.measures.waits(run.team, 1)
        self.out.preemptions.append(Preemption(now, run, self.by_key[event.by], event.why, event.workload.usage))


def _short(given: Running, run: Run) -> bool:
    """Whether a workload got less than it asks for, though it does not allow that."""
    workload = run.stream.shape.workload
    if any(demand.podset.min_count is not None for demand in workload.demands):
        return False
    total: Amounts = {}
    for key, amount in given.usage.items():
        total[key.resource] = total.get(key.resource, 0) + amount
    return any(total[name] < amount for name, amount in run.stream.shape.asked.items() if name in total)


def _arriving(streams: Sequence[Stream]) -> Iterator[Run]:
    for stream in streams:
        for number in range(stream.count):
            for _ in range(stream.shape.copies):
                yield Run(stream.shape.workload.key, stream, stream.start + number * stream.step)
