"""GPUs of a served model while it is updated: the peak of a canary or a rolling update, and whether it fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from blueprint.render.served import Served, served
from blueprint.render.site import Site
from blueprint.spec.cluster import NodePool


def canary_peak(replicas: int, weights: Sequence[int], *, dynamic: bool) -> int:
    """The largest number of pods at once in a canary whose share of traffic is set by weights (whole percents).

    The stable version keeps all its replicas, and the canary grows to as many before it takes over. With
    `dynamicStableScale` the stable version shrinks as it loses traffic: it holds what the step before left it until
    the canary of the next step is ready.
    Source: argo-rollouts v1.10.2 utils/replicaset/canary.go CalculateReplicaCountsForTrafficRoutedCanary.
    """
    if not dynamic:
        return 2 * replicas
    before = [0, *weights]
    after = [*weights, 100]
    return max(_part(replicas, new) + _part(replicas, 100 - old) for old, new in zip(before, after, strict=True))


def _part(replicas: int, weight: int) -> int:
    return -(-replicas * weight // 100)


@dataclass(frozen=True, slots=True)
class Room:
    """Replicas that may run at once, less what the team's other services on these machines have at their most.

    `sure` is what the team's own quota holds, `most` what can ever be had with borrowing, `alone` the same if
    there were no other services. `why` says what bounds it. `crowded`: the services together want more than that even
    without an update.
    """

    sure: int
    most: int
    why: str
    alone: int = 0
    crowded: bool = False


#: GPUs by team, pool and resource.
Demand = Mapping[tuple[str, str, str], int]


def demand(site: Site) -> Demand:
    """What the services of a cluster have when each has its most replicas."""
    found: Counter[tuple[str, str, str]] = Counter()
    for service in served(site):
        found[_share(service)] += service.most * service.gpus
    return found


def _share(service: Served) -> tuple[str, str, str]:
    return service.team.metadata.name, service.pool.name, service.resource


def room(service: Served, all_services: Demand) -> Room:
    """How many replicas of the service the quota and the pool hold beside the others."""
    shape = service.spec.gpus
    quota = next(
        (
            quota
            for quota in service.team.spec.quotas
            if (quota.cluster, quota.pool, quota.profile) == (service.site.name, shape.pool, shape.profile)
        ),
        None,
    )
    machines = _machines(service.pool, shape.profile)
    if quota is None:
        return Room(0, 0, f"team {service.team.metadata.name} has no quota there")
    bound = machines if quota.borrow is None else min(machines, quota.gpus + quota.borrow)
    others = all_services[_share(service)] - service.most * service.gpus
    whose = f"{others} of them are for other services" if others else "all of them for this service"
    return Room(
        max(0, (min(quota.gpus, machines) - others) // service.gpus),
        max(0, (bound - others) // service.gpus),
        f"team {service.team.metadata.name} can have {bound} {service.resource} of {shape.pool}, {whose}",
        bound // service.gpus,
        all_services[_share(service)] > bound,
    )


def _machines(pool: NodePool, profile: str | None) -> int:
    """GPUs of the pool, or its slices of a profile."""
    if pool.gpus is None:
        return 0
    layout = pool.gpus.mig.layout if pool.gpus.mig else {}
    each = layout.get(profile, 0) if profile else sum(layout.values()) or 1
    return pool.nodes * pool.gpus.count * each


@dataclass(frozen=True, slots=True)
class Update:
    """How an update goes: `surge` replicas more and `gap` less than wanted; `dynamic`: the stable version shrinks.

    `peak` is the largest number of replicas at once.
    """

    surge: int
    gap: int
    dynamic: bool
    peak: int


def update(service: Served, space: Room) -> Update:
    """The way that loses no capacity, where the team's own quota holds it, else the one that takes the least.

    An autoscaled canary shrinks its stable version in any case: the scaler sees the pods of both versions as one
    number, and would keep the sum (argo-rollouts issue 4847).
    """
    if service.routed and service.rollout:
        weights = percents(service.rollout.canary)
        full, least = (canary_peak(service.most, weights, dynamic=dynamic) for dynamic in (False, True))
        dynamic = service.scaled or full > space.sure
        return Update(0, 0, dynamic, least if dynamic else full)
    if service.most + 1 <= space.sure:
        return Update(1, 0, False, service.most + 1)
    return Update(0, 1, False, service.most)


def percents(shares: Sequence[Decimal]) -> list[int]:
    """Shares between 0 and 1 as whole percents."""
    return [int(share * 100) for share in shares]


def judge(service: Served, space: Room, plan: Update) -> None:
    """SRV101: a peak that can never be had, so that the update stops half-way.

    Where the services together want more than there is, one of them is told: the one that wants the most.
    """
    if plan.peak <= space.most or (space.crowded and plan.peak <= space.alone and _greatest(service) != service.name):
        return
    needed, there = plan.peak * service.gpus, space.most * service.gpus
    where = "spec.replicas"
    if service.site.name in service.spec.replicas_on:
        where = f"spec.replicasOn.{service.site.name}"
    what = f"an update of {service.name} has {plan.peak} replicas at its peak"
    service.problem(
        "SRV101",
        f"{what}, {needed} {service.resource}: {space.why}, so that {there} are left",
        where,
        f"at most {space.most} replicas can run at once: ask for fewer, or raise the quota",
    )


def _greatest(service: Served) -> str:
    """Of the services that share these machines, the one that wants the most: the others lack only what it takes."""
    peers = [each for each in served(service.site) if _share(each) == _share(service)]
    return max(peers, key=lambda each: (each.most * each.gpus, each.name)).name
