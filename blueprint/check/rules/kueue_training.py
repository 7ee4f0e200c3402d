"""What a training job needs in a queue that may take its place away: a checkpoint that stays, and a size that holds.

Sources: kueue v0.17.0 pkg/controller/jobframework/reconciler.go (an eviction suspends the job and deletes its pods),
pkg/controller/jobs/kubeflow/jobs/pytorchjob, pkg/workloadslicing; kubernetes v1.35.4 pkg/kubelet (emptyDir ends with
its pod), k8s.io/api core/v1 PersistentVolumeAccessMode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from blueprint.admission.podsets import PREFIX
from blueprint.check.graph import Graph, annotations_of, kind_of
from blueprint.check.hooks import sleeps
from blueprint.check.kueue import BATCH, Judged, kueue
from blueprint.check.pods import containers
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import Body, items, mapping, maps, number, placeholder, text, texts
from blueprint.finding import Finding, Ref

_ELASTIC = f"{PREFIX}/elastic-job"
_LEAST = f"{PREFIX}/job-min-parallelism"
_FLAG = re.compile(
    r"--(?:[a-z]+[-_])*(?:checkpoints?|ckpts?|save)(?:[-_](?:dir|path|folder|directory|root))?", re.ASCII
)
_VARIABLE = re.compile(r"(?:.*_)?(?:CHECKPOINTS?|CKPTS?)(?:_(?:DIR|PATH|FOLDER|ROOT))?", re.ASCII)
_GRACE = 30


def _training(graph: Graph) -> Iterator[Judged]:
    for judged in kueue(graph).judged:
        if kind_of(judged.manifest) in BATCH:
            yield judged


def elastic(graph: Graph) -> Iterator[Finding]:
    """KQ214: elasticity that Kueue does not know of: an autoscaler, a least number, an annotation without its gate."""
    found = kueue(graph)
    for judged in _training(graph):
        manifest = judged.manifest
        spec = mapping(manifest.body.get("spec"))
        policy = mapping(spec.get("elasticPolicy"))
        if policy.get("metrics"):
            message = (
                "elasticPolicy.metrics makes an autoscaler, which adds workers beyond the quota that Kueue counted"
            )
            yield warn("KQ214", manifest, message, "spec.elasticPolicy.metrics", "leave metrics out of a queued job")
        least, workers = number(policy.get("minReplicas")), _workers(judged)
        if least is not None and workers is not None and least < workers:
            message = (
                f"Kueue admits all {workers} workers or none; minReplicas {least} does not let it start with fewer"
            )
            yield note("KQ214", manifest, message, "spec.elasticPolicy.minReplicas", "")
        annotations = annotations_of(manifest.body)
        if annotations.get(_ELASTIC) == "true":
            if found.world.settings.given and not found.gate("ElasticJobsViaWorkloadSlices"):
                message = f"{_ELASTIC} has no effect: the feature gate ElasticJobsViaWorkloadSlices is closed"
                yield warn(
                    "KQ214", manifest, message, f"metadata.annotations[{_ELASTIC}]", "open the gate, or remove it"
                )
            elif _LEAST in annotations:
                message = "an elastic job and partial admission exclude each other, though the webhook takes both"
                yield warn("KQ214", manifest, message, f"metadata.annotations[{_LEAST}]", "keep one of them")


def _workers(judged: Judged) -> int | None:
    return next((each.count for each in judged.job.podsets if each.name == "worker"), None)


def _paths(container: Body) -> Iterator[str]:
    """Folders that arguments and variables name for checkpoints."""
    words = [*texts(container.get("command")), *texts(container.get("args"))]
    for index, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if _FLAG.fullmatch(flag):
            yield value if equals else words[index + 1] if index + 1 < len(words) else ""
    for row in maps(container.get("env")):
        if _VARIABLE.fullmatch(text(row.get("name"))):
            yield text(row.get("value"))


def _volume(container: Body, spec: Body, path: str) -> Body | None:
    """The volume that holds a folder, None where it is in the container's own file system."""
    best, name = "", ""
    for row in maps(container.get("volumeMounts")):
        where = text(row.get("mountPath")).rstrip("/")
        if where and (path == where or path.startswith(f"{where}/")) and len(where) > len(best):
            best, name = where, text(row.get("name"))
    return next((each for each in maps(spec.get("volumes")) if each.get("name") == name), None) if best else None


def lost_checkpoints(graph: Graph) -> Iterator[Finding]:
    """KQ215: checkpoints are written to a place that ends with the pod, and Kueue ends pods when it evicts a job."""
    for judged in _training(graph):
        told = False
        for podset in judged.job.podsets:
            for place, container in containers(podset.spec):
                for path in _paths(container):
                    if told or not path.startswith("/") or placeholder(path):
                        continue
                    volume = _volume(container, podset.spec, path)
                    if volume is not None and "emptyDir" not in volume:
                        continue
                    told = True
                    where = f"emptyDir {volume['name']}" if volume else "the container's own file system"
                    message = (
                        f"checkpoints go to {path} in {where} ({podset.name} {place}): an eviction by Kueue deletes "
                        "the pod and them with it, and the job starts anew"
                    )
                    fix = "write them to a PersistentVolumeClaim or an object store"
                    yield warn("KQ215", judged.manifest, message, "spec", fix)


def shared_claims(graph: Graph) -> Iterator[Finding]:
    """KQ216: a claim for one node, or one pod, is mounted by several pods of a job."""
    for judged in _training(graph):
        users: dict[str, int] = {}
        for podset in judged.job.podsets:
            for volume in maps(podset.spec.get("volumes")):
                name = text(mapping(volume.get("persistentVolumeClaim")).get("claimName"))
                if name:
                    users[name] = users.get(name, 0) + podset.count
        for name, count in users.items():
            claim = graph.get(Ref("", "PersistentVolumeClaim", judged.manifest.ref.namespace, name))
            modes = set(map(str, items(mapping(claim.body.get("spec")).get("accessModes")))) if claim else set()
            if count < 2 or not modes or not modes <= {"ReadWriteOnce", "ReadWriteOncePod"}:
                continue
            fix = "use a claim with ReadWriteMany, or one for each pod"
            if modes == {"ReadWriteOncePod"}:
                message = f"claim {name} is for one pod (ReadWriteOncePod), and {count} pods mount it: all others wait"
                yield say("KQ216", judged.manifest, message, "spec", fix)
            else:
                message = (
                    f"claim {name} is for one node (ReadWriteOnce), and {count} pods mount it: on other nodes they wait"
                )
                yield warn("KQ216", judged.manifest, message, "spec", fix)


def short_grace(graph: Graph) -> Iterator[Finding]:
    """KQ218: the hook before the end takes longer than the time that pods get to end."""
    for judged in _training(graph):
        for podset in judged.job.podsets:
            grace = number(podset.spec.get("terminationGracePeriodSeconds"), _GRACE) or 0
            for place, container in containers(podset.spec):
                hook = mapping(mapping(container.get("lifecycle")).get("preStop"))
                seconds = sleeps(hook)
                if seconds is not None and seconds >= grace:
                    message = (
                        f"{podset.name} {place}: preStop takes {seconds} s and the pod gets {grace} s to end: what "
                        "is to be saved on an eviction is cut off"
                    )
                    fix = f"terminationGracePeriodSeconds above {seconds}"
                    yield warn("KQ218", judged.manifest, message, "spec", fix)


RULES = (elastic, lost_checkpoints, shared_claims, short_grace)
TREE = ()
