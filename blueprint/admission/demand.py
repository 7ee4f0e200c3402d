"""A job as demands: its pod sets with what each pod is charged and needs of a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blueprint.admission.amounts import Amounts, Resources, add, amounts
from blueprint.admission.body import text
from blueprint.admission.dra import Claims, devices
from blueprint.admission.match import Placement
from blueprint.admission.podsets import PodSet
from blueprint.admission.reasons import Kind, Reason, Verdict
from blueprint.admission.requests import bounds, charged, invalid, needs
from blueprint.admission.world import World
from blueprint.finding import Ref


@dataclass(frozen=True, slots=True)
class Demand:
    """A pod set: `charge` is the quota of one pod, `pod` what it needs of a node, both in Kueue's integers.

    `hidden` are resources that stand in no container, with the LimitRange that adds them.
    """

    podset: PodSet
    charge: Amounts
    pod: Amounts
    placement: Placement
    hidden: Mapping[str, Ref] = field(default_factory=dict)

    def total(self, count: int) -> Amounts:
        """The quota of so many pods."""
        return {name: value * count for name, value in self.charge.items()}


@dataclass(frozen=True, slots=True)
class Workload:
    """What stands in a queue. `problems` are found before the queue looks at quota.

    Workloads of one queue with the same `alike` and priority differ in key and age only; "" is like no other.
    """

    key: str
    namespace: str
    demands: tuple[Demand, ...]
    priority: int = 0
    problems: tuple[Reason, ...] = ()
    alike: str = ""


def demands(world: World, namespace: str, podsets: tuple[PodSet, ...]) -> tuple[tuple[Demand, ...], tuple[Reason, ...]]:
    """The demands of pod sets in a namespace, and what is wrong with their resources."""
    ranges = world.limit_ranges.get(namespace, ())
    container, whole = bounds(ranges, "Container"), bounds(ranges, "Pod")
    claims = Claims(
        lambda where, name: world.find("ResourceClaimTemplate", where, name), world.extended, world.settings
    )
    found: list[Demand] = []
    problems: list[Reason] = []
    for podset in podsets:
        runtime = text(podset.spec, "runtimeClassName")
        overhead = world.overheads.get(runtime, {})
        if runtime and runtime not in world.overheads:
            message = f"RuntimeClass {runtime} is not among the objects: its overhead is not counted"
            problems.append(Reason("KQ210", Kind.UNKNOWN, message, Verdict.NOTE, podset=podset.name))
        pod = needs(podset.spec, container, overhead)
        claimed = devices(podset.name, namespace, podset.spec, pod, claims)
        quota: Resources = {
            name: value for name, value in charged(pod.total, world.settings).items() if name not in claimed.replaced
        }
        add(quota, claimed.charges)
        problems += claimed.reasons
        problems += invalid(podset.name, pod, container, whole)
        found.append(Demand(podset, amounts(quota), amounts(pod.total), Placement.of(podset.spec), pod.hidden))
    return tuple(found), tuple(problems)
