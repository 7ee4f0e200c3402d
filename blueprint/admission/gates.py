"""The way of a job to its queue: what can stop it before quota is looked at.

Source: kueue v0.17.0 pkg/controller/jobframework (queue name, priority class, managed namespaces),
pkg/cache/queue/manager.go (LocalQueue), pkg/scheduler/scheduler.go `nominate` (inactive queue, namespace selector).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blueprint.admission.body import at, labels, mapping, rows, whole
from blueprint.admission.podsets import PRIORITY_LABEL, QUEUE_LABEL, Job
from blueprint.admission.queues import GROUP
from blueprint.admission.reasons import Kind, Reason, Verdict
from blueprint.admission.state import TOO_DEEP, Queue, State
from blueprint.admission.world import World, default_priority
from blueprint.catalog.tables import table
from blueprint.finding import Ref
from blueprint.objects import Manifest

_MOST_PODSETS = 8


@dataclass(frozen=True, slots=True)
class Way:
    """The way as far as it goes; `queue` is None where it does not reach an active ClusterQueue."""

    local_queue: Ref | None = None
    cluster_queue: Ref | None = None
    cohorts: tuple[str, ...] = ()
    queue: Queue | None = None
    priority: int = 0
    reasons: tuple[Reason, ...] = ()


def queue_way(world: World, state: State, manifest: Manifest, asked: Job) -> Way:
    """Follow a job to its ClusterQueue."""
    namespace = manifest.ref.namespace or "default"
    priority, reasons = _priority(world, asked)
    reasons += list(_integration(world, manifest, asked))
    name = asked.labels.get(QUEUE_LABEL, "")
    if not name and (namespace, "default") in world.local_queues:
        name = "default"
    if not name:
        reasons.append(_unqueued(world, manifest, asked))
        return Way(priority=priority, reasons=tuple(reasons))
    local = Ref(GROUP, "LocalQueue", namespace, name)
    found = world.local_queues.get((namespace, name))
    if found is None:
        known = Verdict.NEVER if world.local_queues else Verdict.UNKNOWN
        message = f"there is no LocalQueue {name} in namespace {namespace}"
        reasons.append(Reason("KQ101", Kind.NOT_QUEUED, message, known, object=local))
        return Way(local, priority=priority, reasons=tuple(reasons))
    if found.stopped:
        message = f"LocalQueue {namespace}/{name} is stopped (stopPolicy {found.stopped})"
        reasons.append(Reason("KQ107", Kind.NOT_QUEUED, message, object=local))
    cluster = Ref(GROUP, "ClusterQueue", "", found.cluster_queue)
    spec = world.queues.get(found.cluster_queue)
    if spec is None:
        known = Verdict.NEVER if world.queues else Verdict.UNKNOWN
        message = f"LocalQueue {namespace}/{name} names ClusterQueue {found.cluster_queue}, which does not exist"
        reasons.append(Reason("KQ101", Kind.NOT_QUEUED, message, known, object=local))
        return Way(local, cluster, priority=priority, reasons=tuple(reasons))
    for kind, why in state.inactive.get(spec.name, ()):
        code = {"Stopped": "KQ107", "CohortCycle": "KQ102"}.get(kind, "KQ803" if "Check" in kind else "KQ102")
        message = f"ClusterQueue {spec.name} is inactive ({kind}): {why}"
        if kind == TOO_DEEP:
            reasons.append(
                Reason(code, Kind.UNKNOWN, f"ClusterQueue {spec.name}: {why}", Verdict.UNKNOWN, object=cluster)
            )
        else:
            reasons.append(Reason(code, Kind.INACTIVE, message, object=cluster))
    reasons += list(_namespace(world, namespace, found.cluster_queue))
    reasons += list(_checks(world, found.cluster_queue))
    queue = state.queues.get(spec.name)
    cohorts = tuple(node.name for node in queue.node.ancestors()) if queue else (spec.cohort,) if spec.cohort else ()
    return Way(local, cluster, cohorts, queue, priority, tuple(reasons))


def _priority(world: World, asked: Job) -> tuple[int, list[Reason]]:
    """The priority in the queue: of the WorkloadPriorityClass, else of the pods' PriorityClass."""
    if asked.priority is not None:
        return asked.priority, []
    name = asked.labels.get(PRIORITY_LABEL)
    if name:
        if name in world.classes:
            return world.classes[name], []
        known = Verdict.NEVER if world.classes else Verdict.UNKNOWN
        message = f"there is no WorkloadPriorityClass {name}: no Workload is made of this job"
        return 0, [
            Reason("KQ106", Kind.NOT_QUEUED, message, known, object=Ref(GROUP, "WorkloadPriorityClass", "", name))
        ]
    if asked.class_name in _SYSTEM:
        return _SYSTEM[asked.class_name], []
    if asked.class_name:
        found = world.pod_classes.get(asked.class_name)
        if found is not None:
            return whole(found.body, "value") or 0, []
        known = Verdict.NEVER if world.pod_classes else Verdict.UNKNOWN
        message = f"there is no PriorityClass {asked.class_name}: no Workload is made of this job"
        ref = Ref("scheduling.k8s.io", "PriorityClass", "", asked.class_name)
        return 0, [Reason("KQ106", Kind.NOT_QUEUED, message, known, object=ref)]
    return default_priority(world), []


#: Classes that every API server has (k8s.io/kubernetes v1.35.4 pkg/apis/scheduling/v1/helpers.go).
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def _integration(world: World, manifest: Manifest, asked: Job) -> Iterator[Reason]:
    ref = manifest.ref
    kind = f"{ref.kind}.{ref.group}" if ref.group else ref.kind
    name = table("kueue")["frameworks"].get(kind, "batch/job" if ref.kind == "CronJob" else "")
    on_pods = QUEUE_LABEL in labels(manifest.body, "spec", "template", "metadata", "labels")
    if kind == "Rollout.argoproj.io" or (kind == "Deployment.apps" and on_pods):
        name = "pod"  # their pods are queued one by one
    settings = world.settings
    implied = {"deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"}
    enabled = name in settings.frameworks or (name == "pod" and bool(implied & settings.frameworks))
    if settings.given and name and not enabled:
        message = f"framework {name} is not in integrations.frameworks: Kueue does not look at this {ref.kind}"
        yield Reason("KQ105", Kind.NOT_QUEUED, message, object=settings.object)
    mine = world.namespaces.get(ref.namespace or "default")
    managed = settings.namespaces is None or mine is None or settings.namespaces.matches(mine)
    if not managed and ref.kind not in ("LeaderWorkerSet", "Workload"):
        message = f"managedJobsNamespaceSelector leaves namespace {ref.namespace} out: the job stays suspended for ever"
        yield Reason("KQ108", Kind.NOT_QUEUED, message, object=settings.object)
    if len(asked.podsets) > _MOST_PODSETS:
        message = f"{len(asked.podsets)} pod sets are more than the {_MOST_PODSETS} of a Workload: none is made"
        yield Reason("KQ110", Kind.NOT_QUEUED, message)
    if at(manifest.body, "spec", "active") is False and ref.kind == "Workload":
        yield Reason("KQ107", Kind.NOT_QUEUED, "the Workload is not active (spec.active: false)")


def _unqueued(world: World, manifest: Manifest, asked: Job) -> Reason:
    """No queue is named: say where the label stands instead, if it does."""
    ref = manifest.ref
    for podset in _templates(manifest):
        if QUEUE_LABEL in labels(podset, "metadata", "labels"):
            message = (
                f"{QUEUE_LABEL} stands on the pod template, not on the {ref.kind}: the job is not queued as a whole"
            )
            return Reason("KQ104", Kind.NOT_QUEUED, message, object=ref)
    if world.settings.without_queue_name:
        message = f"no queue is named and the namespace has no LocalQueue default: the {ref.kind} stays suspended"
    else:
        message = f"no queue is named ({QUEUE_LABEL}): the {ref.kind} runs without Kueue"
    return Reason("KQ101", Kind.NOT_QUEUED, message, object=ref)


def _templates(manifest: Manifest) -> Iterator[dict[str, object]]:
    """Every pod template in a job, by its shape: a mapping `template` with a pod spec."""
    stack: list[object] = [manifest.body.get("spec")]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += value.values()
            if mapping(value, "template", "spec") or mapping(value, "template", "metadata"):
                yield mapping(value, "template")
        elif isinstance(value, list):
            stack += value


def _namespace(world: World, namespace: str, name: str) -> Iterator[Reason]:
    spec = world.queues[name]
    if spec.selector is None:
        message = f"ClusterQueue {name} has no namespaceSelector, which matches no namespace (write {{}} for all)"
        yield Reason("KQ103", Kind.NAMESPACE, message, object=spec.ref)
        return
    known = world.namespaces.get(namespace, {"kubernetes.io/metadata.name": namespace})
    if spec.selector.matches(known):
        return
    keys = {requirement.key for requirement in spec.selector.requirements}
    open_ = namespace not in world.namespaces and keys != {"kubernetes.io/metadata.name"}
    if open_:
        message = f"Namespace {namespace} is not among the objects: whether ClusterQueue {name} serves it is unknown"
        yield Reason("KQ103", Kind.UNKNOWN, message, Verdict.UNKNOWN, object=Ref("", "Namespace", "", namespace))
        return
    message = f"ClusterQueue {name} does not serve namespace {namespace}: it wants {spec.selector}"
    yield Reason("KQ103", Kind.NAMESPACE, message, object=spec.ref)


def _checks(world: World, name: str) -> Iterator[Reason]:
    for check in world.queues[name].checks:
        found = world.checks.get(check)
        conditions = {c.get("type"): c.get("status") for c in rows(found.body, "status", "conditions")} if found else {}
        if found is not None and "Active" not in conditions:
            message = f"AdmissionCheck {check} has a say once quota is reserved"
            yield Reason("KQ804", Kind.AFTER, message, Verdict.NOTE, object=found.ref)
