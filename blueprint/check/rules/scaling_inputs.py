"""What autoscalers need beside their target: requests of pods, times, credentials; and budgets that stop every drain.

Sources: kubernetes docs tasks/run-application/horizontal-pod-autoscale (algorithm details); keda v2.21.0
pkg/scalers/cron_scaler.go; k8s.io/kubernetes@v1.35.4 pkg/controller/disruption/disruption.go.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from zoneinfo import available_timezones

from blueprint.check.graph import Graph, kind_of
from blueprint.check.monitored import pods_selected
from blueprint.check.pods import containers
from blueprint.check.rules.say import one_of, say, warn
from blueprint.check.scalers import Scaler, scalers
from blueprint.check.shapes import known, mapping, maps, number, placeholder, text
from blueprint.cron import schedule_problem
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

_AUTH = ("TriggerAuthentication.keda.sh", "ClusterTriggerAuthentication.keda.sh")
_WORKLOADS = ("Deployment.apps", "StatefulSet.apps", "Rollout.argoproj.io")


def requests_missing(graph: Graph) -> Iterator[Finding]:
    """SCL210: a share of requests is asked for, and a container requests nothing: there is no value."""
    for scaler in scalers(graph):
        for path, resource in _shares(scaler):
            limited = bool(graph.within(scaler.manifest.ref.namespace, "LimitRange"))
            for pod in scaler.pods[:1] if not limited else ():
                bare = [
                    text(container.get("name"))
                    for at, container in containers(pod.spec)
                    if at.startswith("containers") and not _requests(mapping(container.get("resources")), resource)
                ]
                if bare and scaler.target:
                    message = (
                        f"the utilization of {resource} is a share of the requests, and {bare[0]} of "
                        f"{scaler.target.name} requests none: the autoscaler has no value and never scales"
                    )
                    yield say("SCL210", scaler.manifest, message, path, f"a request of {resource} in every container")


def _requests(resources: dict[str, object], resource: str) -> bool:
    return any(resource in mapping(resources.get(field)) for field in ("requests", "limits"))


def _shares(scaler: Scaler) -> Iterator[tuple[str, str]]:
    """Path and resource of each metric that is a share of requests over all containers."""
    for index, metric in enumerate(maps(scaler.spec.get("metrics")) if not scaler.by_keda else ()):
        resource = mapping(metric.get("resource"))
        if metric.get("type") == "Resource" and mapping(resource.get("target")).get("type") == "Utilization":
            yield f"spec.metrics[{index}]", text(resource.get("name"))
    for index, trigger in enumerate(scaler.triggers):
        share = trigger.get("type") in ("cpu", "memory") and text(trigger.get("metricType")) == "Utilization"
        if share and not mapping(trigger.get("metadata")).get("containerName"):
            yield f"spec.triggers[{index}]", text(trigger.get("type"))


def shares_of_others(graph: Graph) -> Iterator[Finding]:
    """SCL107: a trigger that is no share of requests asks for Utilization, which KEDA knows of CPU and memory only."""
    for scaler in scalers(graph):
        for index, trigger in enumerate(scaler.triggers):
            kind = known(trigger.get("type"))
            if kind and kind not in ("cpu", "memory") and trigger.get("metricType") == "Utilization":
                message = f"KEDA refuses metricType Utilization of {kind}: the trigger gives no value"
                path, fix = f"spec.triggers[{index}].metricType", "AverageValue, or Value"
                yield say("SCL107", scaler.manifest, message, path, fix, Severity.ERROR, Confidence.LIKELY)


def times(graph: Graph) -> Iterator[Finding]:
    """SCL211: a cron trigger in a time zone that there is not, at times that are none, or that ends when it starts."""
    for scaler in scalers(graph):
        for index, trigger in enumerate(scaler.triggers):
            data = mapping(trigger.get("metadata"))
            path = f"spec.triggers[{index}].metadata"
            zone = known(data.get("timezone"))
            if trigger.get("type") != "cron":
                continue
            if zone and zone not in ("Local", "UTC") and _zones() and zone not in _zones():
                message = f"there is no time zone {zone}: the trigger ends in an error at each evaluation"
                yield say("SCL211", scaler.manifest, message, f"{path}.timezone", "a name of the tz database")
            for field in ("start", "end"):
                written = known(data.get(field))
                if problem := schedule_problem(written) if written else "":
                    message = f"{field} {written!r} is no schedule ({problem}): KEDA refuses the trigger"
                    yield say("SCL211", scaler.manifest, message, f"{path}.{field}", 'five fields, as "0 8 * * 1-5"')
            if known(data.get("start")) and data.get("start") == data.get("end"):
                message = f"the trigger starts and ends at {data['start']}: KEDA refuses it"
                yield say("SCL211", scaler.manifest, message, f"{path}.end", "another end")


@cache
def _zones() -> frozenset[str]:
    """The time zones of this system, which has none where it lacks the tz database."""
    return frozenset(available_timezones())


def unserved_resources(graph: Graph) -> Iterator[Finding]:
    """SCL213: a Resource metric of something that metrics-server does not measure."""
    for scaler in scalers(graph):
        for index, metric in enumerate(maps(scaler.spec.get("metrics")) if not scaler.by_keda else ()):
            for field in ("resource", "containerResource"):
                name = known(mapping(metric.get(field)).get("name"))
                if name and name not in _MEASURED:
                    message = f"the use of {name} is not measured: metrics of resources are of cpu and memory only"
                    path = f"spec.metrics[{index}].{field}.name"
                    fix = "a Pods or External metric of an adapter, such as DCGM's by KEDA"
                    yield say("SCL213", scaler.manifest, message, path, fix)


_MEASURED = ("cpu", "memory")


def credentials(graph: Graph) -> Iterator[Finding]:
    """SCL212: a trigger names credentials that are not there, among their peers."""
    for scaler in scalers(graph):
        for index, trigger in enumerate(scaler.triggers):
            ref = mapping(trigger.get("authenticationRef"))
            name, shared = known(ref.get("name")), ref.get("kind") == "ClusterTriggerAuthentication"
            kind = _AUTH[shared]
            peers = graph.kind(kind) if shared else graph.within(scaler.manifest.ref.namespace, kind)
            if name and peers and graph.closed(kind) and name not in [peer.ref.name for peer in peers]:
                message = f"there is no {kind.partition('.')[0]} {name}: the trigger cannot be read"
                path = f"spec.triggers[{index}].authenticationRef.name"
                yield warn("SCL212", scaler.manifest, message, path, one_of(p.ref.name for p in peers))


def drains(graph: Graph) -> Iterator[Finding]:
    """UPG110: a disruption budget that lets no pod go, so that no node can be drained."""
    for budget in graph.kind("PodDisruptionBudget.policy"):
        spec = mapping(budget.body.get("spec"))
        if _amount(spec.get("maxUnavailable"), 100) == 0:
            message = "maxUnavailable is 0: no pod may be evicted, so a drain of its node never ends"
            yield warn("UPG110", budget, message, "spec.maxUnavailable", "maxUnavailable: 1")
            continue
        for workload, _ in pods_selected(graph, budget.ref.namespace, spec.get("selector")):
            most = _replicas(graph, workload) if kind_of(workload) in _WORKLOADS else None
            if most is None:
                continue
            least = _amount(spec.get("minAvailable"), most)
            if least is not None and most and least >= most:
                message = (
                    f"minAvailable is {spec['minAvailable']} and {workload.ref} has {most} "
                    f"{'replica' if most == 1 else 'replicas'}: none may be evicted, so a drain of its node never ends"
                )
                yield warn("UPG110", budget, message, "spec.minAvailable", "maxUnavailable: 1, or more replicas")
                break


def _by_workload(graph: Graph) -> Mapping[int, list[Scaler]]:
    found: dict[int, list[Scaler]] = defaultdict(list)
    for scaler in scalers(graph):
        found[id(scaler.workload)].append(scaler)
    return found


def _replicas(graph: Graph, workload: Manifest) -> int | None:
    """The most replicas that a workload is sure to have; None where they are not known."""
    written = mapping(workload.body.get("spec")).get("replicas", 1)
    least = [scaler.least for scaler in graph.derived(_by_workload).get(id(workload), ())]
    if placeholder(written) or None in least:
        return None
    return max([number(written, 1) or 0, *(each for each in least if each is not None)])


def _amount(value: object, of: int) -> int | None:
    """A number of pods, or a share of them, which counts up; None where there is none."""
    share = text(value).removesuffix("%")
    if text(value).endswith("%") and share.isdigit():
        return math.ceil(of * int(share) / 100)
    return number(value)


RULES = (requests_missing, shares_of_others, times, credentials, drains, unserved_resources)
TREE = ()
