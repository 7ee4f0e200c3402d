"""How well a flavor suits: the order in which Kueue prefers them.

Source: kueue v0.17.0 pkg/scheduler/flavorassigner/flavorassigner.go (`granularMode`, `isPreferred`,
`shouldTryNextFlavor`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from blueprint.admission.amounts import FlavorResource
from blueprint.admission.queues import Fungibility


class Mode(IntEnum):
    """Whether an assignment can be admitted now, after preemption, or not at all."""

    NO_FIT = 0
    PREEMPT = 1
    FIT = 2


class Possibility(IntEnum):
    """The same in more steps; RECLAIM takes only from other queues."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4

    @property
    def mode(self) -> Mode:
        """The coarse mode."""
        return Mode.FIT if self is Possibility.FIT else Mode.NO_FIT if self is Possibility.NO_FIT else Mode.PREEMPT


class Suits(NamedTuple):
    """A possibility, and from how far it borrows (0: not at all)."""

    possibility: Possibility
    borrow: int


BEST = Suits(Possibility.FIT, 0)
WORST = Suits(Possibility.NO_FIT, 2**31)

Oracle = Callable[[FlavorResource, int], Suits]
"""Whether an amount could be had by preemption, and how far it would borrow then."""


def prefers(left: Suits, right: Suits, fungibility: Fungibility, *, no_candidates_last: bool = False) -> bool:
    """Whether the left one is better; with `no_candidates_last` (Kueue since 0.19.1) whatever it borrows."""
    if left.possibility is Possibility.NO_FIT:
        return False
    if right.possibility is Possibility.NO_FIT:
        return True
    bare = [each.possibility is Possibility.NO_CANDIDATES for each in (left, right)]
    if no_candidates_last and bare[0] is not bare[1]:
        return bare[1]
    if fungibility.preemption_over_borrowing:
        return (-left.borrow, left.possibility) > (-right.borrow, right.possibility)
    return (left.possibility, -left.borrow) > (right.possibility, -right.borrow)


def goes_on(found: Suits, fungibility: Fungibility) -> bool:
    """Whether the search tries the next flavor."""
    if found.possibility in (Possibility.NO_FIT, Possibility.NO_CANDIDATES):
        return True
    preempts = found.possibility in (Possibility.PREEMPT, Possibility.RECLAIM)
    if preempts and fungibility.next_when_preempting:
        return True
    return found.borrow > 0 and fungibility.next_when_borrowing
