"""One look of the scheduler at one workload: flavors, then nodes, then whom it would preempt.

Source: kueue v0.17.0 pkg/scheduler/scheduler.go (`getInitialAssignments`, `updateAssignmentForTAS`),
pkg/scheduler/flavorassigner (`assignFlavors`, `WorkloadsTopologyRequests`, `PodSetReducer`), preemption_oracle.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from blueprint.admission.amounts import Amounts, FlavorResource, Usage, quotient
from blueprint.admission.demand import Workload
from blueprint.admission.fairness import fair
from blueprint.admission.flavors import Assigner, Assignment, PodSetChoice, Tried
from blueprint.admission.modes import Mode, Possibility, Suits
from blueprint.admission.placement import Request, place, take
from blueprint.admission.preemption import Bid, Target, classical
from blueprint.admission.quota import borrowing_height
from blueprint.admission.reasons import Kind, Reason
from blueprint.admission.state import OnNodes, Queue, Running, State
from blueprint.admission.topology import Failure, Spread, Values

Requests = dict[str, list[Request]]
"""What is to be placed, by flavor."""


@dataclass(slots=True)
class Attempt:
    """The outcome: admitted at once (mode FIT), after preempting `targets`, or not."""

    assignment: Assignment
    targets: list[Target] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Looks at workloads in one state."""

    state: State

    def attempt(self, workload: Workload, queue: Queue, tried: Tried, created: float = 0) -> Attempt:
        """One attempt, with fewer pods where all do not fit and partial admission is allowed."""
        found = self._attempt(workload, queue, tried, created, None)
        if found.assignment.mode is not Mode.FIT and not found.targets and self._shrinks(workload):
            found = self._fewer(workload, queue, tried, created) or found
        if found.assignment.mode is Mode.PREEMPT and (found.targets or queue.spec.policies.within_cohort != "Any"):
            self._reserve_nodes(queue, found)
        return found

    def _shrinks(self, workload: Workload) -> bool:
        smaller = any(d.podset.min_count is not None and d.podset.min_count < d.podset.count for d in workload.demands)
        return smaller and self.state.world.settings.gate("PartialAdmission")

    def _attempt(
        self, workload: Workload, queue: Queue, tried: Tried, created: float, counts: Sequence[int] | None
    ) -> Attempt:
        def oracle(key: FlavorResource, amount: int) -> Suits:
            return self._simulate(workload, queue, created, key, amount)

        world = self.state.world
        assigner = Assigner(world, queue, oracle, fair=world.settings.strategies is not None)
        assignment = assigner.assign(workload.demands, tried, counts)
        if assignment.failed or assignment.mode is Mode.NO_FIT:
            return Attempt(assignment)
        requests = self._requests(queue, assignment)
        if requests is None:
            assignment.mode = Mode.NO_FIT
            return Attempt(assignment)
        self._place(queue, assignment, requests)
        if assignment.mode is not Mode.PREEMPT:
            return Attempt(assignment)
        lacking = {
            FlavorResource(choice.flavor, name)
            for each in assignment.podsets
            for name, choice in each.choices.items()
            if choice.mode is Mode.PREEMPT
        }
        usage = {key: amount for key, amount in assignment.usage.items() if amount}
        bid = self._bid(workload, queue, created, frozenset(lacking), usage, requests)
        return Attempt(assignment, self._targets(bid))

    def _bid(
        self,
        workload: Workload,
        queue: Queue,
        created: float,
        keys: frozenset[FlavorResource],
        usage: Usage,
        requests: Requests,
    ) -> Bid:
        return Bid(self.state, queue, workload.priority, created, keys, usage, requests, self.state.gates)

    def _targets(self, bid: Bid) -> list[Target]:
        settings = self.state.world.settings
        if settings.strategies is None:
            return classical(bid)
        return fair(bid, settings.strategies, within_nominal=settings.gate("FairSharingPreemptWithinNominal"))

    def _simulate(self, workload: Workload, queue: Queue, created: float, key: FlavorResource, amount: int) -> Suits:
        """Whether preemption could free an amount, as the search for flavors asks."""
        bid = self._bid(workload, queue, created, frozenset({key}), {key: amount}, {})
        targets = self._targets(bid)
        if not targets:
            return Suits(Possibility.NO_CANDIDATES, borrowing_height(queue.node, key, amount)[0])
        with self.state.without(target.workload for target in targets):
            borrow = borrowing_height(queue.node, key, amount)[0]
        own = any(target.workload.queue == queue.name for target in targets)
        return Suits(Possibility.PREEMPT if own else Possibility.RECLAIM, borrow)

    def _requests(self, queue: Queue, assignment: Assignment) -> Requests | None:
        """What is to be placed on nodes, as far as these are known; None where something cannot be.

        A pod set with no or with two topology-aware flavors cannot be placed; earlier releases admit it all the same.
        """
        found: Requests = {}
        refused = False
        if self.state.world.nodes is None:
            return found
        for each in assignment.podsets:
            wish = each.demand.podset.wish
            if not wish.explicit and not queue.topology_only:
                continue
            if each.count == 0 and self.state.world.settings.behaves("tas-skips-empty"):
                continue
            flavors = {choice.flavor for choice in each.choices.values()} & set(queue.topologies)
            if len(flavors) != 1:
                if self.state.world.settings.behaves("tas-needs-one-flavor"):
                    names = " and ".join(sorted(flavors)) or "none of its flavors"
                    message = f"pods that are placed by topology need one flavor with a topology, not {names}"
                    each.reasons.append(Reason("KQ303", Kind.TOPOLOGY, message, podset=each.demand.podset.name))
                    refused = True
                continue
            flavor = flavors.pop()
            if flavor in queue.delayed:
                each.delayed = True
                continue
            demand = each.demand
            request = Request(
                demand.podset.name, each.count, demand.pod, demand.placement, wish, implied=not wish.explicit
            )
            found.setdefault(flavor, []).append(request)
        return None if refused else found

    def _place(self, queue: Queue, assignment: Assignment, requests: Requests) -> None:
        """Place all pod sets, now or with everything else thought away, and set the mode accordingly."""
        by_name = {each.demand.podset.name: each for each in assignment.podsets}
        if assignment.mode is Mode.FIT:
            failed = self._settle(queue, by_name, requests, empty=False)
            if failed is None:
                return
            self._fail(by_name[failed[1].podset], queue, *failed, Mode.PREEMPT)
            assignment.mode = Mode.PREEMPT
        failed = self._settle(queue, {}, requests, empty=True)
        if failed is not None:
            self._fail(by_name[failed[1].podset], queue, *failed, Mode.NO_FIT)
            assignment.mode = Mode.NO_FIT
            return
        for wanted in requests.values():
            for request in wanted:
                for choice in by_name[request.podset].choices.values():
                    choice.mode = Mode.PREEMPT

    def _settle(
        self, queue: Queue, by_name: dict[str, PodSetChoice], requests: Requests, *, empty: bool
    ) -> tuple[str, Failure] | None:
        """Place everything and note where in `by_name`; or nothing, and the flavor and pod set that do not fit."""
        gates = self.state.gates
        spreads: dict[str, Spread] = {}
        others = self.state.world.settings.behaves("tas-counts-other-flavors") and len(requests) > 1
        assumed: dict[Values, Amounts] = {}
        for flavor in sorted(requests) if others else requests:
            topology, wanted = queue.topologies[flavor], requests[flavor]
            counted = others and topology.by_host
            placed = place(topology, wanted, gates, empty=empty, before=assumed if counted else None)
            if isinstance(placed, Failure):
                return flavor, placed
            spreads |= placed
            for request in wanted if counted else ():
                take(assumed, request, placed.get(request.podset, []), gates)
        for name, each in by_name.items():
            each.spread = spreads.get(name, each.spread)
        return None

    def _fail(self, each: PodSetChoice, queue: Queue, flavor: str, failure: Failure, mode: Mode) -> None:
        for choice in each.choices.values():
            choice.mode = mode
        reason = no_place(queue.topologies[flavor].name, flavor, each, failure)
        if reason not in each.reasons:
            each.reasons.append(reason)

    def _reserve_nodes(self, queue: Queue, found: Attempt) -> None:
        """Nodes that a workload gets once its targets are gone, or on an empty cluster where it has none."""
        requests = self._requests(queue, found.assignment) or {}
        by_name = {each.demand.podset.name: each for each in found.assignment.podsets}
        with self.state.without(target.workload for target in found.targets):
            self._settle(queue, by_name, requests, empty=not found.targets)

    def _fewer(self, workload: Workload, queue: Queue, tried: Tried, created: float) -> Attempt | None:
        """The most pods that can be admitted, all pod sets shrunk in step; found by halving."""
        full = [demand.podset.count for demand in workload.demands]
        spare = [
            count - (count if (least := demand.podset.min_count) is None else least)
            for count, demand in zip(full, workload.demands, strict=True)
        ]
        total = sum(spare)
        low, high = 0, total + 1
        best: tuple[int, Attempt] | None = None
        while low < high:
            middle = (low + high) // 2
            counts = [count - quotient(part * middle, total) for count, part in zip(full, spare, strict=True)]
            found = self._attempt(workload, queue, tried, created, counts)
            if found.assignment.mode is Mode.FIT or found.targets:
                best, high = (middle, found), middle
            else:
                low = middle + 1
        return best[1] if best is not None and best[0] == low else None


def no_place(topology: str, flavor: str, each: PodSetChoice, failure: Failure) -> Reason:
    """Why pods cannot be placed, in words."""
    podset = each.demand.podset
    if failure.problem:
        code = "KQ301" if "level" in failure.problem else "KQ302"
        message = failure.problem
    else:
        code = "KQ302"
        size = podset.wish.slice_size if podset.wish.slice_level else None
        unit = f"slices of {size} pods" if size and size > 1 else "pods"
        what = "no" if failure.fits <= 0 else f"only {failure.fits} of {failure.wanted}"
        where = f"one {failure.level}" if podset.wish.required is not None else f"topology {topology}"
        message = f"{where} has room for {what} {unit} of {podset.name}" + (
            f" ({failure.wanted} asked for)" if failure.fits <= 0 else ""
        )
    if failure.excluded is not None and failure.excluded.causes:
        message += f"; of {failure.excluded.total} places without room: {failure.excluded}"
    return Reason(code, Kind.TOPOLOGY, message, podset=podset.name, flavor=flavor)


def unwritable(assignment: Assignment) -> PodSetChoice | None:
    """A pod set whose placement the API server does not take: without domains, or with a number below one in one.

    Seen on the real scheduler: it admits such a workload in its cache, fails to write it, and tries for ever. Numbers
    below one come of nodes that are overbooked, which pods are where a queue covers `pods`: they are counted twice.
    """
    for each in assignment.podsets:
        if each.spread is not None and (not each.spread or any(count < 1 for _, count in each.spread)):
            return each
    return None


def running(workload: Workload, queue: Queue, assignment: Assignment, *, created: float, reserved: float) -> Running:
    """The workload as it runs with an assignment."""
    nodes: list[OnNodes] = []
    for each in assignment.podsets:
        if each.spread is None:
            continue
        flavors = sorted({choice.flavor for choice in each.choices.values()} & set(queue.topologies))
        if queue.counts_requests:
            nodes += [OnNodes(flavor, each.demand.pod, each.spread) for flavor in flavors if len(flavors) == 1]
            continue
        pod = {
            name: amount if amount == 0 else quotient(amount, each.count)
            for name, amount in each.requests.items()
            if name in each.choices
        }
        nodes += [OnNodes(flavor, pod, each.spread) for flavor in flavors]
    usage = dict(assignment.usage)
    return Running(workload.key, queue.name, workload.priority, created, reserved, usage, tuple(nodes))
