"""The quota tree: Kueue's own vectors, and laws that hold for every tree.

The vectors restate kueue v0.17.0 pkg/cache/scheduler/resource_test.go `TestAvailable`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.admission.amounts import FlavorResource
from blueprint.admission.quota import Quota, QuotaNode, borrowing_height, fitting

RED = FlavorResource("red", "cpu")
BLUE = FlavorResource("blue", "cpu")


@dataclass
class Tree:
    """Rows are (parent, nominal, borrowing, lending); usage and what is expected by queue."""

    cohorts: dict[str, tuple[str, int, int | None, int | None]]
    queues: dict[str, tuple[str, int, int | None, int | None]]
    usage: dict[str, int] = field(default_factory=dict)
    available: dict[str, int] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)

    def build(self) -> dict[str, QuotaNode]:
        nodes = {
            name: QuotaNode(name, {RED: Quota(*row[1:])}, queue=name in self.queues)
            for name, row in (self.cohorts | self.queues).items()
        }
        for name, row in (self.cohorts | self.queues).items():
            if row[0]:
                nodes[row[0]].adopt(nodes[name])
        for node in nodes.values():
            if node.parent is None:
                node.settle()
        for name, amount in self.usage.items():
            nodes[name].take(RED, amount)
        return nodes


VECTORS = {
    "queue without cohort": Tree(
        {}, {"a": ("", 0, None, None), "b": ("", 5, None, None)}, {"a": 1, "b": 2}, {"a": 0, "b": 3}, {"a": 0, "b": 5}
    ),
    "queues of one cohort, one lends little": Tree(
        {"c": ("", 10, None, None)},
        {"a": ("c", 10, None, None), "b": ("c", 10, None, 9)},
        {"a": 1, "b": 0},
        {"a": 28, "b": 29},
        {"a": 29, "b": 30},
    ),
    "borrows from its cohort": Tree(
        {"c": ("", 10, None, None)}, {"a": ("c", 10, None, None)}, {"a": 11}, {"a": 9}, {"a": 20}
    ),
    "too much use spills over": Tree(
        {"c": ("", 10, None, None)},
        {"a": ("c", 10, None, None), "b": ("c", 10, 0, 0)},
        {"a": 31},
        {"a": 0, "b": 0},
        {"a": 20, "b": 10},
    ),
    "limits on borrowing and lending": Tree(
        {"c": ("", 10, None, None)},
        {"a": ("c", 10, None, None), "b": ("c", 10, 2, None), "d": ("c", 10, None, 5)},
        {"a": 20, "b": 10, "d": 6},
        {"a": 4, "b": 2, "d": 4},
        {"a": 35, "b": 12, "d": 40},
    ),
    "two levels": Tree(
        {"root": ("", 0, None, None), "left": ("root", 10, None, None), "right": ("root", 10, None, None)},
        {"a": ("left", 10, None, None), "b": ("right", 10, None, 0)},
        {"a": 10, "b": 5},
        {"a": 20, "b": 25},
        {"a": 30, "b": 40},
    ),
    "two levels, borrowing limits": Tree(
        {"root": ("", 0, None, None), "left": ("root", 10, 5, None), "right": ("root", 10, None, None)},
        {"a": ("left", 10, None, None), "b": ("left", 10, 5, None), "r": ("right", 10, None, None)},
        {},
        {"a": 35, "b": 15, "r": 50},
        {"a": 35, "b": 15, "r": 50},
    ),
    "two levels, lending limits": Tree(
        {"root": ("", 0, None, None), "left": ("root", 0, None, 5), "right": ("root", 0, None, None)},
        {
            "a": ("left", 10, None, 5),
            "b": ("left", 10, None, None),
            "r": ("right", 0, None, None),
            "t": ("root", 0, None, None),
        },
        {},
        {"a": 20, "b": 15, "r": 5, "t": 5},
        {"a": 20, "b": 15, "r": 5, "t": 5},
    ),
}


@pytest.mark.parametrize("tree", VECTORS.values(), ids=VECTORS.keys())
def test_upstream_vectors(tree: Tree) -> None:
    nodes = tree.build()
    assert {name: nodes[name].available(RED) for name in tree.queues} == tree.available
    assert {name: nodes[name].capacity(RED) for name in tree.queues} == tree.capacity


def test_a_key_without_quota_has_nothing() -> None:
    nodes = VECTORS["two levels"].build()
    assert nodes["a"].available(BLUE) == nodes["a"].capacity(BLUE) == 0


def test_borrowing_height_is_that_of_the_lowest_subtree_with_room() -> None:
    nodes = VECTORS["two levels"].build()
    queue = nodes["a"]
    queue.give_back(RED, 10)
    heights = [borrowing_height(queue, RED, amount) for amount in (10, 11, 20, 21, 30, 31)]
    assert heights == [(0, True), (1, True), (1, True), (2, False), (2, False), (2, False)]


def test_height_leaves_inactive_queues_out() -> None:
    root, cohort, queue = QuotaNode("root"), QuotaNode("c"), QuotaNode("q", queue=True, active=False)
    root.adopt(cohort)
    cohort.adopt(queue)
    assert (cohort.height(), root.height()) == (0, 1)
    queue.active = True
    assert (cohort.height(), root.height()) == (1, 2)


def test_what_does_not_fit_a_subtree_is_left_for_the_one_above() -> None:
    nodes = VECTORS["limits on borrowing and lending"].build()
    assert fitting(nodes["d"], {RED: 4}) == (True, {RED: 4})
    assert fitting(nodes["d"], {RED: 5}) == (False, {RED: 5})
    nodes["d"].give_back(RED, 6)
    assert fitting(nodes["d"], {RED: 11}) == (False, {RED: 6})


rows = st.tuples(st.integers(0, 20), st.none() | st.integers(0, 20), st.none() | st.integers(0, 20))


@st.composite
def trees(draw: st.DrawFn) -> dict[str, QuotaNode]:
    cohorts: dict[str, tuple[str, int, int | None, int | None]] = {"c0": ("", draw(st.integers(0, 20)), None, None)}
    for index in range(1, draw(st.integers(1, 4))):
        cohorts[f"c{index}"] = (draw(st.sampled_from(sorted(cohorts))), *draw(rows))
    queues = {
        f"q{index}": (draw(st.sampled_from(sorted(cohorts))), *draw(rows)) for index in range(draw(st.integers(1, 5)))
    }
    return Tree(cohorts, queues).build()


@given(trees())
def test_on_an_idle_tree_everything_is_available(nodes: dict[str, QuotaNode]) -> None:
    for node in nodes.values():
        if node.queue:
            assert node.available(RED) == node.capacity(RED)


@given(trees(), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 25)), max_size=6))
def test_giving_back_undoes_taking(nodes: dict[str, QuotaNode], takes: list[tuple[int, int]]) -> None:
    before = {name: dict(node.used) for name, node in nodes.items()}
    queues = [node for node in nodes.values() if node.queue]
    done = [(queues[index % len(queues)], amount) for index, amount in takes]
    for node, amount in done:
        node.take(RED, amount)
    for node, amount in reversed(done):
        node.give_back(RED, amount)
    for name, node in nodes.items():
        assert {k: v for k, v in node.used.items() if v} == before[name]


@given(trees(), st.integers(0, 4))
def test_what_is_taken_within_the_limits_never_makes_a_debt_above(nodes: dict[str, QuotaNode], index: int) -> None:
    queues = [node for node in nodes.values() if node.queue]
    queue = queues[index % len(queues)]
    queue.take(RED, queue.available(RED))
    assert queue.available(RED) == 0
    assert all(node.room(RED) >= 0 for node in nodes.values() if node.parent is None)
