"""Layers and knots against slow and plain answers."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from blueprint.render.layers import Edge, knots, layer, shortest_cycle, without

NODES = 7
edges = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(0, 1)), max_size=18)


def reach(links: list[Edge]) -> list[list[bool]]:
    """Whether a chain of at least one edge leads from one node to another (Warshall)."""
    table = [[any(e[0] == a and e[1] == b for e in links) for b in range(NODES)] for a in range(NODES)]
    for k, a, b in itertools.product(range(NODES), repeat=3):
        table[a][b] = table[a][b] or (table[a][k] and table[k][b])
    return table


@given(edges)
def test_knots_are_the_sets_of_nodes_that_reach_each_other(links: list[Edge]) -> None:
    table = reach(links)
    circular = {a for a in range(NODES) if table[a][a]}
    expected = sorted({tuple(b for b in sorted(circular) if table[a][b] and table[b][a]) for a in circular})
    assert [tuple(knot) for knot in knots(NODES, links)] == expected


@given(edges)
def test_the_shortest_cycle_is_one_and_none_is_shorter(links: list[Edge]) -> None:
    needs = {(needing, needed) for needed, needing, _ in links}
    for knot in knots(NODES, links):
        cycle = shortest_cycle(knot, links)
        assert len(set(cycle)) == len(cycle)
        assert all(pair in needs for pair in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        for size in range(1, len(cycle)):
            for other in itertools.permutations(knot, size):
                assert not all(pair in needs for pair in zip(other, [*other[1:], other[0]], strict=True))


@given(
    edges, st.sets(st.integers(0, NODES - 1), max_size=2), st.lists(st.integers(0, 1), min_size=NODES, max_size=NODES)
)
def test_layers_respect_every_edge_that_is_not_blocked(
    links: list[Edge], stalling: set[int], groups: list[int]
) -> None:
    free = without(links, knots(NODES, links))
    assert knots(NODES, free) == []
    laid = layer(groups, free, stalling)
    last = {group: max(laid.level[n] for n in range(NODES) if groups[n] == group) for group in groups}
    for needed, needing, weight in free:
        if groups[needed] != groups[needing]:
            continue
        if (needed, needing) in laid.blocked:
            assert needed in laid.late
        else:
            assert laid.level[needed] + weight <= laid.level[needing]
    assert all(laid.level[node] == last[groups[node]] for node in laid.late)
    assert stalling <= laid.late


def test_a_ring_of_ten_thousand_is_found_and_walked() -> None:
    count = 10_000
    ring = [(node, (node + 1) % count, 1) for node in range(count)]
    (knot,) = knots(count, ring)
    assert knot == list(range(count))
    assert len(shortest_cycle(knot[:300], [*ring[:299], (299, 0, 1)])) == 300
