"""Where a job that is admitted before and after a change lands: on which flavors."""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.admission.decide import Decision, PodSetPlan


def moves(then: Decision, now: Decision) -> Iterator[str]:
    """What to say behind the name of a job, for each of its pod sets that goes to another flavor."""
    before = {plan.name: _flavors(plan) for plan in then.podsets}
    told = {plan.name: (before[plan.name], _flavors(plan)) for plan in now.podsets if plan.name in before}
    moved = {name: each for name, each in told.items() if all(each) and each[0] != each[1]}
    if len(moved) == len(told) and len(set(moved.values())) == 1:
        moved = {"": next(iter(moved.values()))}
    for name, (old, new) in moved.items():
        what = f": its {name} goes" if name else " goes"
        word = "flavor" if len(new) == 1 else "flavors"
        yield f"{what} to {word} {', '.join(new)} instead of {', '.join(old)}"


def _flavors(plan: PodSetPlan) -> tuple[str, ...]:
    """The flavors of accelerators, of all resources where it has none; a rename of resources alone is no move."""
    devices = [flavor for name, flavor in plan.flavors.items() if "/" in name]
    return tuple(sorted(dict.fromkeys(devices or plan.flavors.values())))
