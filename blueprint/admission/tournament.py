"""The order of a scheduling cycle under fair sharing.

Source: kueue v0.17.0 pkg/scheduler/fair_sharing_iterator.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

from blueprint.admission.amounts import Usage
from blueprint.admission.attempt import Attempt
from blueprint.admission.fairness import Share, dominant
from blueprint.admission.lines import Order, Waiting
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


Rank = tuple[bool, Share, Order]
"""Sorts rivals at a cohort: whether their side borrows what they ask for, its share with it, priority and age."""


class Tournament:
    """Under fair sharing: at every cohort the entry wins whose side borrows least with it (kueue KEP 1714).

    After a turn only the queue of that entry and the cohorts above it use more, so what is known of other sides stays:
    `known` is the winner of a queue or cohort, with its rank at the cohort above.
    """

    def __init__(self, state: State, entries: list[Entry], *, by_nominal: bool) -> None:
        self.state = state
        self.by_nominal = by_nominal
        # Below one cohort an entry that asks for nothing now is in nobody's way; below several it can hold up its own.
        flat = len({entry.waiting.queue.node.parent for entry in entries}) == 1
        self.left = {entry.waiting.queue.node: entry for entry in entries if not (flat and entry.inert)}
        self.known: dict[QuotaNode, tuple[Rank, Entry]] = {}
        self.sides: dict[QuotaNode, dict[QuotaNode, None]] = {}
        for node in self.left:
            side = node
            for above in node.ancestors():
                self.sides.setdefault(above, {})[side] = None
                side = above

    def turns(self) -> Iterator[Entry]:
        """Entries in order; shares are worked out anew after each, since it may have been admitted."""
        number = Counter(node.root() for node in self.left)
        for node in sorted(self.left, key=lambda each: self.left[each].waiting.order):
            root = node.root()
            while node in self.left:
                winner = self.left[node] if number[root] == 1 else self._winner(root)
                assert winner is not None  # noqa: S101 - `node` itself takes part
                gone = winner.waiting.queue.node
                del self.left[gone]
                number[root] -= 1
                for each in (gone, *gone.ancestors()):
                    self.known.pop(each, None)
                yield winner

    def _winner(self, cohort: QuotaNode) -> Entry | None:
        rivals = [found for side in list(self.sides[cohort]) if (found := self._rival(side, cohort)) is not None]
        return min(rivals, key=itemgetter(0))[1] if rivals else None

    def _rival(self, side: QuotaNode, cohort: QuotaNode) -> tuple[Rank, Entry] | None:
        """The winner of a side of a cohort, and its rank there."""
        found = self.known.get(side)
        if found is None:
            entry = self.left.get(side) if side.queue else self._winner(side)
            if entry is None:
                del self.sides[cohort][side]
                return None
            found = self.known[side] = self._rank(side, entry), entry
        return found

    def _rank(self, side: QuotaNode, entry: Entry) -> Rank:
        if side.queue:
            found = dominant(side, entry.usage)
        else:
            self.state.use(entry.waiting.queue, entry.usage)
            found = dominant(side)
            self.state.use(entry.waiting.queue, entry.usage, sign=-1)
        borrows = self.by_nominal and any(entry.usage.get(key, 0) > 0 for key in found.borrowed)
        return borrows, found.share, entry.waiting.order
