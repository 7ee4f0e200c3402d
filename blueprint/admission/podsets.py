"""Jobs of every kind as the pod sets that Kueue queues.

Source: kueue v0.17.0 pkg/controller/jobs/* (`PodSets`, `OrderedReplicaTypes`, `podsCount` of each integration) and
pkg/controller/jobframework/tas.go (`NewPodSetTopologyRequest`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from blueprint.admission.appwrapper import templates
from blueprint.admission.body import Body, at, labels, mapping, or_one, rows, text, whole
from blueprint.admission.trainjob import job_set_of
from blueprint.finding import Ref
from blueprint.objects import Manifest

PREFIX = "kueue.x-k8s.io"
QUEUE_LABEL = f"{PREFIX}/queue-name"
PRIORITY_LABEL = f"{PREFIX}/priority-class"
GROUP_LABEL = f"{PREFIX}/pod-group-name"
MAIN = "main"

_WISH = {
    "required": f"{PREFIX}/podset-required-topology",
    "preferred": f"{PREFIX}/podset-preferred-topology",
    "unconstrained": f"{PREFIX}/podset-unconstrained-topology",
    "slice_level": f"{PREFIX}/podset-slice-required-topology",
    "slice_size": f"{PREFIX}/podset-slice-size",
    "layers": f"{PREFIX}/podset-slice-required-topology-constraints",
    "group": f"{PREFIX}/podset-group-name",
}
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a pod set asks of the topology; None and "" are what is not asked for."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    slice_level: str | None = None
    slice_size: int | None = None
    group: str | None = None
    layers: tuple[tuple[str, int], ...] = ()

    @property
    def explicit(self) -> bool:
        """Whether it asks for topology-aware scheduling (a group name alone does not)."""
        return bool(self.layers) or any(
            part is not None
            for part in (self.required, self.preferred, self.unconstrained, self.slice_level, self.slice_size)
        )


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one shape: `spec` is their pod spec, `min_count` the fewest that partial admission may leave."""

    name: str
    count: int
    spec: Body
    wish: Wish = Wish()
    min_count: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """What Kueue makes of one object: `copies` Workloads of these pod sets each, queued by these labels.

    `labels` are those of the object that is queued, `class_name` the PriorityClass of its pods; `priority` is written
    down only in a Workload.
    """

    podsets: tuple[PodSet, ...]
    labels: dict[str, str]
    class_name: str = ""
    copies: int = 1
    priority: int | None = None


def job(
    manifest: Manifest, find: Callable[[str, str, str], Body | None], peers: Iterable[Manifest] = ()
) -> Job | Ref | None:
    """The pod sets of an object, None for a kind that Kueue does not queue, a Ref for the runtime that is missing.

    `find(kind, namespace, name)` looks up runtimes of TrainJobs; `peers` are all objects, among them the other pods of
    a pod group.
    """
    read = _KINDS.get(f"{manifest.kind}.{manifest.ref.group}" if manifest.ref.group else manifest.kind)
    if read is not None:
        return read(manifest.body)
    match manifest.kind, manifest.ref.group:
        case "TrainJob", "trainer.kubeflow.org":
            body = job_set_of(manifest.body, manifest.ref.namespace, find)
            if isinstance(body, Ref):
                return body
            return replace(_job_set(body), labels=labels(manifest.body, "metadata", "labels"))
        case "Pod", "":
            return _pod(manifest, peers)
    return None


def _own(body: Body) -> dict[str, str]:
    return labels(body, "metadata", "labels")


def _podset(name: str, count: int, template: Body, min_count: int | None = None) -> PodSet:
    annotations = labels(template, "metadata", "annotations")
    return PodSet(name.lower(), max(0, count), mapping(template, "spec"), wish(annotations), min_count)


def wish(annotations: dict[str, str]) -> Wish:
    """What the annotations of a pod template ask for; what is malformed is refused by Kueue's webhook, not here."""
    found = {field: annotations[key] for field, key in _WISH.items() if key in annotations}
    required = found.get("required")
    preferred = found.get("preferred") if required is None else None
    free = found.get("unconstrained") if required is None and preferred is None else None
    unconstrained = True if free in _TRUE else False if free in _FALSE else None
    size = _integer(found.get("slice_size"))
    sliced = "slice_level" in found and size is not None
    return Wish(
        required=required,
        preferred=preferred,
        unconstrained=unconstrained,
        slice_level=found.get("slice_level") if sliced else None,
        slice_size=size if sliced else None,
        group=found.get("group") if required is not None or preferred is not None else None,
        layers=_layers(found.get("layers")),
    )


def _layers(written: str | None) -> tuple[tuple[str, int], ...]:
    """Slice layers as a Workload would hold them; the annotation is read only with gate TASMultiLayerTopology."""
    try:
        layers = json.loads(written) if written else []
    except ValueError:
        return ()
    return tuple((text(each, "topology"), whole(each, "size") or 1) for each in layers if isinstance(each, dict))


def _integer(written: str | None) -> int | None:
    return int(written) if written and written.lstrip("+-").isascii() and written.lstrip("+-").isdigit() else None


def _batch(body: Body) -> Job:
    """A Job without labels of its own is given those of its template by the API server."""
    template = mapping(body, "spec", "template")
    parallelism = whole(body, "spec", "parallelism")
    completions = whole(body, "spec", "completions")
    count = 1 if parallelism is None else parallelism
    if completions is not None:
        count = min(count, completions)
    least = _integer(labels(body, "metadata", "annotations").get(f"{PREFIX}/job-min-parallelism"))
    own = _own(body) or labels(template, "metadata", "labels")
    return Job((_podset(MAIN, count, template, least),), own, text(template, "spec", "priorityClassName"))


def _cron(body: Body) -> Job:
    return _batch(mapping(body, "spec", "jobTemplate"))


def _kubeflow(field: str, order: tuple[str, ...]) -> Callable[[Body], Job]:
    """Jobs with one pod set for each role, in Kueue's order of roles."""

    def read(body: Body) -> Job:
        specs = mapping(body, "spec", field)
        roles = [(role, mapping(specs, role)) for role in order if isinstance(specs.get(role), dict)]
        sets = tuple(_podset(role, or_one(whole(spec, "replicas")), mapping(spec, "template")) for role, spec in roles)
        named = [text(body, "spec", "runPolicy", "schedulingPolicy", "priorityClass")]
        named += [text(spec, "template", "spec", "priorityClassName") for _, spec in roles]
        return Job(sets, _own(body), next((each for each in named if each), ""))

    return read


def _job_set(body: Body) -> Job:
    sets = []
    for replicated in rows(body, "spec", "replicatedJobs"):
        spec = mapping(replicated, "template", "spec")
        pods = or_one(whole(spec, "parallelism"))
        completions = whole(spec, "completions")
        pods = pods if completions is None else min(pods, completions)
        count = or_one(whole(replicated, "replicas")) * pods
        sets.append(_podset(text(replicated, "name"), count, mapping(spec, "template")))
    return Job(tuple(sets), _own(body), _first_class(sets))


def _first_class(sets: Iterable[PodSet]) -> str:
    return next((name for each in sets if (name := text(each.spec, "priorityClassName"))), "")


def _ray(*path: str) -> Callable[[Body], Job]:
    """Head, then worker groups, then for a RayJob the pod that submits it."""

    def read(body: Body) -> Job:
        spec = mapping(body, "spec", *path)
        sets = [_podset("head", 1, mapping(spec, "headGroupSpec", "template"))]
        for group in rows(spec, "workerGroupSpecs"):
            count = or_one(whole(group, "replicas")) * max(1, or_one(whole(group, "numOfHosts")))
            sets.append(_podset(text(group, "groupName"), count, mapping(group, "template")))
        if text(body, "kind") == "RayJob" and text(body, "spec", "submissionMode") in ("", "K8sJobMode"):
            sets.append(_podset("submitter", 1, mapping(body, "spec", "submitterPodTemplate") or _SUBMITTER))
        return Job(tuple(sets), _own(body), _first_class(sets))

    return read


_SUBMITTER: Body = {
    "spec": {
        "containers": [
            {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "200Mi"}}}
        ]
    }
}


def _app_wrapper(body: Body) -> Job:
    name = text(body, "metadata", "name")
    sets = [_podset(f"{name}-{index}", count, pod) for index, (pod, count) in enumerate(templates(body))]
    return Job(tuple(sets), _own(body), _first_class(sets))


def _replicas(propagates: bool) -> Callable[[Body], Job]:
    """Replicas whose pods are queued one by one. A Deployment hands its own queue on to them, a Rollout does not."""

    def read(body: Body) -> Job:
        template = mapping(body, "spec", "template")
        own = labels(template, "metadata", "labels")
        if propagates:
            own |= {k: v for k, v in _own(body).items() if k in (QUEUE_LABEL, PRIORITY_LABEL)}
        copies = or_one(whole(body, "spec", "replicas"))
        return Job((_podset(MAIN, 1, template),), own, text(template, "spec", "priorityClassName"), copies)

    return read


def _stateful(body: Body) -> Job:
    template = mapping(body, "spec", "template")
    count = or_one(whole(body, "spec", "replicas"))
    return Job((_podset(MAIN, count, template),), _own(body), text(template, "spec", "priorityClassName"))


def _leader_worker(body: Body) -> Job:
    """One Workload for each group of a leader and its workers."""
    group = mapping(body, "spec", "leaderWorkerTemplate")
    size = or_one(whole(group, "size"))
    workers = mapping(group, "workerTemplate")
    sets = [_podset(MAIN, size, workers)]
    if leader := mapping(group, "leaderTemplate"):
        sets = [_podset("leader", 1, leader), _podset("worker", size - 1, workers)]
    return Job(tuple(sets), _own(body), _first_class(sets), or_one(whole(body, "spec", "replicas")))


def _pod(manifest: Manifest, peers: Iterable[Manifest]) -> Job:
    """A pod alone, or all pods of its group by role: pods of one shape are one pod set.

    With fast admission the first pod stands for all that the group is said to have.
    """
    own = _own(manifest.body)
    annotations = labels(manifest.body, "metadata", "annotations")
    name = own.get(GROUP_LABEL)
    if not name:
        return Job((_podset(MAIN, 1, manifest.body),), own, text(manifest.body, "spec", "priorityClassName"))
    members = [
        peer
        for peer in peers
        if (peer.kind, peer.api_version, peer.ref.namespace) == ("Pod", "v1", manifest.ref.namespace)
        and _own(peer.body).get(GROUP_LABEL) == name
    ]
    total = _integer(annotations.get(f"{PREFIX}/pod-group-total-count"))
    if f"{PREFIX}/pod-group-fast-admission" in annotations and total is not None:
        pods = _podset(_shape(manifest.body), total, manifest.body)
        return Job((pods,), own, text(manifest.body, "spec", "priorityClassName"))
    roles: dict[str, list[Manifest]] = {}
    for member in members:
        roles.setdefault(_shape(member.body), []).append(member)
    sets = tuple(_podset(role, len(pods), pods[0].body) for role, pods in sorted(roles.items()))
    return Job(sets, own, text(manifest.body, "spec", "priorityClassName"))


def _shape(body: Body) -> str:
    """A short name for what makes two pods of a group alike (kueue v0.17.0 pkg/util/pod/pod.go `SpecShape`)."""
    fields = ("initContainers", "containers", "nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority")
    shape = {field: at(body, "spec", field) for field in (*fields, "topologySpreadConstraints", "overhead")}
    return hashlib.sha256(json.dumps(shape, sort_keys=True, default=str).encode()).hexdigest()[:8]


def _workload(body: Body) -> Job:
    """A Workload written by hand is taken as it is."""
    sets = []
    for each in rows(body, "spec", "podSets"):
        asked = mapping(each, "topologyRequest")
        sets.append(
            PodSet(
                name=text(each, "name") or MAIN,
                count=max(0, or_one(whole(each, "count"))),
                spec=mapping(each, "template", "spec"),
                wish=_written_wish(asked),
                min_count=whole(each, "minCount"),
            )
        )
    own = _own(body) | ({QUEUE_LABEL: queue} if (queue := text(body, "spec", "queueName")) else {})
    reference = mapping(body, "spec", "priorityClassRef")
    name, group = text(reference, "name"), text(reference, "group")
    if name and group == PREFIX:
        own[PRIORITY_LABEL] = name
    return Job(tuple(sets), own, name if group != PREFIX else "", priority=whole(body, "spec", "priority"))


def _written_wish(asked: Body) -> Wish:
    unconstrained = at(asked, "unconstrained")
    layers = rows(asked, "podsetSliceRequiredTopologyConstraints")
    return Wish(
        required=_given(asked, "required"),
        preferred=_given(asked, "preferred"),
        unconstrained=unconstrained if isinstance(unconstrained, bool) else None,
        slice_level=_given(asked, "podSetSliceRequiredTopology"),
        slice_size=whole(asked, "podSetSliceSize"),
        group=_given(asked, "podSetGroupName"),
        layers=tuple((text(each, "topology"), whole(each, "size") or 1) for each in layers),
    )


def _given(body: Body, field: str) -> str | None:
    found = body.get(field)
    return found if isinstance(found, str) else None


_KUBEFLOW: dict[str, tuple[str, tuple[str, ...]]] = {
    "PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker")),
    "TFJob": ("tfReplicaSpecs", ("Chief", "Master", "PS", "Worker", "Evaluator")),
    "XGBoostJob": ("xgbReplicaSpecs", ("Master", "Worker")),
    "PaddleJob": ("paddleReplicaSpecs", ("Master", "Worker")),
    "JAXJob": ("jaxReplicaSpecs", ("Worker",)),
    "MPIJob": ("mpiReplicaSpecs", ("Launcher", "Worker")),
}

_KINDS: dict[str, Callable[[Body], Job]] = {
    "Job.batch": _batch,
    "CronJob.batch": _cron,
    "JobSet.jobset.x-k8s.io": _job_set,
    "RayCluster.ray.io": _ray(),
    "RayJob.ray.io": _ray("rayClusterSpec"),
    "RayService.ray.io": _ray("rayClusterConfig"),
    "Deployment.apps": _replicas(propagates=True),
    "Rollout.argoproj.io": _replicas(propagates=False),
    "StatefulSet.apps": _stateful,
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": _leader_worker,
    "AppWrapper.workload.codeflare.dev": _app_wrapper,
    "Workload.kueue.x-k8s.io": _workload,
    **{f"{kind}.kubeflow.org": _kubeflow(*shape) for kind, shape in _KUBEFLOW.items()},
}


def kinds() -> Iterator[str]:
    """Every kind (`Job.batch`) that becomes pod sets."""
    yield from (*_KINDS, "TrainJob.trainer.kubeflow.org", "Pod")
