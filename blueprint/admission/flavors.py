"""Flavor assignment: which flavor serves each resource of each pod set, in one attempt.

Source: kueue v0.17.0 pkg/scheduler/flavorassigner/flavorassigner.go (`assignFlavors`, `findFlavorForPodSets`,
`checkFlavorForPodSets`, `fitsResourceQuota`) and tas_flavorassigner.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blueprint.admission.amounts import PODS, Amounts, FlavorResource, Usage, shown, summed
from blueprint.admission.demand import Demand
from blueprint.admission.limits import binding
from blueprint.admission.match import untolerated
from blueprint.admission.modes import BEST, WORST, Mode, Oracle, Possibility, Suits, goes_on, prefers
from blueprint.admission.placement import gates_of, has_level
from blueprint.admission.queues import Group
from blueprint.admission.quota import borrowing_height
from blueprint.admission.reasons import Kind, Reason
from blueprint.admission.state import Queue
from blueprint.admission.topology import Spread
from blueprint.admission.world import World

Tried = tuple[Mapping[str, int], ...]
"""By pod set and resource the index of the flavor at which the last attempt stopped; -1 after the last flavor."""


@dataclass(slots=True)
class Choice:
    """The flavor of one resource; pod sets of one group share it."""

    flavor: str
    mode: Mode
    borrow: int
    tried: int = -1


@dataclass(slots=True)
class PodSetChoice:
    """One pod set of an assignment. `broken` is a fault that ends the attempt without a mode of its own."""

    demand: Demand
    count: int
    requests: Amounts
    choices: dict[str, Choice]
    reasons: list[Reason]
    spread: Spread | None = None
    delayed: bool = False

    @property
    def mode(self) -> Mode:
        """The worst of its resources."""
        if not self.reasons:
            return Mode.FIT
        return min((choice.mode for choice in self.choices.values()), default=Mode.NO_FIT)


@dataclass(slots=True)
class Assignment:
    """The outcome of one attempt; `failed` where a pod set got no flavors and the rest was not looked at."""

    podsets: list[PodSetChoice] = field(default_factory=list)
    usage: Usage = field(default_factory=dict)
    borrowing: int = 0
    failed: bool = False
    mode: Mode = Mode.NO_FIT

    @property
    def tried(self) -> Tried:
        """Where each search stopped, for the next attempt."""
        return tuple({name: choice.tried for name, choice in each.choices.items()} for each in self.podsets)

    @property
    def reasons(self) -> list[Reason]:
        """All reasons of all pod sets."""
        return [reason for each in self.podsets for reason in each.reasons]


def pending(tried: Tried) -> bool:
    """Whether flavors are left for another attempt at once."""
    return any(index != -1 for each in tried for index in each.values())


@dataclass(frozen=True, slots=True)
class Assigner:
    """Assigns flavors in one queue. `fair` is whether fair sharing is on."""

    world: World
    queue: Queue
    oracle: Oracle
    fair: bool = False

    def assign(self, demands: Sequence[Demand], tried: Tried, counts: Sequence[int] | None = None) -> Assignment:
        """One attempt, from the flavors after those in `tried`; `counts` are pods by pod set, all unless given."""
        result = Assignment()
        covers_pods = self.queue.spec.group(PODS) is not None
        sets: list[PodSetChoice] = []
        groups: dict[str, list[int]] = {}
        for index, demand in enumerate(demands):
            count = demand.podset.count if counts is None else counts[index]
            requests = demand.total(count) | ({PODS: count} if covers_pods else {})
            sets.append(PodSetChoice(demand, count, requests, {}, []))
            group = demand.podset.wish.group
            groups.setdefault(str(index) if group is None else group, []).append(index)
        for members in groups.values():
            self._group([sets[index] for index in members], members[0], tried, result)
            if result.failed:
                break
        result.mode = min((each.mode for each in result.podsets), default=Mode.NO_FIT)
        return result

    def _group(self, members: list[PodSetChoice], first: int, tried: Tried, result: Assignment) -> None:
        """Choose flavors for pod sets together, and count what they use."""
        requests = summed(each.requests for each in members)
        choices: dict[str, Choice] = {}
        reasons: list[Reason] = []
        lost = False
        for resource in sorted(requests):
            if resource in choices or (not requests[resource] and self.queue.spec.group(resource) is None):
                continue
            start = tried[first].get(resource, -1) + 1 if first < len(tried) else 0
            found = self._search(members, requests, resource, start, result.usage, reasons)
            lost = lost or not found  # the search goes on for the sake of the reasons alone
            choices |= found
        if lost:
            choices = {}
        for each in members:
            each.choices = {name: choice for name, choice in choices.items() if name in each.requests}
            if not each.requests and each.demand.podset.wish.group and self._leader_shares:
                each.choices = {name: c for name, c in choices.items() if c.flavor in self.queue.topologies}
            each.reasons = list(reasons)
            result.podsets.append(each)
            for name, choice in each.choices.items():
                key = FlavorResource(choice.flavor, name)
                result.usage[key] = result.usage.get(key, 0) + each.requests.get(name, 0)
                result.borrowing = max(result.borrowing, choice.borrow)
            if each.requests and not each.choices:
                result.failed = True

    def _search(
        self,
        members: list[PodSetChoice],
        requests: Amounts,
        resource: str,
        start: int,
        usage: Usage,
        reasons: list[Reason],
    ) -> dict[str, Choice]:
        """Walk the flavors of the group that covers a resource; {} where none will do. Adds to `reasons`."""
        group = self.queue.spec.group(resource)
        podset = members[0].demand.podset.name
        if group is None:
            reasons.append(self._uncovered(members, resource))
            return {}
        wanted = {name: requests[name] for name in sorted(requests) if name in group.covered}
        best: dict[str, Choice] = {}
        best_suits, stopped, found = WORST, -1, list[Reason]()
        for index in range(start, len(group.flavors)):
            stopped = index
            name = group.flavors[index]
            problem = self._mismatch(name, members, group)
            if problem is not None:
                found.append(problem)
                continue
            suits, choices = BEST, dict[str, Choice]()
            for each, value in wanted.items():
                key = FlavorResource(name, each)
                one = self._quota(podset, key, usage.get(key, 0), value, found)
                if self._prefers(suits, one):
                    suits = one
                if suits.possibility is Possibility.NO_FIT:
                    break
                choices[each] = Choice(name, one.possibility.mode, one.borrow)
            if not goes_on(suits, self.queue.spec.fungibility):
                best, best_suits = choices, suits
                break
            if self._prefers(suits, best_suits):
                best, best_suits = choices, suits
        for choice in best.values():
            choice.tried = -1 if stopped == len(group.flavors) - 1 else stopped
        if best_suits.possibility is not Possibility.FIT:
            reasons += found
        return best

    @property
    def _leader_shares(self) -> bool:
        return self.world.settings.behaves("tas-leader-without-requests")

    def _prefers(self, left: Suits, right: Suits) -> bool:
        last = self.world.settings.behaves("no-candidates-last")
        return prefers(left, right, self.queue.spec.fungibility, no_candidates_last=last)

    def _uncovered(self, members: list[PodSetChoice], resource: str) -> Reason:
        asking = next(each for each in members if each.requests.get(resource))
        podset, queue = asking.demand.podset.name, self.queue.spec
        source = asking.demand.hidden.get(resource)
        covered = ", ".join(name for group in queue.groups for name in group.covered)
        message = f"no flavor of ClusterQueue {queue.name} has {resource}; it covers {covered}"
        if source is not None:
            message = f"{message}. No container asks for it: it comes from {source}"
        code = "KQ206" if source is not None else "KQ201"
        return Reason(code, Kind.UNCOVERED, message, podset=podset, resource=resource, object=queue.ref)

    def _mismatch(self, name: str, members: list[PodSetChoice], group: Group) -> Reason | None:
        """Why a flavor cannot take these pods whatever the quota, None where it can."""
        flavor = self.world.flavors.get(name)
        if flavor is None:
            if not self.world.flavors:
                return None
            return self._no(name, members[0], "KQ102", f"there is no ResourceFlavor {name}")
        if self.world.settings.behaves("flavor-own-keys"):
            known = set(flavor.labels)
        else:
            known = {key for each in group.flavors if (f := self.world.flavors.get(each)) for key in f.labels}
        for each in members:
            if (problem := self._topology_mismatch(each, name, group)) is not None:
                return problem
            placement = each.demand.placement
            taint = untolerated(flavor.taints, (*placement.tolerations, *flavor.tolerations))
            if taint is not None:
                return self._no(name, each, "KQ203", f"flavor {name} has the taint {taint}, which nothing tolerates")
            if not placement.accepts_flavor(flavor.labels, known):
                return self._no(name, each, "KQ204", f"the pods ask for other nodes than those of flavor {name}")
        return None

    def _topology_mismatch(self, each: PodSetChoice, name: str, group: Group) -> Reason | None:
        flavor, wish = self.world.flavors[name], each.demand.podset.wish
        if not wish.explicit:
            if flavor.topology and not self.queue.topology_only:
                message = f"flavor {name} takes only pods with a topology wish, since the queue has other flavors, too"
                return self._no(name, each, "KQ303", message)
            return None
        if not flavor.topology:
            if not any(resource in group.covered for resource in each.demand.pod):
                return None
            return self._no(name, each, "KQ303", f"flavor {name} has no topology, which the pods ask for")
        topology = self.queue.topologies.get(name)
        if topology is None or not has_level(topology, wish, gates_of(self.world.settings)):
            asked = wish.required or wish.preferred or wish.slice_level or "none"
            message = f"topology {flavor.topology} of flavor {name} does not have the level that is asked for ({asked})"
            return self._no(name, each, "KQ301", message)
        return None

    def _no(self, flavor: str, each: PodSetChoice, code: str, message: str) -> Reason:
        kind = Kind.TOPOLOGY if code.startswith("KQ3") else Kind.FLAVOR
        return Reason(code, kind, message, podset=each.demand.podset.name, flavor=flavor)

    def _quota(self, podset: str, key: FlavorResource, before: int, value: int, found: list[Reason]) -> Suits:
        """How an amount fits, counting what pod sets before it use. Adds to `found` where it does not fit now."""
        node, total = self.queue.node, before + value
        most, free = node.capacity(key), node.available(key)
        flavor, resource = key
        if total > most:
            limit = binding(self.queue, key)
            sums = f"{shown(resource, before)} + {shown(resource, value)}" if before else shown(resource, value)
            message = f"{sums} {resource} is more than the {shown(resource, most)} that flavor {flavor} can ever give"
            found.append(
                Reason(
                    "KQ202",
                    Kind.MAX_QUOTA,
                    message,
                    podset=podset,
                    flavor=flavor,
                    resource=resource,
                    object=limit.object,
                    limit=limit,
                    missing=total - most,
                )
            )
            return Suits(Possibility.NO_FIT, 0)
        borrow, reclaimable = borrowing_height(node, key, total)
        if total <= free:
            return Suits(Possibility.FIT, borrow)
        missing = shown(resource, total - free)
        message = f"{missing} {resource} more is needed on flavor {flavor} than is free now"
        found.append(
            Reason(
                "KQ211", Kind.WAITING, message, podset=podset, flavor=flavor, resource=resource, missing=total - free
            )
        )
        policies = self.queue.spec.policies
        borrows = policies.borrow or (self.fair and policies.within_cohort != "Never")
        if total <= node.quota(key).nominal or reclaimable or borrows:
            return self.oracle(key, total)
        return Suits(Possibility.NO_FIT, borrow)
