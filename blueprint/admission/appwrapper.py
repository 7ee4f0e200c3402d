"""The objects inside an AppWrapper as pod templates with counts: declared by their paths, or inferred by kind.

Source: github.com/project-codeflare/appwrapper v1.2.0 pkg/utils/utils.go (`InferPodSets`, `GetComponentPodSpecs`),
which kueue v0.17.0 pkg/controller/jobs/appwrapper calls. There a RayJob brings no submitter, and the hosts of a worker
are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from blueprint.admission.body import Body, Json, at, mapping, or_one, rows, text, whole

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_RAY = {"RayCluster": "template.spec", "RayJob": "template.spec.rayClusterSpec"}
_REPLICATED = ("Deployment.apps/v1", "StatefulSet.apps/v1")


def templates(body: Body) -> Iterator[tuple[Body, int]]:
    """Pod templates (or pods) of all components in order, with the number of their pods."""
    for component in rows(body, "spec", "components"):
        declared = rows(component, "podSets")
        named = [(text(each, "path"), or_one(whole(each, "replicas"))) for each in declared]
        for path, count in named if declared else _inferred(component):
            found = _follow(component, path)
            if isinstance(found, dict) and isinstance(found.get("spec"), dict):
                yield found, count


def _inferred(component: Body) -> Iterator[tuple[str, int]]:
    template = mapping(component, "template")
    kind, spec = f"{text(template, 'kind')}.{text(template, 'apiVersion')}", mapping(template, "spec")
    match kind.partition("."):
        case "Job", _, "batch/v1":
            yield "template.spec.template", _parallel(spec)
        case "JobSet", _, "jobset.x-k8s.io/v1alpha2":
            for index, replicated in enumerate(rows(spec, "replicatedJobs")):
                count = or_one(whole(replicated, "replicas")) * _parallel(mapping(replicated, "template", "spec"))
                yield f"template.spec.replicatedJobs[{index}].template.spec.template", count
        case "PyTorchJob", _, "kubeflow.org/v1":
            for role in ("Master", "Worker"):
                if isinstance(replicas := at(spec, "pytorchReplicaSpecs", role), dict):
                    count = or_one(whole(replicas, "replicas"))
                    yield f"template.spec.pytorchReplicaSpecs.{role}.template", count
        case ("RayCluster" | "RayJob") as ray, _, "ray.io/v1":
            yield f"{_RAY[ray]}.headGroupSpec.template", 1
            groups = rows(_follow(component, _RAY[ray]), "workerGroupSpecs")
            for index, group in enumerate(groups):
                yield f"{_RAY[ray]}.workerGroupSpecs[{index}].template", or_one(whole(group, "replicas"))
        case "Pod", _, "v1":
            yield "template", 1
        case _ if kind in _REPLICATED:
            yield "template.spec.template", or_one(whole(spec, "replicas"))


def _parallel(spec: Body) -> int:
    pods, completions = or_one(whole(spec, "parallelism")), whole(spec, "completions")
    return pods if completions is None else min(pods, completions)


def _follow(value: Json, path: str) -> Json:
    """The value at a path such as `template.spec.groups[0].template`, None where there is none."""
    for name, index in _STEP.findall(path):
        if index:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value
