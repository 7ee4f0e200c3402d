"""Labels and annotations by which a job comes to Kueue: where they stand, and values that its webhooks refuse.

Sources: kueue v0.17.0 pkg/controller/jobframework/{validation,defaults}.go, pkg/controller/jobs/job/job_webhook.go,
pkg/controller/jobs/pod/pod_webhook.go; what happens without a webhook's refusal was seen on the running manager.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from blueprint.admission.podsets import GROUP_LABEL, PREFIX, PRIORITY_LABEL, QUEUE_LABEL, Job, job
from blueprint.admission.queues import GROUP
from blueprint.admission.reasons import Verdict
from blueprint.catalog.tables import table
from blueprint.check.graph import Graph, annotations_of, kind_of, labels_of
from blueprint.check.kueue import BATCH, JOBS, Kueue, kueue
from blueprint.check.pods import containers, pod_templates
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import Body, mapping, placeholder
from blueprint.finding import Finding
from blueprint.objects import Manifest

_MAX_EXEC = f"{PREFIX}/max-exec-time-seconds"
_TOTAL = f"{PREFIX}/pod-group-total-count"
_LEAST = f"{PREFIX}/job-min-parallelism"
_EQUAL = f"{PREFIX}/job-completions-equal-parallelism"
_NO_PREBUILT = frozenset({"Deployment.apps", "StatefulSet.apps", "LeaderWorkerSet.leaderworkerset.x-k8s.io"})
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_INT32 = 2**31 - 1


def _jobs(graph: Graph, kinds: frozenset[str] = JOBS) -> Iterator[Manifest]:
    """Jobs that no other object of the tree or cluster owns."""
    for manifest in graph.kind(*sorted(kinds)):
        if not mapping(manifest.body.get("metadata")).get("ownerReferences"):
            yield manifest


def _head(manifest: Manifest) -> Body:
    """The object whose metadata counts: of a CronJob its template of Jobs."""
    if manifest.kind == "CronJob":
        return mapping(mapping(manifest.body.get("spec")).get("jobTemplate"))
    return manifest.body


def _own_labels(manifest: Manifest) -> dict[str, str]:
    """The labels that Kueue sees; a Job without any of its own gets those of its template from the API server."""
    own = dict(labels_of(_head(manifest)))
    if not own and manifest.kind in ("Job", "CronJob"):
        spec = mapping(_head(manifest).get("spec"))
        return dict(labels_of(mapping(spec.get("template"))))
    return own


def misplaced(graph: Graph) -> Iterator[Finding]:
    """KQ104: the queue label stands on a template of pods or jobs, and not on the job."""
    found = kueue(graph)
    for manifest in _jobs(graph, BATCH):
        if QUEUE_LABEL in _own_labels(manifest):
            continue
        place = _elsewhere(manifest)
        if not place and QUEUE_LABEL in annotations_of(_head(manifest)):
            message = f"{QUEUE_LABEL} is an annotation here, which Kueue does not read: the job runs without quota"
            yield say("KQ104", manifest, message, "metadata.annotations", "make it a label")
        if not place:
            continue
        if found.world.settings.given and "pod" not in found.world.settings.frameworks:
            effect = "the job runs without quota"
        else:
            effect = "the job runs without quota, or each of its pods is queued by itself, never as a gang"
        head = "spec.jobTemplate.metadata.labels" if manifest.kind == "CronJob" else "metadata.labels"
        message = f"{QUEUE_LABEL} stands at {place}, not on the {manifest.kind}: {effect}"
        yield say("KQ104", manifest, message, place, f"move it to {head}")


def _elsewhere(manifest: Manifest) -> str:
    """Where else the label stands, "" for nowhere."""
    if manifest.kind == "CronJob" and QUEUE_LABEL in labels_of(manifest.body):
        return "metadata.labels"
    for pod in pod_templates(manifest):
        if QUEUE_LABEL in labels_of({"metadata": pod.metadata}):
            return f"{pod.path}.metadata.labels"
    rows = mapping(manifest.body.get("spec")).get("replicatedJobs")
    for index, row in enumerate(rows if isinstance(rows, list) else ()):
        template = mapping(mapping(row).get("template"))
        if QUEUE_LABEL in labels_of(template):
            return f"spec.replicatedJobs[{index}].template.metadata.labels"
    return ""


def _unqueued(graph: Graph, found: Kueue) -> Iterator[tuple[Manifest, str]]:
    """Jobs without a queue, with their namespace: no label anywhere, and no LocalQueue `default`."""
    for manifest in _jobs(graph, BATCH):
        namespace = manifest.ref.namespace or "default"
        if (namespace, "default") in found.world.local_queues or placeholder(namespace):
            continue
        if QUEUE_LABEL not in _own_labels(manifest) and not _elsewhere(manifest):
            yield manifest, namespace


def never_resumed(graph: Graph) -> Iterator[Finding]:
    """KQ101: with manageJobsWithoutQueueName a job without queue is suspended, and nothing resumes it."""
    found = kueue(graph)
    settings = found.world.settings
    if not settings.without_queue_name:
        return
    for manifest, namespace in _unqueued(graph, found):
        framework = table("kueue")["frameworks"].get(kind_of(manifest), "batch/job")
        labels = found.world.namespaces.get(namespace, {"kubernetes.io/metadata.name": namespace})
        managed = settings.namespaces is None or settings.namespaces.matches(labels)
        if framework in settings.frameworks and managed and namespace not in _SYSTEM:
            message = (
                "manageJobsWithoutQueueName suspends every job; this one names no queue and its namespace has no "
                "LocalQueue default: it stays suspended"
            )
            yield say(
                "KQ101", manifest, message, "metadata.labels", f"set {QUEUE_LABEL}, or create a LocalQueue default"
            )


_SYSTEM = frozenset({"kube-system", "kueue-system"})


def suspended(graph: Graph) -> Iterator[Finding]:
    """KQ112: a job is written as suspended, and names no queue that would ever start it."""
    found = kueue(graph)
    if not found.here or found.world.settings.without_queue_name:
        return
    for manifest, _ in _unqueued(graph, found):
        spec = mapping(manifest.body.get("spec"))
        if spec.get("suspend") is True or mapping(spec.get("runPolicy")).get("suspend") is True:
            if manifest.kind == "CronJob":
                continue  # its own suspend stops the schedule
            message = "the job is suspended and names no queue: Kueue does not look at it, nothing ever starts it"
            yield warn("KQ112", manifest, message, "spec.suspend", f"set {QUEUE_LABEL}, or leave suspend out")


def bypass(graph: Graph) -> Iterator[Finding]:
    """KQ111: a job takes devices that the queues of its namespace count, and names none of them."""
    found = kueue(graph)
    if found.world.settings.without_queue_name:
        return
    counted: dict[str, set[str]] = defaultdict(set)
    for (namespace, _), local in found.world.local_queues.items():
        queue = found.world.queues.get(local.cluster_queue)
        for group in queue.groups if queue else ():
            counted[namespace].update(name for name in group.covered if "/" in name)
    for manifest, namespace in _unqueued(graph, found):
        taken = {name for pod in pod_templates(manifest) for name in _devices(pod.spec)}
        if both := sorted(taken & counted.get(namespace, set())):
            message = f"the job takes {', '.join(both)} and names no queue: it runs beside the quota of its namespace"
            yield warn("KQ111", manifest, message, "metadata.labels", f"set {QUEUE_LABEL}")


def _devices(spec: Body) -> Iterator[str]:
    for _, container in containers(spec):
        asked = mapping(container.get("resources"))
        yield from (
            str(name) for part in ("limits", "requests") for name in mapping(asked.get(part)) if "/" in str(name)
        )


def refused_labels(graph: Graph) -> Iterator[Finding]:
    """KQ113: a label of Kueue with a value that its webhook refuses, on queued jobs and others alike."""
    found = kueue(graph)
    for manifest in _jobs(graph):
        labels, kind = labels_of(_head(manifest)), kind_of(manifest)
        base = "spec.jobTemplate.metadata.labels" if manifest.kind == "CronJob" else "metadata.labels"
        if QUEUE_LABEL in labels and not placeholder(labels[QUEUE_LABEL]) and kind != f"Workload.{GROUP}":
            name, where = labels[QUEUE_LABEL], (manifest.ref.namespace or "default", "default")
            if not _subdomain(name) and not (not name and where in found.world.local_queues):
                message = f"{name!r} is no name of a LocalQueue: the webhook refuses the {manifest.kind}"
                yield say("KQ113", manifest, message, f"{base}[{QUEUE_LABEL}]", "name a LocalQueue")
        if _MAX_EXEC in labels and kind not in _NO_PREBUILT and not placeholder(labels[_MAX_EXEC]):
            value = labels[_MAX_EXEC]
            if not re.fullmatch(r"[+]?[0-9]+", value) or int(value) <= 0:
                message = f"{_MAX_EXEC} is {value!r}: the webhook wants a whole number above 0"
                yield say("KQ113", manifest, message, f"{base}[{_MAX_EXEC}]", "a number of seconds")


def _subdomain(name: str) -> bool:
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def partial_admission(graph: Graph) -> Iterator[Finding]:
    """KQ213: annotations of partial admission that the webhook refuses, or that only a batch Job heeds."""
    for manifest in _jobs(graph, BATCH):
        annotations, base = annotations_of(_head(manifest)), "metadata.annotations"
        if _LEAST not in annotations and _EQUAL not in annotations:
            continue
        if _LEAST in annotations and manifest.kind not in ("Job", "CronJob"):
            message = f"only batch Jobs heed {_LEAST}; a {manifest.kind} is admitted whole or not at all"
            yield warn("KQ213", manifest, message, f"{base}[{_LEAST}]", "remove it")
        if manifest.kind not in ("Job", "CronJob"):
            continue
        asked = job(manifest, lambda *_: None)
        if not isinstance(asked, Job) or not asked.podsets:
            continue
        value, count = annotations.get(_LEAST, ""), asked.podsets[0].count
        if _LEAST in annotations and not placeholder(value):
            least = int(value) if re.fullmatch(r"[+-]?[0-9]+", value) else None
            if least is None or not 0 < least < count:
                message = f"{_LEAST} {value!r} is not between 0 and the {count} pods of the job: the webhook refuses it"
                yield say("KQ213", manifest, message, f"{base}[{_LEAST}]", f"1 to {count - 1}" if count > 1 else "")
        if annotations.get(_EQUAL, "").lower() in ("true", "1", "t"):
            spec = mapping(_head(manifest).get("spec"))
            indexed = spec.get("completionMode") == "Indexed"
            if not indexed or spec.get("parallelism", 1) != spec.get("completions", 1):
                message = f"{_EQUAL} wants completionMode Indexed and as many completions as pods"
                yield say("KQ213", manifest, message, f"{base}[{_EQUAL}]", "set both, or remove the annotation")


def pod_groups(graph: Graph) -> Iterator[Finding]:
    """KQ114: a group of plain pods without its size, or with fewer pods than it says."""
    groups: dict[tuple[str, str], list[Manifest]] = defaultdict(list)
    for manifest in _jobs(graph, frozenset({"Pod"})):
        labels, annotations = labels_of(manifest.body), annotations_of(manifest.body)
        name, total = labels.get(GROUP_LABEL, ""), annotations.get(_TOTAL, "")
        if placeholder(name) or placeholder(total):
            continue
        if bool(name) != bool(total):
            missing = f"annotation {_TOTAL}" if name else f"label {GROUP_LABEL}"
            message = f"the pod belongs to a group and lacks the {missing}: the webhook refuses it"
            yield say("KQ114", manifest, message, "metadata", f"set the {missing}")
        elif name:
            groups[manifest.ref.namespace, name].append(manifest)
    for (_, name), pods in groups.items():
        total = annotations_of(pods[0].body)[_TOTAL]
        if not total.isdigit() or not int(total):
            message = f"{_TOTAL} {total!r} is no number of pods: the webhook refuses it"
            yield say("KQ114", pods[0], message, f"metadata.annotations[{_TOTAL}]", str(len(pods)))
        elif int(total) > len(pods) and len(pods) > 1:
            message = f"group {name} is to have {total} pods and has {len(pods)} here: Kueue waits for the others"
            yield say("KQ114", pods[0], message, f"metadata.annotations[{_TOTAL}]", f"{len(pods)}, or add the others")


def outside_managed(graph: Graph) -> Iterator[Finding]:
    """KQ115: a queued job in a namespace that managedJobsNamespaceSelector leaves out is suspended and forgotten."""
    for judged in kueue(graph).judged:
        for reason in judged.reasons:
            if reason.code in ("KQ108", "KQ115") and reason.verdict is Verdict.NEVER:
                fix = "label the namespace as managed, or queue the job elsewhere"
                yield say("KQ115", judged.manifest, reason.message, "metadata.namespace", fix)
                break


def priority_values(graph: Graph) -> Iterator[Finding]:
    """KQ116: a value beyond 32 bits, which the API server stores and Kueue cannot read: it stops for all jobs."""
    for manifest in graph.kind(f"WorkloadPriorityClass.{GROUP}"):
        value = manifest.body.get("value")
        if isinstance(value, int) and not isinstance(value, bool) and not -_INT32 - 1 <= value <= _INT32:
            message = f"value {value} does not fit 32 bits: Kueue cannot read the list of classes, and queues nothing"
            yield say("KQ116", manifest, message, "value", f"at most {_INT32}")


def priority_on_pods(graph: Graph) -> Iterator[Finding]:
    """KQ104: the priority label on the pods of a queued job, where Kueue does not look."""
    for judged in kueue(graph).judged:
        manifest = judged.manifest
        if kind_of(manifest) not in BATCH or PRIORITY_LABEL in judged.job.labels:
            continue
        for pod in pod_templates(manifest):
            if PRIORITY_LABEL in labels_of({"metadata": pod.metadata}):
                message = f"{PRIORITY_LABEL} stands on the pods, where Kueue does not look: the job has no priority"
                yield note("KQ104", manifest, message, f"{pod.path}.metadata.labels", "move it to the job's labels")
                break


RULES = (
    misplaced,
    never_resumed,
    suspended,
    bypass,
    refused_labels,
    partial_admission,
    pod_groups,
    outside_managed,
    priority_values,
    priority_on_pods,
)
TREE = ()
