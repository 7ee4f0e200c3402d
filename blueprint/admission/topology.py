"""The tree of topology domains of one flavor, and how many pods each domain has room for.

Source: kueue v0.17.0 pkg/cache/scheduler/tas_flavor_snapshot.go (`addNode`, `initialize`, `fillInCounts`,
`fillInCountsHelper`), pkg/cache/scheduler/tas_flavor.go, pkg/resources/requests.go (`CountIn`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from blueprint.admission.amounts import PODS, Amounts, quotient
from blueprint.admission.match import HOSTNAME, Placement, Toleration, untolerated
from blueprint.admission.nodes import Node

Values = tuple[str, ...]
"""Label values of a domain from the top level down; of a host only its name, as Kueue writes it."""

Spread = list[tuple[Values, int]]
"""Pods by leaf domain, in the order of domains."""

_MANY = 2**31 - 1


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
    used: Amounts = field(default_factory=dict)
    pods: int = 0
    slices: int = 0
    pods_beside: int = 0
    slices_beside: int = 0
    leader: int = 0

    def clear(self) -> None:
        """Forget the counts of the placement before."""
        self.pods = self.slices = self.pods_beside = self.slices_beside = self.leader = 0


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
        self.empty_answers: dict[Hashable, tuple[object, dict[str, Spread] | Failure]] = {}
        self._unfit_for: dict[int, tuple[Placement, dict[Values, str]]] = {}
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
                for name, value in pod.items():
                    leaf.used[name] = leaf.used.get(name, 0) + sign * value * count
                leaf.used[PODS] = leaf.used.get(PODS, 0) + sign * count

    def has_room(self, spread: Spread, pod: Mapping[str, int]) -> bool:
        """Whether a placement still fits beside what is used now."""
        for values, count in spread:
            leaf = self.leaves.get(values)
            if leaf is None or fitting(pod, minus(leaf.free, leaf.used))[0] < count:
                return False
        return True

    def fill(self, counting: Counting) -> Exclusions:
        """Work out how many pods and slices fit into each domain."""
        for level in self.at_level:
            for domain in level.values():
                domain.clear()
        excluded = Exclusions(total=len(self.leaves))
        unfit = self._causes(counting.placement)
        for key, leaf in self.leaves.items():
            cause = unfit.get(key, "")
            if not cause:
                cause = _fill_leaf(leaf, key, counting)
            if cause:
                excluded.causes[cause] += 1
        for root in self.at_level[0].values():
            _fill_up(root, 0, counting)
        return excluded

    def _causes(self, placement: Placement) -> Mapping[Values, str]:
        """Why hosts take no pod of a placement, whatever else runs there; worked out once for each placement."""
        known = self._unfit_for.get(id(placement))
        if known is None:
            causes = {key: cause for key, leaf in self.leaves.items() if (cause := self._unfit(leaf, placement))}
            known = self._unfit_for[id(placement)] = placement, causes  # kept alive, so that its id stays its own
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


def _fill_leaf(leaf: Domain, key: Values, counting: Counting) -> str:
    room = dict(leaf.free) if counting.empty else minus(leaf.free, leaf.used)
    if key in counting.assumed:
        room = minus(room, counting.assumed[key])
    leaf.pods, limiting = fitting(counting.pod, room, wide=counting.wide)
    cause = f"resource {limiting}" if leaf.pods == 0 and limiting else ""
    if counting.leader is not None and fitting(counting.leader, room, wide=counting.wide)[0] > 0:
        leaf.leader = 1
        leaf.pods_beside = fitting(counting.pod, minus(room, counting.leader), wide=counting.wide)[0]
    else:
        leaf.pods_beside = leaf.pods
    return cause


def _fill_up(domain: Domain, level: int, counting: Counting) -> None:
    if domain.children:
        _sum_up(domain, level, counting)
    if level == counting.slice_level:
        domain.slices = quotient(domain.pods, counting.slice_size)
        domain.slices_beside = quotient(domain.pods_beside, counting.slice_size)


def _sum_up(domain: Domain, level: int, counting: Counting) -> None:
    """A leader costs a domain as much as it costs the child that has least to lose by it."""
    inner = counting.layers.get(level + 1)
    pods = slices = 0
    lost_pods = lost_slices = _MANY
    for child in domain.children:
        _fill_up(child, level + 1, counting)
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
