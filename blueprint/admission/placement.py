"""Topology-aware placement: which domains take how many pods.

Source: kueue v0.17.0 pkg/cache/scheduler/tas_flavor_snapshot.go (`FindTopologyAssignmentsForFlavor`,
`findTopologyAssignment`, `findLevelWithFitDomains`, `updateCountsToMinimumGeneric`, `consumeWithLeadersGeneric`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from blueprint.admission.amounts import PODS, Amounts, quotient, summed
from blueprint.admission.match import Placement
from blueprint.admission.podsets import Wish
from blueprint.admission.settings import Settings
from blueprint.admission.spread import Rules, Seats, distribute, levels_with_room
from blueprint.admission.topology import Counting, Domain, Failure, Spread, Topology, Values, all_children

_MOST_ANSWERS = 4096


@dataclass(frozen=True, slots=True)
class Request:
    """Pods to place: `pod` is what one of them needs of a node; `implied` where the queue alone asks for topology."""

    podset: str
    count: int
    pod: Amounts
    placement: Placement
    wish: Wish
    implied: bool


@dataclass(frozen=True, slots=True)
class Gates:
    """Feature gates and behaviours of a release that change a placement (see `catalog/data/kueue.yaml`)."""

    mixed: bool = True
    layers: bool = False
    together: bool = False
    wide: bool = False
    leader: bool = False


def gates_of(settings: Settings) -> Gates:
    """Feature gates and behaviours that change placement."""
    return Gates(
        mixed=settings.gate("TASProfileMixed"),
        layers=settings.gate("TASMultiLayerTopology"),
        together=settings.behaves("tas-counts-pods-together"),
        wide=settings.behaves("tas-wide-counts"),
        leader=settings.behaves("tas-weighs-leader"),
    )


def place(
    topology: Topology,
    requests: Sequence[Request],
    gates: Gates = Gates(),
    *,
    empty: bool = False,
    before: Mapping[Values, Amounts] | None = None,
) -> dict[str, Spread] | Failure:
    """Place all pod sets on the nodes of one flavor, groups together; the first that does not fit ends it.

    With `empty` other workloads are thought away. `before` is used by pod sets of the same workload on other flavors.
    Answers are kept: many ask for the same while the same is used.
    """
    if before:
        return _place(topology, requests, gates, before, empty=empty)
    asked = [(r.podset, r.count, tuple(r.pod.items()), topology.kind(r.placement), r.wish, r.implied) for r in requests]
    key = (None if empty else topology.ledger.mark, gates, *asked)
    known = topology.answers.get(key)
    if known is None:
        if len(topology.answers) >= _MOST_ANSWERS:
            topology.answers.clear()
        known = topology.answers[key] = _place(topology, requests, gates, {}, empty=empty)
    return known


def _place(
    topology: Topology, requests: Sequence[Request], gates: Gates, before: Mapping[Values, Amounts], *, empty: bool
) -> dict[str, Spread] | Failure:
    groups: dict[str, list[Request]] = {}
    for index, request in enumerate(requests):
        key = str(index) if request.wish.group is None else request.wish.group
        groups.setdefault(key, []).append(request)
    placed: dict[str, Spread] = {}
    assumed: dict[Values, Amounts] = dict(before)
    for members in groups.values():
        leader, workers = _roles(members)
        found = _place_group(topology, workers, leader, gates, assumed, empty=empty)
        if isinstance(found, Failure):
            return found
        for request in members:
            placed[request.podset] = found.get(request.podset, [])
            take(assumed, request, placed[request.podset], gates)
    return placed


def take(assumed: dict[Values, Amounts], request: Request, spread: Spread, gates: Gates) -> None:
    """Add what the pods of one pod set use, where they are placed."""
    for values, count in spread:
        used = {name: value * count for name, value in request.pod.items()}
        if gates.together:
            used[PODS] = used.get(PODS, 0) + count
        assumed[values] = summed((assumed.get(values, {}), used))


def _roles(members: Sequence[Request]) -> tuple[Request | None, Request]:
    """Leader and workers of a group; they are told apart by count alone, and the first is taken for the workers."""
    if len(members) == 1:
        return None, members[0]
    first, second = members[0], members[1]
    return (first, second) if second.count > first.count else (second, first)


def _place_group(
    topology: Topology,
    workers: Request,
    leader: Request | None,
    gates: Gates,
    assumed: Mapping[Values, Amounts],
    *,
    empty: bool,
) -> dict[str, Spread] | Failure:
    wish = workers.wish
    level_label = _level(topology, workers)
    if level_label is None:
        return Failure(workers.podset, "no topology level is asked for")
    slice_size, slice_label = _slice(topology, wish)
    if slice_size is None or slice_size < 1:
        return Failure(workers.podset, f"the size of a slice is {slice_size or 0}")
    level, slice_level = topology.level(level_label), topology.level(slice_label)
    if level is None or slice_level is None:
        missing = level_label if level is None else slice_label
        return Failure(workers.podset, f"topology {topology.name} has no level {missing}")
    if level > slice_level:
        return Failure(workers.podset, f"slices of {slice_label} are larger than the level {level_label}")
    layers = _layers(topology, wish, slice_size, slice_level) if gates.layers else {}
    if isinstance(layers, str):
        return Failure(workers.podset, layers)
    counting = Counting(
        pod=summed((workers.pod, {PODS: 1})),
        leader=summed((leader.pod, {PODS: 1})) if leader else None,
        placement=workers.placement,
        slice_size=slice_size,
        slice_level=slice_level,
        layers=layers,
        assumed=assumed,
        empty=empty,
        wide=gates.wide,
        weighs_leader=gates.leader and leader is not None,
    )
    topology.fill(counting)
    loose = wish.unconstrained is True or workers.implied or _slices_only(wish)
    rules = Rules(
        required=wish.required is not None, loose=loose, least_free=loose and gates.mixed, weighs_leader=gates.leader
    )
    seats = Seats(workers.count, 1 if leader else 0, slice_size)
    found = levels_with_room(topology, level, seats, rules)
    if isinstance(found, tuple):
        chosen_level, domains = found
        leaves = _descend(topology, chosen_level, domains, seats, rules, counting)
        return _assignments(topology, workers, leader, leaves)
    excluded = topology.excluded(counting)
    if not topology.at_level[level]:
        return Failure(workers.podset, f"no node is in topology {topology.name}", level_label, excluded=excluded)
    return Failure(workers.podset, "", level_label, found, workers.count // slice_size, excluded)


def _level(topology: Topology, request: Request) -> str | None:
    """The level to start at: asked for, or the top for slices alone, or the lowest where anything goes."""
    wish = request.wish
    asked = wish.required if wish.required is not None else wish.preferred
    if asked is not None:
        return asked
    if _slices_only(wish):
        return topology.levels[0]
    return topology.levels[-1] if wish.unconstrained or request.implied else None


def has_level(topology: Topology, wish: Wish, gates: Gates) -> bool:
    """Whether the topology has all levels that an explicit wish names."""
    probe = Request("", 0, {}, Placement({}, None, ()), wish, implied=False)
    names = [_level(topology, probe), _slice(topology, wish)[1], *(n for n, _ in wish.layers if gates.layers)]
    return all(name is not None and topology.level(name) is not None for name in names)


def _slices_only(wish: Wish) -> bool:
    return wish.required is None and wish.preferred is None and (wish.slice_level is not None or bool(wish.layers))


def _slice(topology: Topology, wish: Wish) -> tuple[int | None, str]:
    """Size and level of a slice; a slice is one pod where none are asked for."""
    label = wish.slice_level if wish.slice_level is not None else wish.layers[0][0] if wish.layers else None
    if wish.layers:
        size: int | None = wish.layers[0][1]
    else:
        size = 1 if wish.slice_level is None else wish.slice_size
    return size, topology.levels[-1] if label is None else label


def _layers(topology: Topology, wish: Wish, size: int, level: int) -> dict[int, int] | str:
    """The sizes of inner slices by level, or what is wrong with them."""
    result: dict[int, int] = {}
    for label, inner in wish.layers[1:]:
        below = topology.level(label)
        if below is None or below <= level:
            return f"the slice layer {label} is not below {topology.levels[level]}"
        if inner < 1 or size % inner:
            return f"slices of {inner} do not divide slices of {size}"
        result.update(dict.fromkeys(range(level + 1, below + 1), inner))
        size, level = inner, below
    return result


def _descend(
    topology: Topology, level: int, domains: list[Domain], seats: Seats, rules: Rules, counting: Counting
) -> list[Domain]:
    """From the chosen domains down to the leaves, with as few domains on each level as possible."""
    current = distribute(domains, seats, rules, by_slice=True)
    last = len(topology.levels) - 1
    while level < min(last, counting.slice_level):
        below = rules.sorted(all_children(current))
        current = distribute(below, seats, rules, by_slice=True)
        level += 1
    while level < last:
        size = counting.layers.get(level + 1, 1) if level >= counting.slice_level else counting.slice_size
        lower: list[Domain] = []
        for domain in current:
            children = rules.sorted(domain.children)
            if size > 1:
                for child in children:
                    child.slices, child.slices_beside = quotient(child.pods, size), quotient(child.pods_beside, size)
            part = Seats(domain.pods, domain.leader, size)
            lower += distribute(children, part, rules, by_slice=size > 1)
        current = lower
        level += 1
    return current


def _assignments(
    topology: Topology, workers: Request, leader: Request | None, leaves: list[Domain]
) -> dict[str, Spread]:
    if leader is None:
        return {workers.podset: _spread(topology, ((leaf, leaf.pods) for leaf in leaves))}
    return {
        leader.podset: _spread(topology, ((leaf, leaf.leader) for leaf in leaves if leaf.leader > 0)),
        workers.podset: _spread(topology, ((leaf, leaf.pods) for leaf in leaves if leaf.pods > 0)),
    }


def _spread(topology: Topology, pods: Iterable[tuple[Domain, int]]) -> Spread:
    ordered = sorted(pods, key=lambda each: each[0].values)
    return [(topology.key(domain.values), count) for domain, count in ordered if count]
