"""Whom a workload would preempt: the classical rules.

Source: kueue v0.17.0 pkg/scheduler/preemption/preemption.go (`classicalPreemptions`, `fillBackWorkloads`),
preemption/classical (candidates), preemption/common (order and policies).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from blueprint.admission.amounts import FlavorResource, Usage
from blueprint.admission.placement import Gates, Request, place
from blueprint.admission.quota import QuotaNode, fitting
from blueprint.admission.state import Queue, Running, State
from blueprint.admission.topology import Failure


class Why(StrEnum):
    """Kueue's reasons of a preemption."""

    WITHIN_QUEUE = "InClusterQueue"
    RECLAIM = "InCohortReclamation"
    FAIR_SHARING = "InCohortFairSharing"
    RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


@dataclass(frozen=True, slots=True)
class Target:
    """A workload to preempt, and why."""

    workload: Running
    why: Why


@dataclass(frozen=True, slots=True, eq=False)
class Bid:
    """A workload that needs room: `keys` are what it lacks, `usage` all it asks for, `nodes` what it wants placed."""

    state: State
    queue: Queue
    priority: int
    created: float
    keys: frozenset[FlavorResource]
    usage: Usage
    nodes: Mapping[str, Sequence[Request]]
    gates: Gates

    def fits(self, *, may_borrow: bool) -> bool:
        """Whether it fits into the state as it is now."""
        node = self.queue.node
        for key, amount in self.usage.items():
            if (not may_borrow and node.exceeds(key, amount)) or amount > node.available(key):
                return False
        return self._placed()

    def counted_fits(self) -> bool:
        """Whether it fits where its own use is counted in already: nothing that it takes is in debt then."""
        node = self.queue.node
        return all(not amount or node.room(key) >= 0 for key, amount in self.usage.items()) and self._placed()

    def _placed(self) -> bool:
        return not any(
            isinstance(place(self.queue.topologies[flavor], requests, self.gates), Failure)
            for flavor, requests in self.nodes.items()
        )

    def may_preempt(self, candidate: Running, policy: str) -> bool:
        """Whether a policy allows it, by priority and age."""
        if policy == "LowerOrNewerEqualPriority" and self.priority == candidate.priority:
            return self.created < candidate.created
        if policy in ("LowerPriority", "LowerOrNewerEqualPriority"):
            return self.priority > candidate.priority
        return policy == "Any"

    def order(self, candidate: Running) -> tuple[bool, int, float, str]:
        """Sorts candidates: other queues, lower priority, later admitted (who is being evicted is gone already)."""
        return (candidate.queue == self.queue.name, candidate.priority, -candidate.reserved, candidate.key)

    def uses(self, candidate: Running) -> bool:
        """Whether a candidate has anything that is lacking."""
        return not self.keys.isdisjoint(candidate.usage)


def classical(bid: Bid) -> list[Target]:
    """The workloads to preempt, [] where that does not help."""
    candidates = _Candidates(bid)
    policies = bid.queue.spec.policies
    under = all(bid.queue.node.used.get(k, 0) < bid.queue.node.quota(k).nominal for k in bid.keys)
    if not candidates.hierarchy and not candidates.priority:
        attempts: tuple[bool, ...] = (True,)
    elif not policies.borrow and not under:
        attempts = (True,)
    elif not policies.borrow and not candidates.hierarchy:
        attempts = (False, True)
    else:
        attempts = (True, False)
    for may_borrow in attempts:
        targets: list[Target] = []
        fits = False
        for target in candidates.valid(may_borrow):
            bid.state.set_aside(target.workload)
            targets.append(target)
            if bid.fits(may_borrow=may_borrow):
                fits = True
                break
        if fits:
            targets = spare(bid, targets, may_borrow=may_borrow)
        restore(bid.state, targets)
        if fits:
            return targets
    return []


def spare(bid: Bid, targets: list[Target], *, may_borrow: bool) -> list[Target]:
    """Take back those that need not go after all, from the last but one to the first."""
    kept = list(targets)
    for index in range(len(kept) - 2, -1, -1):
        bid.state.set_aside(kept[index].workload, 1)
        if bid.fits(may_borrow=may_borrow):
            kept[index] = kept[-1]
            kept.pop()
        else:
            bid.state.set_aside(kept[index].workload)
    return kept


def restore(state: State, targets: Iterable[Target]) -> None:
    """Let the workloads run again."""
    for target in targets:
        state.set_aside(target.workload, 1)


@dataclass(frozen=True, slots=True)
class _Candidate:
    workload: Running
    meeting: QuotaNode | None
    """The lowest cohort above both queues."""
    why: Why
    without_borrowing: bool


class _Candidates:
    """Those over whose quota the queue has a right (`hierarchy`), by priority, and its own."""

    def __init__(self, bid: Bid) -> None:
        self.bid = bid
        self.hierarchy: list[_Candidate] = []
        self.priority: list[_Candidate] = []
        self.own: list[_Candidate] = []
        policies = bid.queue.spec.policies
        if policies.within_queue != "Never":
            self.own = list(self._of(bid.queue.node, None, advantage=False))
        if bid.queue.node.parent is not None and policies.within_cohort != "Never":
            self._climb()

    def _climb(self) -> None:
        advantage, rest = fitting(self.bid.queue.node, self.bid.usage)
        skip: QuotaNode | None = None
        for node in self.bid.queue.node.ancestors():
            chosen = self.hierarchy if advantage else self.priority
            chosen += self._below(node, node, skip, advantage=advantage)
            fits, rest = fitting(node, rest)
            advantage = advantage or fits
            skip = node

    def _below(
        self, node: QuotaNode, top: QuotaNode, skip: QuotaNode | None, *, advantage: bool
    ) -> Iterator[_Candidate]:
        for cohort in node.cohorts():
            if cohort is not skip and not cohort.within(self.bid.keys):
                yield from self._below(cohort, top, skip, advantage=advantage)
        for queue in node.queues():
            if queue is not self.bid.queue.node and not queue.within(self.bid.keys):
                yield from self._of(queue, top, advantage=advantage)

    def _of(self, node: QuotaNode, meeting: QuotaNode | None, *, advantage: bool) -> Iterator[_Candidate]:
        bid, policies = self.bid, self.bid.queue.spec.policies
        own = node is bid.queue.node
        policy = policies.within_queue if own else policies.within_cohort
        for workload in bid.state.queues[node.name].running.values():
            if not bid.uses(workload) or not bid.may_preempt(workload, policy):
                continue
            if own:
                yield _Candidate(workload, None, Why.WITHIN_QUEUE, without_borrowing=False)
            elif advantage:
                yield _Candidate(workload, meeting, Why.RECLAIM, without_borrowing=False)
            elif not policies.borrow or self._too_high(workload):
                yield _Candidate(workload, meeting, Why.RECLAIM, without_borrowing=True)
            else:
                yield _Candidate(workload, meeting, Why.RECLAIM_WHILE_BORROWING, without_borrowing=False)

    def _too_high(self, workload: Running) -> bool:
        threshold = self.bid.queue.spec.policies.threshold
        if workload.priority >= self.bid.priority:
            return True
        return threshold is not None and workload.priority > threshold

    def valid(self, may_borrow: bool) -> Iterator[Target]:
        """Candidates in order; each is judged when its turn comes, since those before it may have changed things."""
        bid = self.bid
        groups = [sorted(g, key=lambda c: bid.order(c.workload)) for g in (self.hierarchy, self.priority, self.own)]
        for candidate in (each for group in groups for each in group):
            if candidate.workload.queue == self.bid.queue.name or self._borrows(candidate, may_borrow):
                yield Target(candidate.workload, candidate.why)

    def _borrows(self, candidate: _Candidate, may_borrow: bool) -> bool:
        if may_borrow and candidate.without_borrowing:
            return False
        node = self.bid.state.queues[candidate.workload.queue].node
        if node.within(self.bid.keys):
            return False
        for above in node.ancestors():
            if above is candidate.meeting:
                break
            if above.within(self.bid.keys):
                return False
        return True
