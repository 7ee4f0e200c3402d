"""Whom a workload would preempt under fair sharing, by the shares of queues and cohorts.

Source: kueue v0.17.0 pkg/scheduler/preemption/preemption.go (`fairPreemptions`), preemption/fairsharing,
pkg/cache/scheduler/fair_sharing.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blueprint.admission.amounts import FlavorResource
from blueprint.admission.preemption import Bid, Target, Why, restore, spare
from blueprint.admission.quota import QuotaNode
from blueprint.admission.state import Mark, Queue, Running, State

Share = tuple[int, float]
"""Sorts shares: queues without weight that borrow come last, by what they borrow; others by the weighted share."""


@dataclass(frozen=True, slots=True)
class Dominant:
    """The largest part of what can be lent of a resource that a node has borrowed, by its weight, in thousandths.

    The lower share is served first, the higher one preempted first.
    """

    share: Share
    borrowed: frozenset[FlavorResource]

    @property
    def borrows(self) -> bool:
        """Whether anything is borrowed."""
        return bool(self.borrowed)


def dominant(node: QuotaNode) -> Dominant:
    """The dominant share of a queue or cohort; nothing for a root."""
    if node.parent is None:
        return Dominant((0, 0.0), frozenset())
    borrowed: dict[str, int] = {}
    keys: set[FlavorResource] = set()
    for key, quota in node.subtree.items():
        more = node.used.get(key, 0) - quota
        if more > 0:
            borrowed[key.resource] = borrowed.get(key.resource, 0) + more
            keys.add(key)
    lendable = node.parent.lendable() if borrowed else {}
    ratios = [amount * 1000.0 / lendable[name] for name, amount in borrowed.items() if lendable.get(name, 0) > 0]
    ratio = max(ratios, default=0.0)
    share = (1, ratio) if ratio and not node.weight else (0, ratio / node.weight if ratio else 0.0)
    return Dominant(share, frozenset(keys))


def fair(bid: Bid, strategies: tuple[str, ...], *, within_nominal: bool) -> list[Target]:
    """The workloads to preempt, [] where that does not help.

    `within_nominal` is the gate FairSharingPreemptWithinNominal: a queue takes back its own quota whatever the shares.
    """
    candidates = sorted(_candidates(bid), key=bid.order)
    if not candidates:
        return []
    bid.state.use(bid.queue, bid.usage)
    if not _entitled(bid, within_nominal=within_nominal) and _all_below(bid, candidates):
        bid.state.use(bid.queue, bid.usage, sign=-1)
        return []
    fits, targets, again = _first(bid, candidates, strategies[0], within_nominal=within_nominal)
    if not fits and len(strategies) > 1:
        fits = _second(bid, again, targets)
    bid.state.use(bid.queue, bid.usage, sign=-1)
    if fits:
        targets = spare(bid, targets, may_borrow=True)
    restore(bid.state, targets)
    return targets if fits else []


def _entitled(bid: Bid, *, within_nominal: bool) -> bool:
    """Whether the queue only takes back what is its own (its use is counted in)."""
    return within_nominal and not any(bid.queue.node.exceeds(key) for key in bid.keys)


def _all_below(bid: Bid, candidates: list[Running]) -> bool:
    """Whether all candidates are of other sides that have less than the queue's own: then none of them has to go."""
    for name in {candidate.queue for candidate in candidates}:
        if name == bid.queue.name:
            return False
        mine, theirs = _below_meeting(bid.queue.node, bid.state.queues[name].node)
        if dominant(mine).share <= dominant(theirs).share:
            return False
    return True


def _candidates(bid: Bid) -> Iterator[Running]:
    policies, node = bid.queue.spec.policies, bid.queue.node
    if policies.within_queue != "Never":
        yield from _allowed(bid, bid.queue, policies.within_queue)
    if node.parent is None or policies.within_cohort == "Never":
        return
    for other in node.root().all_queues():
        if other is not node and not other.within(bid.keys):
            yield from _allowed(bid, bid.state.queues[other.name], policies.within_cohort)


def _allowed(bid: Bid, queue: Queue, policy: str) -> Iterator[Running]:
    return (w for w in queue.running.values() if bid.may_preempt(w, policy) and bid.uses(w))


class _Order:
    """Queues in the order of their shares, from the root down; one that has nothing more to give is dropped."""

    def __init__(self, bid: Bid, candidates: list[Running]) -> None:
        self.bid = bid
        self.path = set(bid.queue.node.ancestors())
        self.waiting: dict[str, list[Running]] = {}
        self.dropped: set[QuotaNode] = set()
        self._shares: dict[QuotaNode, Dominant] = {}
        self._without: dict[tuple[QuotaNode, Mark], Share] = {}
        for candidate in candidates:
            self.waiting.setdefault(candidate.queue, []).append(candidate)

    def dominant(self, node: QuotaNode) -> Dominant:
        """The share of a node as it is now."""
        found = self._shares.get(node)
        if found is None:
            found = self._shares[node] = dominant(node)
        return found

    def after(self, candidate: Running, node: QuotaNode) -> Share:
        """The share of a node without a candidate; those that use the same make the same difference."""
        key = node, candidate.mark
        found = self._without.get(key)
        if found is None:
            found = self._without[key] = _after(self.bid.state, candidate, node)
        return found

    def changed(self) -> None:
        """Forget shares: a workload went."""
        self._shares.clear()
        self._without.clear()

    def queues(self) -> Iterator[Queue]:
        """The next queue to look at; between two of them one of its candidates is taken, or it is dropped."""
        root = self.bid.queue.node.root()
        if root is self.bid.queue.node:
            while self.waiting.get(self.bid.queue.name):
                yield self.bid.queue
            return
        while root not in self.dropped:
            found = self._next(root)
            if found is not None:
                yield self.bid.state.queues[found.name]

    def _next(self, cohort: QuotaNode) -> QuotaNode | None:
        queue, queue_share = self._highest_queue(cohort)
        below: QuotaNode | None = None
        below_share: Share = (-1, 0.0)
        for child in cohort.cohorts():
            if child in self.dropped:
                continue
            found = self.dominant(child)
            if not found.borrows and child not in self.path:
                self.dropped.add(child)
            elif found.share >= below_share:
                below, below_share = child, found.share
        if queue is None and below is None:
            self.dropped.add(cohort)
            return None
        return self._next(below) if below is not None and below_share >= queue_share else queue

    def _highest_queue(self, cohort: QuotaNode) -> tuple[QuotaNode | None, Share]:
        highest: QuotaNode | None = None
        share: Share = (-1, 0.0)
        for child in cohort.queues():
            if child in self.dropped:
                continue
            found = self.dominant(child)
            own = child is self.bid.queue.node
            if (not found.borrows and not own) or not self.waiting.get(child.name):
                self.dropped.add(child)
            elif highest is not None and found.share == share:
                if self.bid.order(self.waiting[child.name][0]) < self.bid.order(self.waiting[highest.name][0]):
                    highest = child
            elif found.share > share:
                highest, share = child, found.share
        return highest, share


def _first(
    bid: Bid, candidates: list[Running], strategy: str, *, within_nominal: bool
) -> tuple[bool, list[Target], list[Running]]:
    """Preempt by the first strategy; returns whether it fits, the targets, and who was spared."""
    order = _Order(bid, candidates)
    entitled = _entitled(bid, within_nominal=within_nominal)
    targets: list[Target] = []
    spared: list[Running] = []
    for queue in order.queues():
        waiting = order.waiting[queue.name]
        if queue is bid.queue or entitled:
            why = Why.WITHIN_QUEUE if queue is bid.queue else Why.RECLAIM
            if _preempt(bid, waiting.pop(0), why, targets):
                return True, targets, []
            order.changed()
            continue
        mine, theirs = _below_meeting(bid.queue.node, queue.node)
        share, before = order.dominant(mine).share, order.dominant(theirs).share
        if share > before:  # nobody's going makes their share larger
            spared += waiting
            waiting.clear()
        while waiting:
            candidate = waiting.pop(0)
            if _unfair(strategy, share, before, order.after(candidate, theirs)):
                if _preempt(bid, candidate, Why.FAIR_SHARING, targets):
                    return True, targets, []
                order.changed()
                break
            spared.append(candidate)
    return False, targets, spared


def _second(bid: Bid, candidates: list[Running], targets: list[Target]) -> bool:
    """Preempt by the second strategy, one workload of each queue."""
    order = _Order(bid, candidates)
    for queue in order.queues():
        mine, theirs = _below_meeting(bid.queue.node, queue.node)
        if order.dominant(mine).share < order.dominant(theirs).share:
            if _preempt(bid, order.waiting[queue.name].pop(0), Why.FAIR_SHARING, targets):
                return True
            order.changed()
        order.dropped.add(queue.node)
    return False


def _unfair(strategy: str, mine: Share, before: Share, after: Share) -> bool:
    return mine < before if strategy == "LessThanInitialShare" else mine <= after


def _preempt(bid: Bid, workload: Running, why: Why, targets: list[Target]) -> bool:
    """Take a workload out; whether the bid fits then (its own use is counted in, and left out for the question)."""
    bid.state.stop(workload)
    targets.append(Target(workload, why))
    bid.state.use(bid.queue, bid.usage, sign=-1)
    fits = bid.fits(may_borrow=True)
    bid.state.use(bid.queue, bid.usage)
    return fits


def _below_meeting(left: QuotaNode, right: QuotaNode) -> tuple[QuotaNode, QuotaNode]:
    """The two nodes right below the lowest cohort that is above both."""
    above = set(left.ancestors())
    meeting = next(node for node in right.ancestors() if node in above)
    return _child_towards(left, meeting), _child_towards(right, meeting)


def _child_towards(node: QuotaNode, top: QuotaNode) -> QuotaNode:
    while node.parent is not top:
        assert node.parent is not None  # noqa: S101 - `top` is an ancestor
        node = node.parent
    return node


def _after(state: State, workload: Running, node: QuotaNode) -> Share:
    """The share of a node without one workload of a queue below it."""
    queue = state.queues[workload.queue]
    state.use(queue, workload.usage, sign=-1)  # where its pods stand has no part in it
    share = dominant(node).share
    state.use(queue, workload.usage)
    return share
