"""A TrainJob and its runtime as the JobSet that Trainer would make of them.

Source: kubeflow/trainer v2.2.0 pkg/runtime/core/trainingruntime.go (`newRuntimeInfo`, `mergeRuntimePatches`),
pkg/runtime/framework/plugins/jobset/builder.go, plugins/mpi/mpi.go; kueue v0.17.0
pkg/controller/jobs/trainjob/trainjob_controller.go (`getChildJobSet`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from blueprint.admission.body import Body, Json, at, labels, mapping, rows, text, whole
from blueprint.finding import Ref

GROUP = "trainer.kubeflow.org"
_STEP = f"{GROUP}/trainjob-ancestor-step"
_NODE = "node"
#: The keys by which a strategic merge patch tells the items of a pod template's lists apart (k8s.io/api core/v1).
_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "env": "name",
    "ports": "containerPort",
    "resourceClaims": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
}


def job_set_of(body: Body, namespace: str, find: Callable[[str, str, str], Body | None]) -> Body | Ref:
    """The JobSet of a TrainJob, or the runtime that is missing. `find(kind, namespace, name)` looks runtimes up."""
    reference = mapping(body, "spec", "runtimeRef")
    kind = text(reference, "kind") or "ClusterTrainingRuntime"
    where = namespace if kind == "TrainingRuntime" else ""
    name = text(reference, "name")
    runtime = find(kind, where, name)
    if runtime is None:
        return Ref(GROUP, kind, where, name)
    spec = copy.deepcopy(mapping(runtime, "spec", "template", "spec"))
    for patch in rows(body, "spec", "runtimePatches"):
        for change in rows(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs"):
            for job in rows(spec, "replicatedJobs"):
                if text(job, "name") == text(change, "name") and isinstance(change.get("template"), dict):
                    job["template"] = merged(mapping(job, "template"), change["template"])
    _trainer(body, mapping(runtime, "spec"), rows(spec, "replicatedJobs"))
    return {"spec": spec}


def _trainer(body: Body, runtime: Body, jobs: list[Body]) -> None:
    """Set the numbers of nodes, and the resources of the container `node` in the trainer step."""
    policy = runtime.get("mlPolicy")
    asked = whole(body, "spec", "trainer", "numNodes")
    mpi = at(policy, "mpi")
    as_node = at(mpi, "runLauncherAsNode") is True
    for job in jobs:
        template = job["template"] = mapping(job, "template")
        spec = template["spec"] = mapping(template, "spec")
        step = labels(template, "metadata", "labels").get(_STEP, "")
        pods = whole(spec, "parallelism")
        count = max(1, 1 if pods is None else pods)
        if step == "trainer" and isinstance(policy, dict):
            nodes = whole(policy, "numNodes")
            count = max(1, 1 if nodes is None else nodes)
        if asked is not None and isinstance(policy, dict):
            if isinstance(mpi, dict):
                if text(job, "name") == _NODE:
                    count = max(asked - 1, 1) if as_node else asked
            elif step == "trainer":
                count = asked
        spec["parallelism"] = spec["completions"] = count
        if step:
            job["replicas"] = 1
        if step == "trainer" or (as_node and text(job, "name") == _NODE):
            _resources(spec, mapping(body, "spec", "trainer", "resourcesPerNode"))


def _resources(spec: Body, given: Body) -> None:
    if not given.get("limits") and not given.get("requests"):
        return
    for container in rows(spec, "template", "spec", "containers"):
        if text(container, "name") == _NODE:
            container["resources"] = copy.deepcopy(given)


def merged(value: Json, patch: Json, field: str = "") -> Json:
    """A strategic merge patch over a pod template: mappings merge, null removes, lists with a key merge by it."""
    if isinstance(value, dict) and isinstance(patch, dict):
        result = dict(value)
        for name, item in patch.items():
            if item is None:
                result.pop(name, None)
            else:
                result[name] = merged(result.get(name), item, name)
        return result
    key = _MERGE_KEYS.get(field)
    if key and isinstance(value, list) and isinstance(patch, list):
        items = [dict(item) for item in value if isinstance(item, dict)]
        for change in (each for each in patch if isinstance(each, dict)):
            mine = next((n for n, item in enumerate(items) if item.get(key) == change.get(key)), None)
            if mine is None:
                items.append(change)
            else:
                items[mine] = merged(items[mine], change)
        return items
    return patch
