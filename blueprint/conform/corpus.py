"""Good and bad objects made from the rendered ones: what three policy engines must give the same verdict on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from blueprint.conform.tree import Tree

Body = dict[str, Any]
Change = Callable[[Body], None]

QUEUE = "kueue.x-k8s.io/queue-name"
PERSON = "person@example.com"
JOBS = "system:serviceaccount:kube-system:job-controller"
_UID = "00000000-0000-0000-0000-000000000001"
_TAGGED = "registry.example.com/training/torch:latest"


@dataclass(frozen=True, slots=True)
class Request:
    """An object that `user` creates; `what` says how it was made."""

    what: str
    user: str
    body: Body


def corpus(tree: Tree) -> list[Request]:
    """Every pod template of the tree with every change, by a person and by a controller; then other kinds."""
    requests: list[Request] = []
    for number, (source, pod) in enumerate(_pods(tree)):
        for what, change in _CHANGES.items():
            body = copy.deepcopy(pod)
            change(body)
            body["metadata"]["name"] = f"corpus-{number}-{len(requests)}"
            for user in (PERSON, JOBS):
                requests.append(Request(f"pod of {source}, {what}", user, body))
    for namespace in sorted({body["metadata"]["name"] for body in tree.of_kind("Namespace")}):
        for what, body in _others(namespace):
            requests.append(Request(f"{what} in {namespace}", PERSON, body))
    return requests


def sampled(requests: Sequence[Request]) -> list[Request]:
    """Every change once by each user, of one pod after the other, and every other object once."""
    found: dict[tuple[str, str], list[Request]] = {}
    for request in requests:
        pod, _, change = request.what.partition(", ")
        found.setdefault((change if pod.startswith("pod of") else request.what, request.user), []).append(request)
    return [alike[number % len(alike)] for number, alike in enumerate(found.values())]


def _pods(tree: Tree) -> Iterator[tuple[str, Body]]:
    """The pods that the tree's workloads would make, owned by a Job where a job makes them."""
    for body in tree.bodies:
        spec = body.get("spec") or {}
        kind, meta = body["kind"], body["metadata"]
        if kind in ("Deployment", "Rollout"):
            yield f"{kind} {meta['name']}", _pod(spec["template"], meta["namespace"])
        elif kind == "PyTorchJob":
            for role, replica in spec["pytorchReplicaSpecs"].items():
                yield f"{kind} {meta['name']} {role}", _pod(replica["template"], meta["namespace"], "PyTorchJob")
        elif kind == "TrainingRuntime":
            for job in spec["template"]["spec"]["replicatedJobs"]:
                template = job["template"]["spec"]["template"]
                yield f"{kind} {meta['name']}", _pod(template, meta["namespace"], "Job")
        elif kind == "LeaderWorkerSet":
            pod = _pod(spec["leaderWorkerTemplate"]["workerTemplate"], meta["namespace"])
            _held(pod)  # Kueue's webhook marks them so (kueue v0.17.0 pkg/controller/jobs/leaderworkerset)
            yield f"{kind} {meta['name']}", pod


def _pod(template: Body, namespace: str, owner: str = "") -> Body:
    template = copy.deepcopy(template)
    meta = {"namespace": namespace, "labels": {}, "annotations": {}, **template.get("metadata", {})}
    if owner:
        version = "batch/v1" if owner == "Job" else "kubeflow.org/v1"
        row = {"apiVersion": version, "kind": owner, "name": "owner", "uid": _UID, "controller": True}
        meta["ownerReferences"] = [row]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


def _image(text: str) -> Change:
    return lambda pod: pod["spec"]["containers"][0].update(image=text)


def _second(text: str, where: str = "containers") -> Change:
    """One more container like the first, of this image, without devices."""

    def change(pod: Body) -> None:
        extra = copy.deepcopy(pod["spec"]["containers"][0])
        extra.update(name="extra", image=text or extra["image"])
        extra.pop("resources", None)
        for probe in ("livenessProbe", "readinessProbe", "startupProbe", "ports", "lifecycle"):
            extra.pop(probe, None)
        pod["spec"].setdefault(where, []).append(extra)

    return change


def _spec(**fields: Any) -> Change:  # noqa: ANN401 (any JSON value)
    return lambda pod: pod["spec"].update(copy.deepcopy(fields))


def _label(key: str, value: str | None) -> Change:
    def change(pod: Body) -> None:
        pod["metadata"].setdefault("labels", {})
        pod["metadata"]["labels"].pop(key, None)
        if value is not None:
            pod["metadata"]["labels"][key] = value

    return change


def _note(key: str, value: str) -> Change:
    return lambda pod: pod["metadata"].setdefault("annotations", {}).update({key: value})


def _security(**fields: Any) -> Change:  # noqa: ANN401 (any JSON value)
    return lambda pod: pod["spec"]["containers"][0].setdefault("securityContext", {}).update(copy.deepcopy(fields))


def _without(*path: str) -> Change:
    def change(pod: Body) -> None:
        node = pod["spec"]["containers"][0]
        for step in path[:-1]:
            node = node.get(step, {})
        node.pop(path[-1], None)

    return change


def _orphan(pod: Body) -> None:
    pod["metadata"].pop("ownerReferences", None)


def _limit(name: str, amount: str) -> Change:
    def change(pod: Body) -> None:
        resources = pod["spec"]["containers"][0].setdefault("resources", {})
        for kind in ("limits", "requests"):
            resources.setdefault(kind, {})[name] = amount

    return change


_held = _note("kueue.x-k8s.io/pod-suspending-parent", "leaderworkerset.x-k8s.io/leaderworkerset")
_DIGEST = "sha256:" + "b" * 64
_CHANGES: dict[str, Change] = {
    "as it is": lambda pod: None,
    "by tag": _image(_TAGGED),
    "by tag and digest": _image(f"registry.example.com/training/torch:2@{_DIGEST}"),
    "by digest, another": _image(f"registry.example.com/training/torch@{_DIGEST}"),
    "of another registry": _image(f"images.example.org/training/torch@{_DIGEST}"),
    "of a registry with a similar name": _image(f"registry.example.com.evil.example/torch@{_DIGEST}"),
    "of no registry": _image("torch"),
    "with a short digest": _image("registry.example.com/training/torch@sha256:abc"),
    "with a second container": _second(""),
    "with a second container by tag": _second(_TAGGED),
    "with an init container": _second("", "initContainers"),
    "with an init container by tag": _second(_TAGGED, "initContainers"),
    "with an init container of another registry": _second(f"images.example.org/x@{_DIGEST}", "initContainers"),
    "with a token": _spec(automountServiceAccountToken=True),
    "with a token unless its account says no": lambda pod: pod["spec"].pop("automountServiceAccountToken", None),
    "without a queue": _label(QUEUE, None),
    "with an empty queue": _label(QUEUE, ""),
    "with another queue": _label(QUEUE, "training"),
    "without an owner": _orphan,
    "without owner and queue": lambda pod: (_orphan(pod), _label(QUEUE, None)(pod))[0],  # type: ignore[func-returns-value]
    "of a system priority": _spec(priorityClassName="system-cluster-critical"),
    "of no priority": lambda pod: pod["spec"].pop("priorityClassName", None),
    "in a second network": _note("k8s.v1.cni.cncf.io/networks", "storage"),
    "held by Kueue": _held,
    "with a harmless note": _note("example.com/note", "anything"),
    "with a harmless label": _label("example.com/label", "anything"),
    "without memory limit": _without("resources", "limits", "memory"),
    "without memory request": _without("resources", "requests", "memory"),
    "without resources": _without("resources"),
    "with more GPUs": _limit("nvidia.com/gpu", "4"),
    "with a slice": _limit("nvidia.com/mig-1g.10gb", "1"),
    "privileged": _security(privileged=True),
    "as root": _security(runAsUser=0, runAsNonRoot=False),
    "with a capability": _security(capabilities={"add": ["NET_ADMIN"], "drop": ["ALL"]}),
    "that may gain privileges": _security(allowPrivilegeEscalation=True),
    "in the host's network": _spec(hostNetwork=True),
    "in the host's process space": _spec(hostPID=True),
    "with a folder of the host": lambda pod: pod["spec"]["volumes"].append({"name": "h", "hostPath": {"path": "/"}}),
}


def _others(namespace: str) -> Iterator[tuple[str, Body]]:
    def body(api_version: str, kind: str, spec: Body | None = None, **rest: Any) -> Body:  # noqa: ANN401
        meta = {"name": "corpus", "namespace": namespace}
        return {"apiVersion": api_version, "kind": kind, "metadata": meta, **({"spec": spec} if spec else {}), **rest}

    ports = {"ports": [{"port": 80}], "selector": {"app": "x"}}
    for kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        yield f"Service {kind}", body("v1", "Service", {**ports, "type": kind})
    yield (
        "Service with an external name",
        body("v1", "Service", {"type": "ExternalName", "externalName": "example.org"}),
    )
    yield "Service with an external address", body("v1", "Service", {**ports, "externalIPs": ["203.0.113.1"]})
    template = {
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": f"registry.example.com/training/torch@{_DIGEST}"}],
        }
    }
    job = body("batch/v1", "Job", {"suspend": True, "template": template})
    yield "Job without a queue", job
    for queue in ("training", ""):
        labelled = copy.deepcopy(job)
        labelled["metadata"]["labels"] = {QUEUE: queue}
        yield f"Job with the queue {queue!r}", labelled
    for role in ("cluster-admin", "admin", "view", "platform-tenant-viewer"):
        for subject in ("system:authenticated", "system:unauthenticated", "oidc:team"):
            row = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": subject}
            ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
            made = body("rbac.authorization.k8s.io/v1", "RoleBinding", None, roleRef=ref, subjects=[row])
            yield f"RoleBinding of {role} to {subject}", made
    for admin in (None, True, False):
        exactly = {"deviceClassName": "h100-80gb", "allocationMode": "ExactCount", "count": 1}
        exactly |= {} if admin is None else {"adminAccess": admin}
        devices = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        yield f"ResourceClaim, admin access {admin}", body("resource.k8s.io/v1", "ResourceClaim", devices)
        made = body("resource.k8s.io/v1", "ResourceClaimTemplate", {"spec": devices})
        yield f"ResourceClaimTemplate, admin access {admin}", made
