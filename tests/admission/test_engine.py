"""The scheduler over time: order of queues, preemption, reclaiming, borrowing, strict queues."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.admission.engine import Engine, submitted
from blueprint.admission.state import idle
from blueprint.admission.world import world
from blueprint.finding import Source
from blueprint.objects import Manifest
from tests.admission.writing import (
    GPU,
    Body,
    flavor,
    gpus,
    group,
    kueue,
    local,
    manifests,
    node,
    pods,
    queue,
    row,
    workload,
)

FAIR = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "fairSharing": {}}


class Story:
    """A world in which workloads `name: (queue, GPUs, priority)` arrive one after the other."""

    def __init__(self, *bodies: Body, aside: tuple[Body, ...] = ()) -> None:
        queues = [body["metadata"]["name"] for body in bodies if body["kind"] == "ClusterQueue"]
        locals_ = [local(f"lq-{name}", name) for name in queues]
        known = any(body["kind"] == "ResourceFlavor" for body in bodies)
        self.world = world(manifests(*([] if known else [flavor("f")]), *bodies, *locals_), manifests(*aside))
        self.engine = Engine(idle(self.world))
        self.turn = 0

    def arrives(self, name: str, where: str, gpu: int, priority: int = 0, **more: Any) -> list[str]:
        """One workload more; returns what happened, such as `+a` and `-b`."""
        self.wait(name, where, gpu, priority, **more)
        events = self.engine.settle(self.turn)
        return [("+" if e.what == "admitted" else "-") + e.key.partition("/")[2] for e in events]

    def wait(self, name: str, where: str, gpu: int, priority: int = 0, **more: Any) -> None:
        """One workload more, without a look at the queues."""
        body = workload(pods(requests={GPU: gpu}, **more), queue=f"lq-{where}", name=name, priority=priority)
        found = submitted(self.engine.state, Manifest(body, Source("x")))
        assert found is not None
        self.turn += 1
        self.engine.submit(*found, created=self.turn)

    @property
    def runs(self) -> set[str]:
        return {key.partition("/")[2] for key in self.engine.running}


LOWER = {"withinClusterQueue": "LowerPriority"}


def test_priority_then_age_decides_who_is_first() -> None:
    story = Story(gpus("a", 4))
    for name, priority in (("old", 0), ("urgent", 10), ("young", 0)):
        story.wait(name, "a", 4, priority)
    story.engine.settle(1)
    assert story.runs == {"urgent"}
    story.engine.finish("team/urgent")
    story.engine.settle(2)
    assert story.runs == {"old"}


def test_a_small_one_passes_a_large_one_unless_the_queue_is_strict() -> None:
    for strategy, passed in (("BestEffortFIFO", {"small"}), ("StrictFIFO", set[str]())):
        story = Story(gpus("a", 4, queueingStrategy=strategy))
        story.arrives("large", "a", 8)
        story.arrives("small", "a", 1)
        assert story.runs == passed


@pytest.mark.parametrize(("policy", "events"), [("Never", []), ("LowerPriority", ["-low", "+high"])])
def test_within_a_queue(policy: str, events: list[str]) -> None:
    story = Story(gpus("a", 4, preemption={"withinClusterQueue": policy}))
    story.arrives("low", "a", 4)
    assert story.arrives("high", "a", 4, 10) == events


def test_the_least_important_and_latest_goes_and_no_more_than_need_be() -> None:
    story = Story(gpus("a", 4, preemption=LOWER))
    for name, priority in (("first", 0), ("second", 0), ("third", 5), ("fourth", 0)):
        story.arrives(name, "a", 1, priority)
    assert story.arrives("high", "a", 2, 10) == ["-fourth", "-second", "+high"]


def test_those_that_need_not_go_are_spared() -> None:
    story = Story(gpus("a", 4, preemption=LOWER))
    story.arrives("big", "a", 3)
    story.arrives("late", "a", 1)
    assert story.arrives("high", "a", 3, 10) == ["-big", "+high"]


def test_equal_priority_gives_way_to_the_older_one() -> None:
    story = Story(gpus("a", 4, preemption={"withinClusterQueue": "LowerOrNewerEqualPriority"}))
    story.turn = 10
    story.arrives("newer", "a", 4)
    story.turn = 0
    assert story.arrives("older", "a", 4) == ["-newer", "+older"]
    story.turn = 20
    assert story.arrives("newest", "a", 4) == []


@pytest.mark.parametrize(
    ("policy", "priority", "events"),
    [("Never", 100, []), ("LowerPriority", 0, []), ("LowerPriority", 10, ["-b1", "+a1"]), ("Any", 0, ["-b1", "+a1"])],
)
def test_what_was_lent_is_reclaimed(policy: str, priority: int, events: list[str]) -> None:
    story = Story(gpus("a", 4, cohort="c", preemption={"reclaimWithinCohort": policy}), gpus("b", 4, cohort="c"))
    story.arrives("b1", "b", 8)
    assert story.arrives("a1", "a", 4, priority) == events


def test_only_borrowers_give_back() -> None:
    story = Story(gpus("a", 4, cohort="c", preemption={"reclaimWithinCohort": "Any"}), gpus("b", 4, cohort="c"))
    story.arrives("b1", "b", 4)
    story.arrives("a1", "a", 4)
    assert story.arrives("a2", "a", 1, 100) == []


@pytest.mark.parametrize(("borrow", "events"), [(None, []), (0, ["-b1", "+a1"]), (-1, [])])
def test_preempting_in_order_to_borrow(borrow: int | None, events: list[str]) -> None:
    policy: Body = {"reclaimWithinCohort": "LowerPriority"}
    if borrow is not None:
        policy["borrowWithinCohort"] = {"policy": "LowerPriority", "maxPriorityThreshold": borrow}
    story = Story(gpus("a", 2, cohort="c", preemption=policy), gpus("b", 2, cohort="c"), gpus("d", 4, cohort="c"))
    story.arrives("b1", "b", 8)
    assert story.arrives("a1", "a", 4, 10) == events


def test_own_quota_is_served_before_borrowing() -> None:
    story = Story(gpus("a", 4, cohort="c"), gpus("b", 4, cohort="c"))
    story.wait("borrower", "b", 6)
    story.wait("owner", "a", 4)
    story.engine.settle(1)
    assert story.runs == {"owner"}


def used(story: Story) -> dict[str, Body]:
    """What is used of every queue and cohort."""
    return {name: {k: v for k, v in node.used.items() if v} for name, node in story.engine.state.nodes.items()}


def test_what_is_held_back_for_one_who_waits_is_held_for_a_cycle_only() -> None:
    policy = {"reclaimWithinCohort": "LowerPriority"}
    story = Story(gpus("a", 4, cohort="c", preemption=policy), gpus("b", 4, cohort="c"))
    story.arrives("b1", "b", 6, 100)
    story.wait("a1", "a", 4)
    story.wait("b2", "b", 2)
    before = used(story)
    story.engine._cycle()
    assert story.runs == {"b1"}, "a1 has the first right to what is free"
    assert used(story) == before
    story.engine.settle(9)
    assert story.runs == {"b1", "b2"}, "but it does not fit, and later nothing is held back"


def test_topology_is_freed_by_preemption() -> None:
    tree = [
        flavor("f", nodeLabels={"p": "f"}, topologyName="t"),
        kueue("Topology", "t", {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}),
        node("n1", {"p": "f"}, {GPU: 4}),
        node("n2", {"p": "f"}, {GPU: 4}),
    ]
    story = Story(*tree, gpus("a", 8, preemption=LOWER))
    host = {"required": "kubernetes.io/hostname"}
    story.arrives("a1", "a", 3, topology=host)
    story.arrives("a2", "a", 3, 5, topology=host)
    assert story.arrives("a3", "a", 2, topology=host) == [], "two halves are no place"
    assert story.arrives("a4", "a", 4, 10, topology=host) == ["-a1", "+a4"]


def test_fair_sharing_takes_from_those_above_their_share() -> None:
    policy = {"reclaimWithinCohort": "Any"}
    queues = [gpus(name, 3, cohort="c", preemption=policy) for name in "ab"] + [gpus("d", 6, cohort="c")]
    story = Story(*queues, aside=(FAIR,))
    for index in range(6):
        story.arrives(f"a{index}", "a", 2)
    assert story.runs == {f"a{index}" for index in range(6)}
    assert story.arrives("b0", "b", 2) == ["-a5", "+b0"]
    assert story.arrives("b1", "b", 2) == ["-a4", "+b1"]
    assert story.arrives("b2", "b", 2) == ["-a3", "+b2"]
    assert story.arrives("b3", "b", 2) == [], "both borrow the same now"


def test_weights_shift_the_share() -> None:
    policy = {"reclaimWithinCohort": "Any"}
    heavy = gpus("b", 0, cohort="c", preemption=policy, fairSharing={"weight": "3"})
    story = Story(gpus("a", 0, cohort="c"), heavy, gpus("d", 12, cohort="c"), aside=(FAIR,))
    for index in range(6):
        story.arrives(f"a{index}", "a", 2)
    for index in range(6):
        story.arrives(f"b{index}", "b", 2)
    assert len([name for name in story.runs if name.startswith("b")]) == 5, "10 of 12 by three is less than 4"


def test_a_workload_takes_its_flavors_with_it_when_it_ends() -> None:
    story = Story(flavor("x"), flavor("y"), queue("a", group({"x": [row(GPU, 2)], "y": [row(GPU, 2)]})))
    story.arrives("one", "a", 2)
    story.arrives("two", "a", 2)
    assert {key.flavor for _, each in story.engine.running.values() for key in each.usage} == {"x", "y"}
    story.engine.finish("team/one")
    story.arrives("three", "a", 2)
    assert story.runs == {"two", "three"}
    assert not story.engine.due
