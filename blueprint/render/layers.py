"""Layers of a graph of needs, and the knots in it: plain graph work over numbered nodes, linear in nodes and edges."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

Edge = tuple[int, int, int]
"""(needed, needing, weight): weight 1 asks for a later layer, weight 0 allows the same one."""

_STARTS = 200
"""From how many nodes of a knot the shortest cycle is searched, so that a huge knot stays affordable."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The layer of each node, counted from 0 within its group.

    `late` are the nodes that stand in the last layer of their group because they, or something they follow, can stall;
    `blocked` are the edges of weight 1 that start at such a node: the needing node could wait for ever.
    """

    level: list[int]
    late: frozenset[int]
    blocked: list[tuple[int, int]]


def knots(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """The sets of nodes that need each other in a circle, each sorted, in the order of their first node (Tarjan)."""
    if len(_topological(count, edges)) == count:
        return []
    following = _successors(count, edges)
    index = [-1] * count
    low = [0] * count
    on_stack = bytearray(count)
    stack: list[int] = []
    found: list[list[int]] = []
    clock = 0
    for root in range(count):
        if index[root] != -1:
            continue
        work = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = clock
                clock += 1
                stack.append(node)
                on_stack[node] = 1
            entered = False
            for position in range(at, len(following[node])):
                after = following[node][position]
                if index[after] == -1:
                    work += [(node, position + 1), (after, 0)]
                    entered = True
                    break
                if on_stack[after]:
                    low[node] = min(low[node], index[after])
            if entered:
                continue
            if low[node] == index[node]:
                knot = []
                while True:
                    member = stack.pop()
                    on_stack[member] = 0
                    knot.append(member)
                    if member == node:
                        break
                if len(knot) > 1 or node in following[node]:
                    found.append(sorted(knot))
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
    return sorted(found)


def shortest_cycle(knot: Sequence[int], edges: Iterable[Edge]) -> list[int]:
    """The shortest circle of needs in a knot: each node needs the next, the last needs the first.

    Searched from the first 200 nodes of the knot; in a larger one a shorter circle may lie elsewhere.
    """
    members = set(knot)
    needs: dict[int, list[int]] = {node: [] for node in knot}
    for needed, needing, _ in edges:
        if needed in members and needing in members:
            needs[needing].append(needed)
    best: list[int] = []
    for start in list(knot)[:_STARTS]:
        came: dict[int, int] = {start: start}
        queue = deque([(start, 1)])
        while queue:
            node, length = queue.popleft()
            if best and length >= len(best):
                break
            if start in needs[node]:
                best = [node]
                while best[-1] != start:
                    best.append(came[best[-1]])
                best.reverse()
                break
            for after in needs[node]:
                if after not in came:
                    came[after] = node
                    queue.append((after, length + 1))
        if len(best) == 1:
            break
    return best


def without(edges: Iterable[Edge], tied: Sequence[Sequence[int]]) -> list[Edge]:
    """The edges that lie in none of the knots."""
    owner = {node: number for number, knot in enumerate(tied) for node in knot}
    return [edge for edge in edges if edge[0] not in owner or owner[edge[0]] != owner.get(edge[1])]


def layer(groups: Sequence[int], edges: Sequence[Edge], stalling: Collection[int]) -> Layers:
    """Lay out the nodes of each group by the edges inside it; the edges must be free of circles."""
    count = len(groups)
    incoming: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for needed, needing, weight in edges:
        if groups[needed] == groups[needing]:
            incoming[needing].append((needed, weight))
    level = [0] * count
    late = set(stalling)
    blocked: list[tuple[int, int]] = []
    for node in _topological(count, edges):
        for needed, weight in incoming[node]:
            if needed in late:
                late.add(node)
                level[node] = max(level[node], level[needed])
                if weight:
                    blocked.append((needed, node))
            else:
                level[node] = max(level[node], level[needed] + weight)
    last: dict[int, int] = {}
    for node, group in enumerate(groups):
        last[group] = max(last.get(group, 0), level[node])
    for node in late:
        level[node] = last[groups[node]]
    return Layers(level, frozenset(late), sorted(blocked))


def _successors(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    following: list[list[int]] = [[] for _ in range(count)]
    for needed, needing, _ in edges:
        following[needed].append(needing)
    return following


def _topological(count: int, edges: Iterable[Edge]) -> list[int]:
    following = _successors(count, edges)
    open_needs = [0] * count
    for successors in following:
        for node in successors:
            open_needs[node] += 1
    order = [node for node in range(count) if not open_needs[node]]
    for node in order:
        for after in following[node]:
            open_needs[after] -= 1
            if not open_needs[after]:
                order.append(after)
    return order
