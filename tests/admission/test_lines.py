"""Workloads that are alike are looked at as one: the outcome is that of looking at each."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from blueprint.admission.engine import Engine, submitted
from blueprint.admission.state import idle
from blueprint.admission.world import world
from blueprint.finding import Source
from blueprint.objects import Manifest
from tests.admission.writing import GPU, Body, flavor, gpus, kueue, local, manifests, node, pods, workload

POLICIES: tuple[Body, ...] = (
    {},
    {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
    {"withinClusterQueue": "LowerOrNewerEqualPriority", "reclaimWithinCohort": "LowerPriority"},
    {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority"}},
)


def events(seed: int, *, grouped: bool) -> list[tuple[int, str, str]]:
    """What happens to forty workloads of a few shapes in a random world, some of which end again."""
    dice = random.Random(seed)
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    cluster = [
        flavor("f", nodeLabels={"p": "f"}, topologyName="t"),
        kueue("Topology", "t", {"levels": levels}),
        *(node(f"n{n}", {"p": "f", "rack": f"r{n // 2}"}, {GPU: 4}) for n in range(4)),
    ]
    queues = [
        gpus(
            name,
            dice.choice((4, 6, 8)),
            cohort=dice.choice(("c", "c", "")),
            preemption=dice.choice(POLICIES),
            queueingStrategy=dice.choice(("StrictFIFO", "BestEffortFIFO", "BestEffortFIFO")),
        )
        for name in "ab"
    ]
    found = world(manifests(*cluster, *queues, *(local(f"lq-{name}", name) for name in "ab")))
    engine = Engine(idle(found))
    shapes = [
        (dice.choice("ab"), dice.choice((1, 2, 3, 4)), dice.choice((0, 0, 5)), dice.choice((1, 2))) for _ in "1234"
    ]
    seen: list[tuple[int, str, str]] = []
    for turn in range(40):
        shape = dice.randrange(len(shapes))
        where, gpu, priority, count = shapes[shape]
        wish = {"required": "rack" if count > 1 else "kubernetes.io/hostname"}
        body = workload(
            pods(requests={GPU: gpu}, count=count, topology=wish),
            queue=f"lq-{where}",
            name=f"w{turn:02}",
            priority=priority,
        )
        submission = submitted(engine.state, Manifest(body, Source("x")))
        assert submission is not None
        if engine.running and dice.random() < 0.5:
            engine.finish(dice.choice(sorted(engine.running)))
            seen += [(turn, event.what, event.key) for event in engine.settle(turn)]
        asked, queue = submission
        engine.submit(replace(asked, alike=str(shape)) if grouped else asked, queue, turn)
        seen += [(turn, event.what, event.key) for event in engine.settle(turn)]
        if engine.restless:
            break
    return seen


@pytest.mark.parametrize("seed", range(40))
def test_grouping_changes_nothing(seed: int) -> None:
    assert events(seed, grouped=True) == events(seed, grouped=False)
