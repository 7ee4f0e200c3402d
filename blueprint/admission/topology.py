"""The tree of topology domains of one flavor, and how many pods each domain has room for.

Source: kueue v0.17.0 pkg/cache/scheduler/tas_flavor_snapshot.go (`addNode`, `initialize`, `fillInCounts`,
`fillInCountsHelper`), pkg/cache/scheduler/tas_flavor.go, pkg/resources/requests.go (`CountIn`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from blueprint.admission.amounts import PODS, Amounts, quotient
from blueprint.admission.match import HOSTNAME, Placement, Toleration, untolerated
from blueprint.admission.nodes import Node

Values = tuple[str, ...]
"""Label values of a domain from the top level down; of a host only its name, as Kueue writes it."""

Spread = list[tuple[Values, int]]
"""Pods by leaf domain, in the order of domains."""

_MANY = 2**31 - 1


class Room(NamedTuple):
    """How many pods a leaf has room for, how many leaders (one at most), how many pods beside one, and what limits."""

    pods: int
    leader: int
    beside: int
    cause: str


Asked = tuple[Hashable, ...]
"""What the room of a leaf depends on, beside what is used of it."""


@dataclass(slots=True, eq=False)
class Used:
    """What is used of a leaf; `known` is the room that this leaves, forgotten with each change."""

    amounts: Amounts = field(default_factory=dict)
    known: dict[Asked, Room] = field(default_factory=dict)

    def count(self, pod: Mapping[str, int], number: int) -> None:
        """Count pods as used, or as many below zero no more."""
        for name, value in pod.items():
            self.amounts[name] = self.amounts.get(name, 0) + value * number
        self.amounts[PODS] = self.amounts.get(PODS, 0) + number
        self.known.clear()


@dataclass(slots=True, eq=False)
class Ledger:
    """A fingerprint of all that is used on nodes: the same use leaves the same mark, however it came about."""

    mark: int = 0
    _weights: dict[tuple[Values, str], int] = field(default_factory=dict)

    def count(self, leaf: Values, pod: Mapping[str, int], number: int) -> None:
        """Count pods on a leaf as used, or as many below zero no more."""
        total = self._weight(leaf, "")
        for name, value in pod.items():
            total += self._weight(leaf, name) * value
        self.mark += total * number

    def _weight(self, leaf: Values, resource: str) -> int:
        try:
            return self._weights[leaf, resource]
        except KeyError:
            digest = hashlib.blake2b(repr((leaf, resource)).encode(), digest_size=16).digest()
            weight = self._weights[leaf, resource] = int.from_bytes(digest)
            return weight


@dataclass(slots=True, eq=False)
class Domain:
    """A domain with the counts of the placement that is being worked out.

    `pods` and `slices` are first what fits, then what is assigned; `leader` is 1 where a leader fits, and the
    `*_beside` counts are what fits next to it. Leaves have `free` and `used`; hosts have their `node`.
    """

    values: Values
    parent: Domain | None = None
    children: list[Domain] = field(default_factory=list)
    node: Node | None = None
    free: Amounts = field(default_factory=dict)
    used: Used = field(default_factory=Used)
    pods: int = 0
    slices: int = 0
    pods_beside: int = 0
    slices_beside: int = 0
    leader: int = 0


@dataclass(slots=True)
class Exclusions:
    """Why leaf domains take no pod: by cause, of `total` leaves."""

    total: int = 0
    causes: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return ", ".join(f"{cause}: {number}" for cause, number in sorted(self.causes.items()))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why pods cannot be placed: `fits` of `wanted` units (pods or slices) at `level`, and what rules out nodes."""

    podset: str
    problem: str
    level: str = ""
    fits: int = 0
    wanted: int = 0
    excluded: Exclusions | None = None


class Topology:
    """The domains of the nodes that a flavor selects.

    A node counts if it carries all labels of the flavor and a value for each level. Where the lowest level is the
    host, taints, node selector and affinity are looked at for each node; otherwise nodes of a domain are one pot.
    """

    def __init__(
        self,
        name: str,
        levels: Sequence[str],
        nodes: Iterable[Node],
        labels: Mapping[str, str],
        tolerations: tuple[Toleration, ...],
    ) -> None:
        self.name = name
        self.levels = tuple(levels)
        self.tolerations = tolerations
        self.by_host = bool(levels) and levels[-1] == HOSTNAME
        self.leaves: dict[Values, Domain] = {}
        self.at_level: list[dict[Values, Domain]] = [{} for _ in levels]
        self.ledger = Ledger()
        self.answers: dict[Hashable, dict[str, Spread] | Failure] = {}
        self._kinds: dict[int, tuple[Placement, int]] = {}
        self._unfit_for: list[tuple[Placement, dict[Values, str]]] = []
        for node in nodes:
            if levels and node.carries(labels, levels):
                self._add(node)

    def _add(self, node: Node) -> None:
        values = tuple(node.labels[level] for level in self.levels)
        leaf = self.leaves.get(self.key(values))
        if leaf is None:
            leaf = self._domain(values)
            leaf.node = node if self.by_host else None
            self.leaves[self.key(values)] = leaf
        for name, value in node.allocatable.items():
            leaf.free[name] = leaf.free.get(name, 0) + value

    def _domain(self, values: Values) -> Domain:
        level = self.at_level[len(values) - 1]
        domain = level.get(values)
        if domain is None:
            domain = level[values] = Domain(values)
            if len(values) > 1:
                domain.parent = self._domain(values[:-1])
                domain.parent.children.append(domain)
        return domain

    def key(self, values: Values) -> Values:
        """How a leaf is named in assignments: a host by its name alone."""
        return values[-1:] if self.by_host else values

    def level(self, label: str) -> int | None:
        """The index of a level, None for a label that is none."""
        return self.levels.index(label) if label in self.levels else None

    def take(self, spread: Spread, pod: Mapping[str, int], sign: int = 1) -> None:
        """Count the pods of a placement as used, or with sign -1 no more."""
        for values, count in spread:
            leaf = self.leaves.get(values)
            if leaf is not None:
                leaf.used.count(pod, sign * count)
                self.ledger.count(values, pod, sign * count)

    def has_room(self, spread: Spread, pod: Mapping[str, int]) -> bool:
        """Whether a placement still fits beside what is used now."""
        for values, count in spread:
            leaf = self.leaves.get(values)
            if leaf is None or fitting(pod, minus(leaf.free, leaf.used.amounts))[0] < count:
                return False
        return True

    def fill(self, counting: Counting) -> None:
        """Work out how many pods and slices fit into each domain, from the leaves up."""
        unfit, asked = self._causes(counting.placement), self._asked(counting)
        for key, leaf in self.leaves.items():
            room = _NO_ROOM if key in unfit else _room(leaf, key, counting, asked)
            leaf.pods, leaf.leader, leaf.pods_beside, _ = room
            leaf.slices = leaf.slices_beside = 0
        size = counting.slice_size
        for level in range(len(self.levels) - 1, -1, -1):
            for domain in self.at_level[level].values():
                if domain.children:
                    _sum_up(domain, level, counting)
                if level == counting.slice_level:
                    domain.slices = quotient(domain.pods, size)
                    domain.slices_beside = quotient(domain.pods_beside, size)

    def excluded(self, counting: Counting) -> Exclusions:
        """Why leaves take no pod."""
        unfit, asked = self._causes(counting.placement), self._asked(counting)
        causes = (unfit.get(key) or _room(leaf, key, counting, asked).cause for key, leaf in self.leaves.items())
        return Exclusions(len(self.leaves), Counter(cause for cause in causes if cause))

    def _asked(self, counting: Counting) -> Asked:
        leader = None if counting.leader is None else tuple(counting.leader.items())
        return self, tuple(counting.pod.items()), leader, counting.wide

    def _causes(self, placement: Placement) -> Mapping[Values, str]:
        """Why hosts take no pod of a placement, whatever else runs there; worked out once for each placement."""
        return self._unfit_for[self.kind(placement)][1]

    def kind(self, placement: Placement) -> int:
        """A number that a placement shares with those that are equal to it."""
        known = self._kinds.get(id(placement))
        if known is None:
            number = next((n for n, (other, _) in enumerate(self._unfit_for) if other == placement), None)
            if number is None:
                causes = {key: cause for key, leaf in self.leaves.items() if (cause := self._unfit(leaf, placement))}
                number = len(self._unfit_for)
                self._unfit_for.append((placement, causes))
            known = self._kinds[id(placement)] = placement, number  # kept alive, so that its id stays its own
        return known[1]

    def _unfit(self, leaf: Domain, placement: Placement) -> str:
        """Why no pod may run on a host at all, "" where it may."""
        node = leaf.node
        if node is None:
            return ""
        taint = untolerated(node.taints, (*placement.tolerations, *self.tolerations))
        if taint is not None:
            return f"taint {taint}"
        if not placement.selects(node.labels):
            return "node selector"
        return "" if placement.attracts(node.labels, node.name) else "node affinity"


@dataclass(frozen=True, slots=True)
class Counting:
    """What is counted: pods of `pod` size, slices of `slice_size` in domains of `slice_level`, beside a `leader`.

    `layers` gives the size of inner slices by level. `assumed` is used by pod sets placed before; with `empty` all
    other workloads are thought away. `wide` counts do not run over; with `weighs_leader` only domains that take the
    leader say what it costs.
    """

    pod: Amounts
    leader: Amounts | None
    placement: Placement
    slice_size: int
    slice_level: int
    layers: Mapping[int, int]
    assumed: Mapping[Values, Amounts]
    empty: bool
    wide: bool = False
    weighs_leader: bool = False


def minus(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    """The difference by resource."""
    result = dict(left)
    for name, value in right.items():
        result[name] = result.get(name, 0) - value
    return result


def fitting(pod: Mapping[str, int], room: Mapping[str, int], *, wide: bool = False) -> tuple[int, str]:
    """How many pods fit, and the resource that limits them."""
    most, limiting = -1, ""
    found = False
    for name in sorted(pod):
        value = pod[name]
        if name not in room and value:
            return 0, name
        count = _MANY if value == 0 else quotient(room[name], value)
        # Kueue keeps the number in 32 bits and lets it run over (32Gi has room for no pod of 2 bytes), or cuts it.
        count = min(count, _MANY) if wide else (count + 2**31) % 2**32 - 2**31
        if not found or count < most:
            most, limiting, found = count, name, True
    return (most, limiting) if found else (0, "")


_NO_ROOM = Room(0, 0, 0, "")


def _room(leaf: Domain, key: Values, counting: Counting, asked: Asked) -> Room:
    """The room of a leaf; kept until something else is used of it."""
    if counting.empty or key in counting.assumed:
        room = dict(leaf.free) if counting.empty else minus(leaf.free, leaf.used.amounts)
        return _count(minus(room, counting.assumed.get(key, {})), counting)
    known = leaf.used.known.get(asked)
    if known is None:
        known = leaf.used.known[asked] = _count(minus(leaf.free, leaf.used.amounts), counting)
    return known


def _count(room: Amounts, counting: Counting) -> Room:
    pods, limiting = fitting(counting.pod, room, wide=counting.wide)
    cause = f"resource {limiting}" if pods == 0 and limiting else ""
    if counting.leader is not None and fitting(counting.leader, room, wide=counting.wide)[0] > 0:
        return Room(pods, 1, fitting(counting.pod, minus(room, counting.leader), wide=counting.wide)[0], cause)
    return Room(pods, 0, pods, cause)


def _sum_up(domain: Domain, level: int, counting: Counting) -> None:
    """A leader costs a domain as much as it costs the child that has least to lose by it."""
    inner = counting.layers.get(level + 1)
    if counting.leader is None and not inner:
        domain.pods = domain.pods_beside = sum([child.pods for child in domain.children])
        domain.slices = domain.slices_beside = sum([child.slices for child in domain.children])
        domain.leader = 0
        return
    pods = slices = domain.leader = 0
    lost_pods = lost_slices = _MANY
    for child in domain.children:
        whole, beside = child.pods, child.pods_beside
        if inner:
            whole, beside = quotient(whole, inner) * inner, quotient(beside, inner) * inner
        pods += whole
        slices += child.slices
        if child.leader or not counting.weighs_leader:
            lost_pods = min(lost_pods, whole - beside)
            lost_slices = min(lost_slices, child.slices - child.slices_beside)
        domain.leader = max(domain.leader, child.leader)
    nowhere = counting.weighs_leader and not domain.leader
    domain.pods, domain.pods_beside = pods, 0 if nowhere else pods - lost_pods
    domain.slices, domain.slices_beside = slices, 0 if nowhere else slices - lost_slices


def all_children(domains: Iterable[Domain]) -> Iterator[Domain]:
    """The domains right below, in order."""
    for domain in domains:
        yield from domain.children
