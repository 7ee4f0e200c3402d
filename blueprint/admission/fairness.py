"""Whom a workload would preempt under fair sharing, by the shares of queues and cohorts.

Source: kueue v0.17.0 pkg/scheduler/preemption/preemption.go (`fairPreemptions`), preemption/fairsharing,
pkg/cache/scheduler/fair_sharing.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blueprint.admission.amounts import FlavorResource, Usage
from blueprint.admission.preemption import Bid, Target, Why, restore, spare
from blueprint.admission.quota import QuotaNode
from blueprint.admission.state import Mark, Queue, Running, State

Share = tuple[int, float]
"""Sorts shares: queues without weight that borrow come last, by what they borrow; others by the weighted share."""

Candidates = dict[str, list[Running]]
"""By queue the workloads that may be preempted, in the order in which they would be."""


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


_NOTHING = Dominant((0, 0.0), frozenset())


def dominant(node: QuotaNode, more: Usage | None = None) -> Dominant:
    """The dominant share of a queue or cohort, of a queue also with more use; nothing for a root."""
    if node.parent is None:
        return _NOTHING
    borrowed: dict[str, int] = {}
    keys: set[FlavorResource] = set()
    used = node.used
    for key, quota in node.subtree.items():
        over = used.get(key, 0) - quota
        if more is not None:
            over += more.get(key, 0)
        if over > 0:
            borrowed[key.resource] = borrowed.get(key.resource, 0) + over
            keys.add(key)
    if not keys:
        return _NOTHING
    lendable = node.parent.lendable()
    ratios = [amount * 1000.0 / lendable[name] for name, amount in borrowed.items() if lendable.get(name, 0) > 0]
    ratio = max(ratios, default=0.0)
    share = (1, ratio) if ratio and not node.weight else (0, ratio / node.weight if ratio else 0.0)
    return Dominant(share, frozenset(keys))


def fair(bid: Bid, strategies: tuple[str, ...], *, within_nominal: bool) -> list[Target]:
    """The workloads to preempt, [] where that does not help.

    `within_nominal` is the gate FairSharingPreemptWithinNominal: a queue takes back its own quota whatever the shares.
    """
    candidates = dict(_candidates(bid))
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


def _all_below(bid: Bid, candidates: Candidates) -> bool:
    """Whether all candidates are of other sides that have less than the queue's own: then none of them has to go."""
    if bid.queue.name in candidates:
        return False
    shares: dict[QuotaNode, Share] = {}
    for name in candidates:
        mine, theirs = _below_meeting(bid.queue.node, bid.state.queues[name].node)
        if mine not in shares:
            shares[mine] = dominant(mine).share
        if theirs not in shares:
            shares[theirs] = dominant(theirs).share
        if shares[mine] <= shares[theirs]:
            return False
    return True


def _candidates(bid: Bid) -> Iterator[tuple[str, list[Running]]]:
    """Queues with the workloads in them that may be preempted, in the order of `Bid.order`."""
    policies, node = bid.queue.spec.policies, bid.queue.node
    if policies.within_queue != "Never" and (own := _allowed(bid, bid.queue, policies.within_queue)):
        yield bid.queue.name, own
    if node.parent is None or policies.within_cohort == "Never":
        return
    for other in node.root().all_queues():
        if other is node or other.within(bid.keys):
            continue
        if found := _allowed(bid, bid.state.queues[other.name], policies.within_cohort):
            yield other.name, found


def _allowed(bid: Bid, queue: Queue, policy: str) -> list[Running]:
    return [w for w in queue.ranked if bid.uses(w) and (policy == "Any" or bid.may_preempt(w, policy))]


class _Order:
    """Queues in the order of their shares, from the root down; one that has nothing more to give is dropped.

    Only those with candidates are looked at: `below` are such queues by their cohort, `above` the cohorts over them.
    """

    def __init__(self, bid: Bid, candidates: Candidates) -> None:
        self.bid = bid
        self.path = set(bid.queue.node.ancestors())
        self.waiting = {name: list(found) for name, found in candidates.items()}
        self.dropped: set[QuotaNode] = set()
        self.below: dict[QuotaNode, list[QuotaNode]] = {}
        self.above: set[QuotaNode] = set()
        self._shares: dict[QuotaNode, Dominant] = {}
        self._without: dict[tuple[QuotaNode, Mark], Share] = {}
        for name in self.waiting:
            node = bid.state.queues[name].node
            if node.parent is not None:
                self.below.setdefault(node.parent, []).append(node)
        for cohort in self.below:
            self.above.update((cohort, *cohort.ancestors()))

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

    def changed(self, queue: Queue) -> None:
        """Forget shares of a queue and of what is above it: a workload of it went."""
        self._shares.pop(queue.node, None)
        for node in queue.node.ancestors():
            self._shares.pop(node, None)
        self._without.clear()

    @property
    def flat(self) -> bool:
        """Whether all candidates are of other queues right below one cohort: what is true of the next one's share is
        true of all that come after it.
        """
        parent = self.bid.queue.node.parent
        return parent is not None and self.above == {parent} and self.bid.queue.name not in self.waiting

    def rest(self) -> Iterator[tuple[str, list[Running]]]:
        """What is left of the candidates."""
        return ((name, found) for name, found in self.waiting.items() if found)

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
            if child not in self.above or child in self.dropped:
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
        for child in self.below.get(cohort, ()):
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
    bid: Bid, candidates: Candidates, strategy: str, *, within_nominal: bool
) -> tuple[bool, list[Target], Candidates]:
    """Preempt by the first strategy; returns whether it fits, the targets, and who was spared."""
    order = _Order(bid, candidates)
    entitled = _entitled(bid, within_nominal=within_nominal)
    targets: list[Target] = []
    spared: Candidates = {}
    for queue in order.queues():
        waiting = order.waiting[queue.name]
        if queue is bid.queue or entitled:
            why = Why.WITHIN_QUEUE if queue is bid.queue else Why.RECLAIM
            if _preempt(bid, waiting.pop(0), why, targets):
                return True, targets, {}
            order.changed(queue)
            continue
        mine, theirs = _below_meeting(bid.queue.node, queue.node)
        share, before = order.dominant(mine).share, order.dominant(theirs).share
        if share > before and order.flat:
            for name, found in order.rest():
                spared.setdefault(name, []).extend(found)
            break
        if share > before:  # nobody's going makes their share larger
            spared.setdefault(queue.name, []).extend(waiting)
            waiting.clear()
        while waiting:
            candidate = waiting.pop(0)
            if _unfair(strategy, share, before, order.after(candidate, theirs)):
                if _preempt(bid, candidate, Why.FAIR_SHARING, targets):
                    return True, targets, {}
                order.changed(queue)
                break
            spared.setdefault(queue.name, []).append(candidate)
    return False, targets, spared


def _second(bid: Bid, candidates: Candidates, targets: list[Target]) -> bool:
    """Preempt by the second strategy, one workload of each queue."""
    order = _Order(bid, candidates)
    for queue in order.queues():
        mine, theirs = _below_meeting(bid.queue.node, queue.node)
        if order.dominant(mine).share < order.dominant(theirs).share:
            if _preempt(bid, order.waiting[queue.name].pop(0), Why.FAIR_SHARING, targets):
                return True
            order.changed(queue)
        elif order.flat:
            break
        order.dropped.add(queue.node)
    return False


def _unfair(strategy: str, mine: Share, before: Share, after: Share) -> bool:
    return mine < before if strategy == "LessThanInitialShare" else mine <= after


def _preempt(bid: Bid, workload: Running, why: Why, targets: list[Target]) -> bool:
    """Take a workload out; whether the bid, whose own use is counted in, fits then."""
    bid.state.set_aside(workload)
    targets.append(Target(workload, why))
    return bid.counted_fits()


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
    if queue.node is node:
        return dominant(node, {key: -amount for key, amount in workload.usage.items()}).share
    state.use(queue, workload.usage, sign=-1)  # where its pods stand has no part in it
    share = dominant(node).share
    state.use(queue, workload.usage)
    return share
