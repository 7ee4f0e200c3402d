"""The order of a scheduling cycle under fair sharing.

Source: kueue v0.17.0 pkg/scheduler/fair_sharing_iterator.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blueprint.admission.amounts import Usage
from blueprint.admission.attempt import Attempt
from blueprint.admission.fairness import Share, dominant
from blueprint.admission.lines import Waiting
from blueprint.admission.modes import Mode
from blueprint.admission.quota import QuotaNode
from blueprint.admission.state import Running, State


@dataclass(slots=True, eq=False)
class Entry:
    """The head of a queue in one cycle, with what a look at it brought.

    `held` is what is kept free for it, where that is less than what it asks for; `planned` is how it would run.
    """

    waiting: Waiting
    attempt: Attempt
    admitted: bool = False
    skipped: bool = False
    preempting: bool = False
    held: Usage | None = None
    planned: Running | None = None

    @property
    def inert(self) -> bool:
        """Whether it can neither be admitted nor preempt, and nothing is held back for it."""
        assignment, policies = self.attempt.assignment, self.waiting.queue.spec.policies
        lost = assignment.mode is Mode.PREEMPT and not self.attempt.targets and policies.within_cohort == "Any"
        return lost or assignment.mode is Mode.NO_FIT

    @property
    def usage(self) -> Usage:
        """What it would use, or what is held back for it."""
        return self.attempt.assignment.usage if self.held is None else self.held


class Tournament:
    """Under fair sharing: at every cohort the entry wins whose side borrows least with it (kueue KEP 1714)."""

    def __init__(self, state: State, entries: list[Entry], *, by_nominal: bool) -> None:
        self.state = state
        self.by_nominal = by_nominal
        # Below one cohort an entry that asks for nothing now is in nobody's way; below several it can hold up its own.
        flat = len({entry.waiting.queue.node.parent for entry in entries}) == 1
        self.left = {entry.waiting.queue.node: entry for entry in entries if not (flat and entry.inert)}

    def turns(self) -> Iterator[Entry]:
        """Entries in order; shares are worked out anew after each, since it may have been admitted."""
        while self.left:
            node = min(self.left, key=lambda each: self.left[each].waiting.order)
            root = node.root()
            alone = sum(other.root() is root for other in self.left) == 1
            winner = self.left[node] if alone else self._winner(root, self._shares(root))
            assert winner is not None  # noqa: S101 - `node` itself takes part
            del self.left[winner.waiting.queue.node]
            yield winner

    def _shares(self, root: QuotaNode) -> dict[tuple[QuotaNode, Entry], tuple[bool, Share]]:
        """For each cohort and entry below it: whether its side borrows what it asks for, and its share, with it in."""
        shares: dict[tuple[QuotaNode, Entry], tuple[bool, Share]] = {}
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

    def _winner(self, cohort: QuotaNode, shares: dict[tuple[QuotaNode, Entry], tuple[bool, Share]]) -> Entry | None:
        below = [self._winner(child, shares) for child in cohort.cohorts()]
        below += [self.left.get(child) for child in cohort.queues()]
        rivals = [entry for entry in below if entry is not None]
        return min(rivals, key=lambda e: (*shares[cohort, e], *e.waiting.order)) if rivals else None
