"""Choosing a level with room, and handing pods or slices out over domains.

Source: kueue v0.17.0 pkg/cache/scheduler/tas_flavor_snapshot.go. Two ways of choosing (KEP 2724): the smallest domain
that holds the rest, after the largest ones (best fit); or, for unconstrained placement, the fullest domains first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from blueprint.admission.topology import Domain, Topology


@dataclass(frozen=True, slots=True)
class Seats:
    """How much to hand out: pods, leaders beside them, and how many pods a slice has."""

    pods: int
    leaders: int
    slice_size: int

    @property
    def slices(self) -> int:
        """Whole slices; what is left over is not placed."""
        return self.pods // self.slice_size


@dataclass(frozen=True, slots=True)
class Rules:
    """`required` keeps to one domain; `loose` may spread over all; `least_free` starts with the fullest domains.

    With `weighs_leader` the leader goes to the first domain that leaves room for all workers (Kueue since 0.19.1).
    """

    required: bool
    loose: bool
    least_free: bool
    weighs_leader: bool = False

    def sorted(self, domains: Iterable[Domain]) -> list[Domain]:
        """Domains in the order of choice: room for slices, then least room for pods, then name."""
        sign = 1 if self.least_free else -1
        return sorted(domains, key=lambda d: (sign * d.slices, d.pods, d.values))

    def sorted_for_leaders(self, domains: Iterable[Domain]) -> list[Domain]:
        """The same with room beside a leader, domains that take a leader first."""
        sign = 1 if self.least_free else -1
        return sorted(domains, key=lambda d: (-d.leader, sign * d.slices_beside, d.pods_beside, d.values))


def levels_with_room(topology: Topology, level: int, seats: Seats, rules: Rules) -> tuple[int, list[Domain]] | int:
    """The level and domains that hold all, or how many slices fit at best.

    Required placement looks for one domain at the level; preferred climbs until one holds all, and spreads at the top.
    """
    domains = topology.at_level[level]
    if not domains:
        return 0
    ordered = rules.sorted_for_leaders(domains.values())
    top = ordered[0]
    if not rules.least_free and top.slices_beside >= seats.slices and top.leader >= seats.leaders:
        top = _best_slices(ordered, seats.slices, seats.leaders, rules)
    if rules.least_free:
        for candidate in ordered:
            beside = rules.weighs_leader and seats.leaders > 0
            if beside and candidate.leader < seats.leaders:
                continue
            if (candidate.slices_beside if beside else candidate.slices) >= seats.slices:
                return level, [candidate]
        if rules.required:
            return ordered[-1].pods
    if top.slices_beside >= seats.slices and top.leader >= seats.leaders:
        return level, [top]
    if rules.required:
        return top.slices
    if level > 0 and not rules.loose:
        return levels_with_room(topology, level - 1, seats, rules)
    found = _spread_over(ordered, seats, rules)
    return found if isinstance(found, int) else (level, found)


def _spread_over(ordered: list[Domain], seats: Seats, rules: Rules) -> list[Domain] | int:
    """Several domains together: first those that take leaders, then the rest by room."""
    chosen: list[Domain] = []
    slices, leaders, index = seats.slices, seats.leaders, 0
    ordered = _leader_first(ordered, seats, rules, by_slice=True)
    while leaders > 0 and index < len(ordered) and ordered[index].leader > 0:
        domain = ordered[index]
        if not rules.least_free and domain.slices_beside >= slices:
            domain = _best_slices(ordered[index:], slices, leaders, rules)
        chosen.append(domain)
        leaders -= domain.leader
        slices -= domain.slices_beside
        index += 1
    if leaders > 0:
        return seats.leaders - leaders
    rest = rules.sorted(ordered[index:])
    for position, candidate in enumerate(rest):
        if slices <= 0:
            break
        domain = candidate
        if not rules.least_free and domain.slices >= slices:
            domain = _best_slices(rest[position:], slices, 0, rules)
        chosen.append(domain)
        slices -= domain.slices
    return chosen if slices <= 0 else seats.slices - slices


def _leader_first(domains: Sequence[Domain], seats: Seats, rules: Rules, *, by_slice: bool) -> list[Domain]:
    """The domains with the first one in front that takes the leader and leaves room for all workers."""
    ordered = list(domains)
    if not rules.weighs_leader or seats.leaders == 0 or len(ordered) < 2:
        return ordered
    spare = sum(d.slices if by_slice else d.pods for d in ordered) - (seats.slices if by_slice else seats.pods)
    for index, domain in enumerate(ordered):
        cost = domain.slices - domain.slices_beside if by_slice else domain.pods - domain.pods_beside
        if domain.leader >= seats.leaders and cost <= spare:
            return [domain, *ordered[:index], *ordered[index + 1 :]]
    return ordered


def _best_slices(domains: Sequence[Domain], needed: int, leaders: int, rules: Rules) -> Domain:
    """The first domain with the least room that holds all; the first of all where none does."""
    return _best(domains, needed, [d.slices_beside if leaders > 0 else d.slices for d in domains], leaders, rules)


def _best_pods(domains: Sequence[Domain], needed: int, leaders: int, rules: Rules) -> Domain:
    return _best(domains, needed, [d.pods_beside if leaders > 0 else d.pods for d in domains], leaders, rules)


def _best(domains: Sequence[Domain], needed: int, rooms: Sequence[int], leaders: int, rules: Rules) -> Domain:
    if rules.weighs_leader:
        fit = [n for n, room in enumerate(rooms) if room >= needed and domains[n].leader >= leaders]
        return domains[min(fit, key=rooms.__getitem__, default=0)]
    best = 0
    for index, room in enumerate(rooms):
        if needed <= room < rooms[best]:
            best = index
    return domains[best]


def distribute(domains: Sequence[Domain], seats: Seats, rules: Rules, *, by_slice: bool) -> list[Domain]:
    """Hand all out over sorted domains; each then holds in `pods` and `leader` what it was given.

    Empty where the room that was counted is not there after all.
    """
    result: list[Domain] = []
    rest = seats.slices if by_slice else seats.pods
    leaders = seats.leaders
    domains = _leader_first(domains, seats, rules, by_slice=by_slice)
    for index, first in enumerate(domains):
        others = domains[index:]
        if leaders > 0:
            domain, rest, leaders, done = _with_leader(first, others, rest, leaders, seats, rules, by_slice=by_slice)
            result.append(domain)
            if done:
                return result
            continue
        domain = first
        room = domain.slices if by_slice else domain.pods
        if not rules.least_free and room >= rest:
            domain = _best_slices(others, rest, 0, rules) if by_slice else _best_pods(others, rest, 0, rules)
            room = domain.slices if by_slice else domain.pods
        domain.leader = 0
        result.append(domain)
        given = min(room, rest)
        if by_slice:
            domain.pods = given * seats.slice_size
            domain.slices = given
        else:
            domain.pods = given
        if room >= rest:
            return result
        rest -= room
    return []


def _with_leader(
    domain: Domain,
    others: Sequence[Domain],
    rest: int,
    leaders: int,
    seats: Seats,
    rules: Rules,
    *,
    by_slice: bool,
) -> tuple[Domain, int, int, bool]:
    """One step while leaders are left: the domain, what remains of pods (or slices) and leaders, whether it is done."""
    beside = domain.slices_beside if by_slice else domain.pods_beside
    if not rules.least_free and beside >= rest and domain.leader >= leaders:
        domain = _best_slices(others, rest, leaders, rules) if by_slice else _best_pods(others, rest, leaders, rules)
        beside = domain.slices_beside if by_slice else domain.pods_beside
    if beside >= rest and domain.leader >= leaders:
        if by_slice:
            domain.slices = rest
        domain.leader = leaders
        domain.pods = rest * (seats.slice_size if by_slice else 1)
        return domain, rest, leaders, True
    if by_slice or rules.weighs_leader:
        given = min(beside, rest)
        domain.leader = min(domain.leader, leaders)
        domain.pods = given * (seats.slice_size if by_slice else 1)
        if by_slice:
            domain.slices_beside = given
        return domain, rest - given, leaders - domain.leader, False
    rest -= beside
    leaders -= domain.leader
    domain.pods_beside = min(beside, rest)
    domain.leader = min(domain.leader, leaders)
    return domain, rest, leaders, False
