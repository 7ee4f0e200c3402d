"""The smallest change: one number or line, proved by deciding again, and none where no single one is enough."""

from __future__ import annotations

import pytest

from blueprint.admission.amounts import FlavorResource
from blueprint.admission.change import raised
from blueprint.admission.decide import decide
from blueprint.admission.limits import levers
from tests.admission.writing import (
    GPU,
    Body,
    changed,
    flavor,
    gpus,
    group,
    kueue,
    local,
    node,
    pods,
    queue,
    read,
    row,
    workload,
)

F = flavor("f")
LQ = local("lq", "a")


def job(count: int) -> Body:
    return workload(pods(requests={GPU: count}))


def words(*bodies: Body) -> str:
    change = changed(*bodies)
    return change.words if change else ""


CQ = "ClusterQueue.kueue.x-k8s.io"

CHANGES = {
    "own quota": ([F, LQ, gpus("a", 8), job(12)], f"{CQ} a: nominalQuota of {GPU} on flavor f 8 → 12"),
    "borrowing limit, when the cohort has enough": (
        [F, LQ, gpus("a", 8, 4, cohort="c"), gpus("b", 12, cohort="c"), job(16)],
        f"{CQ} a: borrowingLimit of {GPU} on flavor f 4 → 8",
    ),
    "lending limit of another": (
        [F, LQ, gpus("a", 8, cohort="c"), gpus("b", 8, None, 2, cohort="c"), job(12)],
        f"{CQ} b: lendingLimit of {GPU} on flavor f 2 → 4",
    ),
    "both limits, so the quota": (
        [F, LQ, gpus("a", 8, 1, cohort="c"), gpus("b", 8, None, 1, cohort="c"), job(12)],
        f"{CQ} a: nominalQuota of {GPU} on flavor f 8 → 11",
    ),
    "stopped": ([F, LQ, gpus("a", 8, stopPolicy="Hold"), job(1)], f"{CQ} a: spec.stopPolicy Hold → None"),
    "no namespaces": (
        [F, LQ, gpus("a", 8, namespaceSelector=None), job(1)],
        f"{CQ} a: spec.namespaceSelector null → {{}}",
    ),
    "queue name": (
        [F, LQ, gpus("a", 8), workload(pods(requests={GPU: 1}), queue="typo")],
        "Workload.kueue.x-k8s.io team/w: metadata.labels[kueue.x-k8s.io/queue-name] typo → lq",
    ),
    "taint": (
        [flavor("f", nodeTaints=[{"key": "gpu", "effect": "NoSchedule"}]), LQ, gpus("a", 8), job(1)],
        "ResourceFlavor.kueue.x-k8s.io f: spec.tolerations + {key: gpu, operator: Exists}",
    ),
}


@pytest.mark.parametrize(("world", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_changes(world: list[Body], expected: str) -> None:
    assert words(*world) == expected


def test_no_change_where_two_are_needed() -> None:
    world = [F, LQ, queue("a", group({"f": [row("cpu", 1), row(GPU, 1)]}), stopPolicy="Hold")]
    assert changed(*world, workload(pods(requests={"cpu": 2, GPU: 2}))) is None


def test_nothing_to_change_where_it_is_admitted() -> None:
    assert changed(F, LQ, gpus("a", 8), job(8)) is None


def test_the_number_is_the_least_that_admits() -> None:
    world = read(F, LQ, gpus("a", 8, 4, cohort="c"), gpus("b", 12, cohort="c"), job(16))
    asked = world.manifests[-1]
    found = decide(world, asked)
    assert found.way.queue is not None
    limit = next(each for each in levers(found.way.queue, FlavorResource("f", GPU)) if each.field == "borrowingLimit")
    assert decide(raised(world, limit, 8), asked).admissible is True
    assert decide(raised(world, limit, 7), asked).admissible is False


def test_topology_softens_before_pods_go() -> None:
    tree = [
        flavor("t", nodeLabels={"pool": "t"}, topologyName="dc"),
        kueue("Topology", "dc", {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]}),
        LQ,
        queue("a", group({"t": [row(GPU, 100)]})),
        *(node(f"n{n}", {"pool": "t", "rack": f"r{n // 2}"}, {GPU: 1}) for n in range(4)),
    ]
    asked = workload(pods(count=3, requests={GPU: 1}, topology={"required": "rack"}))
    assert words(*tree, asked).endswith("topology of p required rack → preferred rack")
    asked = workload(pods(count=5, requests={GPU: 1}, topology={"preferred": "rack"}))
    assert words(*tree, asked).endswith("pods of p 5 → 4")
