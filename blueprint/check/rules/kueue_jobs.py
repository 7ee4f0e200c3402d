"""Whether a job can ever be admitted: Kueue's own decision in an idle cluster, told at the job.

Sources: kueue v0.17.0 pkg/controller/jobframework, pkg/workload/resources.go, pkg/scheduler/flavorassigner;
the decision is that of `blueprint.admission`, which is compared with the real scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.admission.amounts import shown
from blueprint.admission.match import untolerated
from blueprint.admission.podsets import QUEUE_LABEL
from blueprint.admission.queues import GROUP
from blueprint.admission.reasons import Reason, Verdict, unique
from blueprint.catalog.tables import table
from blueprint.check.graph import Graph
from blueprint.check.kueue import CLUSTER_QUEUE, LOCAL_QUEUE, Judged, Kueue, kueue
from blueprint.check.rules.kueue_paths import closest
from blueprint.check.rules.say import note, one_of, say
from blueprint.check.shapes import mapping, placeholder, text
from blueprint.finding import Confidence, Finding, Ref, Severity

_CLASSES = (f"WorkloadPriorityClass.{GROUP}", "PriorityClass.scheduling.k8s.io")
_ASSIGNED = ("KQ201", "KQ202", "KQ203", "KQ204", "KQ206", "KQ301", "KQ302", "KQ303")
_SHIPPED_CLASSES = ("system-cluster-critical", "system-node-critical")


def _of(judged: Judged, *codes: str, verdict: Verdict | None = Verdict.NEVER) -> list[Reason]:
    return [each for each in judged.reasons if each.code in codes and verdict in (None, each.verdict)]


def unknown_queues(graph: Graph) -> Iterator[Finding]:
    """KQ101: a job names a LocalQueue that its namespace does not have: it stays suspended."""
    found = kueue(graph)
    for judged in found.judged:
        name = judged.job.labels.get(QUEUE_LABEL, "")
        namespace = judged.manifest.ref.namespace or "default"
        if not name or (namespace, name) in found.world.local_queues or not graph.closed(LOCAL_QUEUE):
            continue
        here = sorted(each for where, each in found.world.local_queues if where == namespace)
        elsewhere = sorted(where for where, each in found.world.local_queues if each == name)
        message = f"there is no LocalQueue {name} in namespace {namespace}: the job waits without end"
        if elsewhere:
            message += f"; one of that name is in {', '.join(elsewhere[:3])}"
        fix = closest(name, here) or (one_of(here) if here else "create the LocalQueue")
        known = here or namespace in found.world.namespaces or LOCAL_QUEUE in graph.said_closed
        severity = Severity.ERROR if known else Severity.WARNING
        yield say("KQ101", judged.manifest, message, f"metadata.labels[{QUEUE_LABEL}]", fix, severity)


def frameworks(graph: Graph) -> Iterator[Finding]:
    """KQ105: the configuration does not list the framework of a queued job."""
    found = kueue(graph)
    listed = any(
        each.body and mapping(each.body.get("integrations")).get("frameworks") for each in found.configurations
    )
    for judged in found.judged:
        for reason in _of(judged, "KQ105")[:1]:
            suspended = mapping(judged.manifest.body.get("spec")).get("suspend") is True
            message = f"{reason.message}; {'it stays suspended' if suspended else 'it runs without quota'}"
            if not listed:
                message += " (the configuration lists no frameworks, which means batch/job alone)"
            fix = "add the framework to integrations.frameworks"
            severity = Severity.ERROR if listed else Severity.NOTE
            yield say("KQ105", judged.manifest, message, f"metadata.labels[{QUEUE_LABEL}]", fix, severity)


def classes(graph: Graph) -> Iterator[Finding]:
    """KQ106: a priority class that is not there: no Workload is ever made of the job, and no event says so."""
    found = kueue(graph)
    for judged in found.judged:
        for reason in _of(judged, "KQ106")[:1]:
            ref = reason.object
            kind = f"{ref.kind}.{ref.group}" if ref else ""
            if ref is None or not graph.closed(kind) or ref.name in _SHIPPED_CLASSES:
                continue
            names = [*found.world.classes] if kind == _CLASSES[0] else [*found.world.pod_classes]
            yield say("KQ106", judged.manifest, reason.message, "metadata.labels", closest(ref.name, names))


def pod_sets(graph: Graph) -> Iterator[Finding]:
    """KQ110: more pod sets than a Workload may have."""
    for judged in kueue(graph).judged:
        for reason in _of(judged, "KQ110")[:1]:
            message = f"{reason.message}; the job stays suspended, and only the manager's log says why"
            yield say("KQ110", judged.manifest, message, "spec", "put pods of one shape into one pod set")


def resources(graph: Graph) -> Iterator[Finding]:
    """KQ208, KQ209: requests above limits, or outside of the namespace's LimitRange: the Workload is inadmissible."""
    found = kueue(graph)
    for judged in found.judged:
        namespace = judged.manifest.ref.namespace or "default"
        if namespace in found.world.limit_ranges:
            for reason in unique(_of(judged, "KQ208", "KQ209"))[:3]:
                fix = "change the request or the LimitRange"
                yield say(reason.code, judged.manifest, reason.message, "spec", fix)


def never_admitted(graph: Graph) -> Iterator[Finding]:
    """KQ201 to KQ206, KQ301 to KQ303: no flavor of the queue can ever take the job."""
    found = kueue(graph)
    for judged in found.judged:
        reasons = _of(judged, *_ASSIGNED)
        if judged.assignment is not None or not reasons or not _sure(found, judged, reasons[0]):
            continue
        first = reasons[0]
        asks = _asks(judged)
        lines = list(dict.fromkeys(reason.message for reason in reasons))
        message = f"{_way(found, judged)} can never admit it ({asks}): {'; '.join(lines[:4])}"
        if limit := first.limit:
            size = "no limit" if limit.value is None else shown(limit.resource, limit.value)
            message += f". What binds: {limit.field} {size} of {limit.object}"
        open_ = first.code == "KQ201" and "/" in first.resource and not found.world.settings.given
        if open_:
            message += ", unless Kueue's configuration, which is not here, excludes or transforms it"
        severity = Severity.WARNING if judged.assumed or open_ else Severity.ERROR
        sure = Confidence.LIKELY if judged.assumed or open_ else None
        yield say(first.code, judged.manifest, message, "spec", _remedy(first), severity, sure)


def _sure(found: Kueue, judged: Judged, first: Reason) -> bool:
    """Whether what is missing in the tree could not change the answer."""
    graph = found.graph
    if first.code == "KQ202":
        queue = found.world.queues.get(judged.queue)
        return queue is None or not queue.cohort or graph.closed(CLUSTER_QUEUE)
    return True


def _way(found: Kueue, judged: Judged) -> str:
    if judged.assumed:
        queue = next(iter(found.world.queues))
        return f"ClusterQueue {queue} (the only one here, and so taken for the queue of this job)"
    local = judged.way.local_queue
    cohorts = f" in cohort {' → '.join(judged.way.cohorts)}" if judged.way.cohorts else ""
    return f"LocalQueue {local.name if local else '?'} → ClusterQueue {judged.queue}{cohorts}"


def _asks(judged: Judged) -> str:
    """What the job asks for, by pod set: `Master 1 × (8 nvidia.com/gpu), Worker 3 × (…)`."""
    parts = []
    for demand in judged.demands:
        each = ", ".join(f"{shown(name, value)} {name}" for name, value in sorted(demand.charge.items()) if value)
        parts.append(f"{demand.podset.name} {demand.podset.count} × ({each})")
    return ", ".join(parts[:4])


def _remedy(reason: Reason) -> str:
    return {
        "KQ201": f"cover {reason.resource} in the ClusterQueue, or exclude it in the configuration",
        "KQ202": f"ask for less, or raise the limit by {shown(reason.resource or 'cpu', reason.missing)}",
        "KQ203": "let the pods or the flavor tolerate the taint",
        "KQ204": "ask for labels that the flavor has",
        "KQ206": f"cover {reason.resource}, or add it to resources.excludeResourcePrefixes",
        "KQ301": "name a level of the flavor's Topology",
        "KQ302": "ask for a higher level, for preferred, or for fewer pods",
        "KQ303": "let all flavors of the queue have a topology, or none",
    }.get(reason.code, "")


def flavors_alone(graph: Graph) -> Iterator[Finding]:
    """KQ203: the tree has flavors and no queues, and the pods tolerate the taint of none of them."""
    found = kueue(graph)
    flavors = found.world.flavors
    if found.world.queues or graph.generated(CLUSTER_QUEUE) or not flavors or found.open:
        return
    for judged in found.judged:
        for demand in judged.demands:
            mine = demand.placement.tolerations
            taints = [untolerated(flavor.taints, (*mine, *flavor.tolerations)) for flavor in flavors.values()]
            if all(taints):
                names = ", ".join(f"{name} ({taint})" for name, taint in zip(flavors, taints, strict=True))
                message = f"neither the pods nor the flavors tolerate the taints of {names}; no other flavor is here"
                fix = "let the pods or the flavor tolerate the taint"
                yield say("KQ203", judged.manifest, message, "spec", fix, Severity.WARNING, Confidence.LIKELY)
                break


def never_started(graph: Graph) -> Iterator[Finding]:
    """KQ303, KQ306, KQ307, KQ403: the job is admitted, and some of its pods never start."""
    for judged in kueue(graph).judged:
        told: set[str] = set()
        for reason in _after(judged):
            if reason.code not in told:
                told.add(reason.code)
                fix = _AFTER_FIX[reason.code]
                yield say(reason.code, judged.manifest, reason.message, "spec", fix)


_AFTER_FIX = {
    "KQ303": "put cpu, memory and devices of a queue with topologies into one resource group",
    "KQ306": "make the number of pods a multiple of the slice size",
    "KQ307": "leave the pod set without pods out",
    "KQ403": "leave the label out of the pods' nodeSelector; the flavor sets it",
}


def _after(judged: Judged) -> Iterator[Reason]:
    if judged.assignment is not None:
        yield from _of(judged, "KQ303", "KQ306", verdict=Verdict.NOTE)
        yield from _of(judged, "KQ403")
    yield from _of(judged, "KQ307")


def nothing_counted(graph: Graph) -> Iterator[Finding]:
    """KQ207: pods ask for nothing that the queue covers: they get no flavor, and run anywhere."""
    for judged in kueue(graph).judged:
        if judged.assignment is not None and _of(judged, "KQ207", verdict=Verdict.NOTE):
            message = f"the pods ask for nothing that ClusterQueue {judged.queue} covers: no quota counts, no flavor"
            yield note("KQ207", judged.manifest, f"{message} chooses their nodes", "spec", "write requests")


def head_of_line(graph: Graph) -> Iterator[Finding]:
    """KQ801: a job that can never be admitted at the head of a StrictFIFO queue blocks all behind it."""
    found = kueue(graph)
    behind: dict[str, list[Judged]] = {}
    for judged in found.judged:
        behind.setdefault(judged.queue, []).append(judged)
    for judged in found.judged:
        queue = found.world.queues.get(judged.queue)
        reasons = _of(judged, *_ASSIGNED, "KQ208", "KQ209")
        if queue is None or not queue.strict or judged.assignment is not None or not reasons:
            continue
        if _sure(found, judged, reasons[0]) and not judged.assumed:
            others = [str(each.manifest.ref) for each in behind[judged.queue] if each is not judged]
            rest = f", {', '.join(others[:4])} among them" if others else ""
            message = (
                f"ClusterQueue {queue.name} is StrictFIFO, and this job can never be admitted ({reasons[0].code}): "
                f"once it is at the head, everything behind it waits without end{rest}"
            )
            yield say("KQ801", judged.manifest, message, "spec", "repair the job, or use BestEffortFIFO")


def runtimes(graph: Graph) -> Iterator[Finding]:
    """KQ109: a TrainJob names a runtime that is not there, and the webhook of Trainer refuses it."""
    shipped = frozenset(table("kueue_rules")["shipped_runtimes"]["names"])
    for manifest in graph.kind("TrainJob.trainer.kubeflow.org"):
        reference = mapping(mapping(manifest.body.get("spec")).get("runtimeRef"))
        kind = text(reference.get("kind")) or "ClusterTrainingRuntime"
        name = text(reference.get("name"))
        where = manifest.ref.namespace if kind == "TrainingRuntime" else ""
        if not name or graph.get(Ref("trainer.kubeflow.org", kind, where, name)) is not None:
            continue
        full = f"{kind}.trainer.kubeflow.org"
        if graph.closed(full) and name not in shipped and not placeholder(name):
            names = [each.ref.name for each in graph.kind(full) if each.ref.namespace in ("", where)]
            message = f"there is no {kind} {name}: Trainer's webhook refuses the TrainJob"
            yield say("KQ109", manifest, message, "spec.runtimeRef.name", closest(name, names))


RULES = (
    unknown_queues,
    frameworks,
    classes,
    pod_sets,
    resources,
    never_admitted,
    flavors_alone,
    never_started,
    nothing_counted,
    head_of_line,
    runtimes,
)
TREE = ()
