"""What `explain` proposes is enough, and no less of it is: done to random worlds, and decided by Kueue's scheduler.

BLUEPRINT_CHANGES is how many (12 unless set), BLUEPRINT_SEED the first seed (0).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from blueprint.admission.change import Change, smallest_change
from blueprint.admission.decide import decide
from blueprint.admission.world import world
from blueprint.finding import Source
from blueprint.objects import Manifest
from tests.conformance.kueue.edits import edited, one_less
from tests.conformance.kueue.oracle import Answer, Oracle
from tests.conformance.kueue.shrink import renamed
from tests.conformance.kueue.worlds import Made, Maker

CHANGES = int(os.environ.get("BLUEPRINT_CHANGES", "12"))
SEED = int(os.environ.get("BLUEPRINT_SEED", "0"))
_AT_ONCE = 40


def proposals() -> Iterator[tuple[Made, Change]]:
    """Worlds in which the job is not admitted, with what would change that."""
    seed = SEED
    while True:
        made = Maker(seed).make()
        manifests = [Manifest(body, Source("world", n)) for n, body in enumerate([*made.objects, *made.workloads])]
        found = world(manifests)
        decision = decide(found, manifests[-1])
        spoils = any(reason.code == "KQ307" for reason in decision.reasons)
        change = None if spoils else smallest_change(found, manifests[-1], decision)
        if change is not None:
            yield made, change
        seed += 1


def answers(oracle: Oracle, worlds: list[Made]) -> dict[int, Answer]:
    """What Kueue says of the only workload of each world, by seed."""
    result: dict[int, Answer] = {}
    for start in range(0, len(worlds), _AT_ONCE):
        part = worlds[start : start + _AT_ONCE]
        objects = sorted((b for made in part for b in made.objects), key=lambda b: b["kind"] != "Namespace")
        workloads = [body for made in part for body in made.workloads]
        oracle.create(objects)
        oracle.ready()
        oracle.create(workloads)
        found = oracle.settle([body["metadata"]["name"] for body in workloads])
        result |= {made.seed: found[made.workloads[0]["metadata"]["name"]] for made in part}
        oracle.delete([*workloads, *(body for body in objects if body["kind"] != "Namespace")])
    return result


def test_what_is_proposed_is_enough_and_one_less_is_not(oracle: Oracle) -> None:
    """Each lever: a repair, a limit, a quota, a softer wish, fewer pods."""
    proposed = [pair for pair, _ in zip(proposals(), range(CHANGES), strict=False)]
    less = [(made, smaller) for made, change in proposed if (smaller := one_less(change)) is not None]
    enough = answers(oracle, [edited(made, change) for made, change in proposed])
    short = answers(oracle, [renamed(edited(made, change), f"v{made.seed}", made.seed) for made, change in less])
    levers = Counter(change.field.split("[")[0].split(" ")[0] for _, change in proposed)
    print(f"{len(proposed)} changes ({dict(levers)}), {len(less)} of them by one less")
    wrong = [f"{made.seed}: {change.words}" for made, change in proposed if not enough[made.seed].admitted]
    wrong += [f"{made.seed}: {change.words} is enough" for made, change in less if short[made.seed].admitted]
    assert not wrong, "\n".join(wrong)
