"""What one pod of a pod set is charged to quota, and what it needs of a node.

Source: kueue v0.17.0 pkg/workload/resources.go (`AdjustResources`, `ValidateResources`, `ValidateLimitRange`),
pkg/workload/workload.go (`totalRequestsFromPodSets`), pkg/util/limitrange; k8s.io/component-helpers v0.35.3
resource/helpers.go (`PodRequests`); kubernetes v1.35.4 pkg/apis/core/v1/defaults.go (`SetDefaults_LimitRangeItem`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from blueprint.admission.amounts import Resources, add, amount, filled, raise_to, resources
from blueprint.admission.body import Body, at, mapping, rows, text
from blueprint.admission.reasons import Kind, Reason
from blueprint.admission.settings import Settings
from blueprint.finding import Ref
from blueprint.objects import Manifest

_POD_LEVEL = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The sum of one type of limits over all LimitRanges of a namespace."""

    default: Resources
    default_request: Resources
    highest: Resources
    lowest: Resources
    sources: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Container:
    """One container with everything filled in that is left out; `sidecar` runs beside the others."""

    where: str
    requests: Resources
    limits: Resources
    sidecar: bool = False


@dataclass(frozen=True, slots=True)
class Needs:
    """What one pod needs, in exact amounts, from its spec with LimitRange and RuntimeClass worked in.

    `hidden` are resources that stand in no container: each with the LimitRange that puts it there.
    """

    containers: tuple[Container, ...]
    init: tuple[Container, ...]
    total: Resources
    hidden: Mapping[str, Ref]


def bounds(ranges: Iterable[Manifest], kind: str) -> Bounds:
    """Sum up the LimitRanges of a namespace for `Container` or `Pod`, each as the API server stores it.

    On write a container limit that is left out becomes the maximum, and a request the limit, else the minimum.
    """
    default: Resources = {}
    request: Resources = {}
    highest: Resources = {}
    lowest: Resources = {}
    sources: list[Ref] = []
    for manifest in sorted(ranges, key=lambda each: each.ref):
        for item in rows(manifest.body, "spec", "limits"):
            if text(item, "type") != kind:
                continue
            most, least = resources(item, "max"), resources(item, "min")
            given, asked = resources(item, "default"), resources(item, "defaultRequest")
            if kind == "Container":
                given = filled(given, most)
                asked = filled(asked, given, least)
            default, request = filled(default, given), filled(request, asked)
            for name, value in most.items():
                highest[name] = min(value, highest.get(name, value))
            raise_to(lowest, least)
            sources.append(manifest.ref)
    return Bounds(default, request, highest, lowest, tuple(sources))


def needs(spec: Body, container: Bounds, overhead: Resources) -> Needs:
    """What a pod spec needs; `overhead` is that of its RuntimeClass, for a spec that has none of its own."""
    main = tuple(_containers(spec, "containers", container))
    init = tuple(_containers(spec, "initContainers", container))
    own = resources(spec, "overhead") or overhead
    written = {
        name
        for group in ("containers", "initContainers")
        for each in rows(spec, group)
        for part in ("requests", "limits")
        for name in mapping(each, "resources", part)
    } | set(own)
    total = pod_total(main, init, spec, own)
    source = container.sources[0] if container.sources else None
    hidden = {name: source for name in total if source and name not in written and total[name]}
    return Needs(main, init, total, hidden)


def _containers(spec: Body, group: str, container: Bounds) -> Iterator[Container]:
    for index, body in enumerate(rows(spec, group)):
        limits = filled(resources(body, "resources", "limits"), container.default)
        asked = filled(resources(body, "resources", "requests"), container.default_request, limits)
        sidecar = group == "initContainers" and at(body, "restartPolicy") == "Always"
        yield Container(f"{group}[{index}]", asked, limits, sidecar)


def pod_total(main: Sequence[Container], init: Sequence[Container], spec: Body, overhead: Resources) -> Resources:
    """The requests of a pod: the main containers together, or the largest step of initialisation.

    Sidecars count with the main containers, and with each init container that starts after them. Requests at the
    level of the pod replace those of the containers for CPU, memory and huge pages.
    """
    total: Resources = {}
    for each in main:
        add(total, each.requests)
    beside: Resources = {}
    peak: Resources = {}
    for each in init:
        step = dict(each.requests)
        if each.sidecar:
            add(total, each.requests)
            add(beside, each.requests)
            step = dict(beside)
        else:
            add(step, beside)
        raise_to(peak, step)
    raise_to(total, peak)
    for name, value in resources(spec, "resources", "requests").items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = value
    add(total, overhead)
    return total


def charged(total: Resources, settings: Settings) -> Resources:
    """What is charged of a pod's total: without excluded prefixes, after transformations."""
    kept = {n: v for n, v in total.items() if not any(n.startswith(prefix) for prefix in settings.excluded)}
    if not any(name in settings.transformations for name in kept):
        return kept
    result: Resources = {}
    for name, value in kept.items():
        rule = settings.transformations.get(name)
        if rule is None:
            result[name] = value
            continue
        scaled = value * math.ceil(kept[rule.multiply_by]) if rule.multiply_by in kept else value
        add(result, {output: factor * math.ceil(scaled) for output, factor in rule.outputs.items()})
        if rule.retain:
            result[name] = scaled
    return result


def invalid(podset: str, pod: Needs, container: Bounds, whole: Bounds) -> Iterator[Reason]:
    """Requests above limits, and what the LimitRanges of the namespace do not allow."""
    for each in (*pod.init, *pod.containers):
        for name in _greater(each.requests, each.limits):
            message = f"{each.where} requests more {name} than its limit"
            yield Reason("KQ208", Kind.INVALID, message, podset=podset, resource=name)
        largest = filled({}, each.requests)
        raise_to(largest, each.limits)
        smallest = {n: min(v, each.limits.get(n, v)) for n, v in filled(each.requests, each.limits).items()}
        yield from _outside(podset, each.where, largest, smallest, container)
    yield from _outside(podset, "the pod", pod.total, pod.total, whole)


def _outside(podset: str, where: str, largest: Resources, smallest: Resources, allowed: Bounds) -> Iterator[Reason]:
    source = allowed.sources[0] if allowed.sources else None
    for name in _greater(largest, allowed.highest):
        message = f"{where} has more {name} than {source} allows"
        yield Reason("KQ209", Kind.INVALID, message, podset=podset, resource=name, object=source)
    for name in _greater(allowed.lowest, smallest):
        message = f"{where} has less {name} than {source} asks for"
        yield Reason("KQ209", Kind.INVALID, message, podset=podset, resource=name, object=source)


def _greater(left: Mapping[str, Fraction], right: Mapping[str, Fraction]) -> list[str]:
    """Resources in both lists of which `left` has more, in Kueue's integers."""
    return [name for name, value in left.items() if name in right and amount(name, value) > amount(name, right[name])]
