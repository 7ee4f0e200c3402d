"""DRA: claims on devices are allocated by the real scheduler, tenants cannot forge devices, and the audit log tells."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from blueprint.conform.client import NotAnswered, Target
from blueprint.conform.components.kueue import KUEUE, TRAINING
from blueprint.conform.nodes import node_objects
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError, accepted, condition, refused
from blueprint.conform.tree import Tree

Body = dict[str, Any]

_DRIVER = "gpu.nvidia.com"
_SPACE = "conform-devices"
_PER_NODE = 8
_POLL = 0.2
_API = "resource.k8s.io/v1"


def run(stage: Stage) -> None:
    """Slices for the nodes of the tree that have devices, then pods that claim them."""
    [device] = stage.tree.of_kind("DeviceClass")[:1]
    pool = device["metadata"]["name"]
    stage.local.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _SPACE}}])
    nodes = list(_nodes(stage.tree))
    with stage.case("a driver's slices for the nodes of the tree") as case:
        if not nodes:
            raise WrongAnswerError("no node of the tree has devices")
        stage.local.create([*(_slice(node) for node in nodes), _template("four", pool, 4)])
        case.said = f"{len(nodes)} nodes, {_PER_NODE} devices each"
    tolerated = nodes[0]["spec"]["taints"]
    account = Target("v1", "ServiceAccount", _SPACE, "default")
    stage.client.until(account, bool, stage.patience, "the namespace's account")
    with stage.case("claims of pods are allocated until nothing is left") as case:
        count = len(nodes) * _PER_NODE // 4
        for number in range(count):
            accepted(stage.client.create(_pod(f"holder-{number}", "four", tolerated)), "a pod")
        seen = set()
        for number in range(count):
            pod = stage.until(_pod(f"holder-{number}", "four", tolerated), _runs, stage.patience, "a pod with devices")
            seen |= {f"{pod['spec']['nodeName']}/{name}" for name in _devices(stage, pod)}
        if len(seen) != count * 4:
            raise WrongAnswerError(f"{count} claims of 4 hold {len(seen)} devices: one is given twice")
        case.said = f"{count} pods hold {len(seen)} devices, none twice"
    with stage.case("one more stays pending", negative=True) as case:
        accepted(stage.client.create(_pod("late", "four", tolerated)), "a pod")
        pod = stage.until(_pod("late", "four", tolerated), _unschedulable, stage.patience, "the scheduler's refusal")
        case.said = str(condition(pod, "PodScheduled")["message"])[:200]
        if "claim" not in case.said:
            raise WrongAnswerError(f"not for its claim: {case.said}")
    with stage.case("it gets the devices of one that ends") as case:
        stage.client.delete(Target("v1", "Pod", _SPACE, "holder-0"))
        pod = stage.until(_pod("late", "four", tolerated), _runs, stage.patience, "the devices to be free again")
        case.said = f"{sorted(_devices(stage, pod))} on {pod['spec']['nodeName']}"
    with stage.case("a claim for another product stays pending", negative=True) as case:
        wanted = f"device.attributes['{_DRIVER}'].productName == 'NVIDIA B200'"
        stage.local.create([_template("other", pool, 1, wanted)])
        accepted(stage.client.create(_pod("stranger", "other", tolerated)), "a pod")
        pod = stage.until(_pod("stranger", "other", tolerated), _unschedulable, stage.patience, "the refusal")
        case.said = str(condition(pod, "PodScheduled")["message"])[:200]
    _tenants(stage, nodes[0])
    _audited(stage)


def _nodes(tree: Tree) -> Iterator[Body]:
    """Nodes of flavors whose devices are claimed: GPUs by label, none among the resources."""
    for node in node_objects(tree.bodies):
        labels = node["metadata"]["labels"]
        if "nvidia.com/gpu.product" in labels and not any("nvidia.com" in name for name in node["status"]["capacity"]):
            yield node


def _slice(node: Body) -> Body:
    name, product = node["metadata"]["name"], node["metadata"]["labels"]["nvidia.com/gpu.product"]
    words = product.replace("-HBM3", " HBM3").replace("-", " ")
    attributes = {"type": {"string": "gpu"}, "productName": {"string": words}}
    devices = [
        {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}
        for number in range(_PER_NODE)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": _DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return {"apiVersion": _API, "kind": "ResourceSlice", "metadata": {"name": f"{name}-gpus"}, "spec": spec}


def _template(name: str, device_class: str, count: int, wanted: str = "") -> Body:
    exactly: Body = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    if wanted:
        exactly["selectors"] = [{"cel": {"expression": wanted}}]
    spec = {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}
    meta = {"name": name, "namespace": _SPACE}
    return {"apiVersion": _API, "kind": "ResourceClaimTemplate", "metadata": meta, "spec": {"spec": spec}}


def _pod(name: str, template: str, taints: list[Body]) -> Body:
    container = {"name": "c", "image": "registry.example.com/any@sha256:" + "0" * 64}
    container |= {"resources": {"claims": [{"name": "gpus"}]}}  # type: ignore[dict-item]
    spec = {
        "containers": [container],
        "tolerations": [{"key": taint["key"], "operator": "Exists"} for taint in taints],
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": template}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": _SPACE}, "spec": spec}


def _runs(pod: Body) -> bool:
    return bool(pod) and (pod.get("status") or {}).get("phase") == "Running"


def _unschedulable(pod: Body) -> bool:
    return bool(pod) and condition(pod, "PodScheduled").get("reason") == "Unschedulable"


def _devices(stage: Stage, pod: Body) -> list[str]:
    [row] = pod["status"]["resourceClaimStatuses"]
    claim = accepted(
        stage.client.get(Target(_API, "ResourceClaim", _SPACE, row["resourceClaimName"])), "its claim"
    ).body
    stage.saw(claim)
    return [result["device"] for result in claim["status"]["allocation"]["devices"]["results"]]


def _tenants(stage: Stage, node: Body) -> None:
    """Who could write a slice could invent devices, who could write a class could take them all."""
    [group, *_] = [
        subject["name"]
        for binding in stage.tree.of_kind("RoleBinding")
        for subject in binding["subjects"]
        if subject["kind"] == "Group"
    ]
    tenant = stage.client.acting_as("person@example.com", group)
    forged = _slice(node)
    forged["metadata"]["name"] = "forged"
    open_class = {"apiVersion": _API, "kind": "DeviceClass", "metadata": {"name": "everything"}, "spec": {}}
    for body in (forged, open_class):
        with stage.case(f"a tenant writes a {body['kind']}", negative=True) as case:
            case.said = refused(tenant.create(body), "it", "forbidden").message[:160]
    with stage.case("a tenant allocates a claim to itself", negative=True) as case:
        claims = stage.client.every(_API, "ResourceClaim", _SPACE)
        change = {"status": {"allocation": None}}
        answer = tenant.patch(Target.of(claims[0]), change, part="status")
        case.said = refused(answer, "the status", "forbidden").message[:160]


def _audited(stage: Stage) -> None:
    """The log of the API server, by the tree's own audit policy, tells a claim's life, and Kueue's decisions."""
    log = stage.local.folder / "audit.log"
    with stage.case("the audit log tells of claims: made, allocated and released") as case:
        claim = "late"
        wanted: dict[str, Callable[[Body], bool]] = {
            "made": lambda e: (
                e["verb"] == "create" and _of(e, "resourceclaims") and _by(e, "resource-claim-controller")
            ),
            "allocated": lambda e: (
                _of(e, "resourceclaims", "status") and _by(e, "kube-scheduler") and _allocates(e, claim)
            ),
            "released": lambda e: e["verb"] == "delete" and _of(e, "resourceclaims"),
        }
        stage.client.delete(Target("v1", "Pod", _SPACE, claim))
        deadline = time.monotonic() + stage.patience
        while True:  # a file tells nobody that it grows
            events = [e for line in log.read_text("utf-8").splitlines() if (e := _read(line))]
            mine = [e for e in events if e.get("objectRef", {}).get("namespace") == _SPACE]
            counts = {what: len({e["auditID"] for e in mine if test(e)}) for what, test in wanted.items()}
            if all(counts.values()):
                break
            if time.monotonic() > deadline:
                raise NotAnswered(f"the audit log does not tell of {[what for what, n in counts.items() if not n]}")
            time.sleep(_POLL)
        allocations = [e for e in mine if wanted["allocated"](e)]
        if len(allocations) != 1:
            raise WrongAnswerError(f"the allocation of one claim stands there {len(allocations)} times")
        case.said = ", ".join(f"{n} {what}" for what, n in counts.items())
    with stage.case("the audit log tells of Kueue's decisions") as case:
        told = [
            e
            for e in events
            if _of(e, "workloads", "status") and e["objectRef"].get("apiGroup") == "kueue.x-k8s.io" and _by(e, "kueue")
        ]
        if not told:
            raise WrongAnswerError("no change of a Workload's status")
        if any(e["level"] != "RequestResponse" for e in told):
            raise WrongAnswerError("they are told without their bodies")
        case.said = f"{len(told)} changes of Workloads"


def _read(line: str) -> Body:
    try:
        event: Body = json.loads(line)
    except ValueError:
        return {}  # the last line, half written
    return event


def _of(event: Body, resource: str, part: str = "") -> bool:
    ref = event.get("objectRef") or {}
    return ref.get("resource") == resource and ref.get("subresource", "") == part and event.get("verb") != "get"


def _by(event: Body, who: str) -> bool:
    return who in event["user"]["username"]


def _allocates(event: Body, pod: str) -> bool:
    name = event["objectRef"].get("name", "")
    status = (event.get("responseObject") or {}).get("status") or {}
    return name.startswith(f"{pod}-") and bool(status.get("allocation"))


def _elsewhere(tree: Tree) -> Tree:
    """A class that selects no device of the fleet."""

    def put(body: Body) -> None:
        body["spec"]["selectors"] = [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]

    return tree.changed("DeviceClass", put)


SUITE = Suite(
    name="devices",
    title="Claims on devices, allocated by the scheduler",
    run=run,
    needs=(KUEUE, TRAINING),
    faults=(Fault("a class of devices that selects none", _elsewhere, "claims of pods are allocated"),),
    elsewhere="a scheduler would hand out its devices, which are not there",
)
