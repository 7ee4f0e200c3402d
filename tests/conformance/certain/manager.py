"""Kueue's full manager among Kubernetes' own controllers, with the examples of rules as a user would submit them.

`python -m tests.conformance.certain.manager` decides all examples of the judge `manager` and prints one JSON object a
line: code, which example, and what became of each job. It is a program of its own since it moves into namespaces: the
manager insists on files below /etc. Examples with the same configuration of Kueue are decided together.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from blueprint.conform import modules
from blueprint.conform.client import Client, Target
from blueprint.conform.components.kueue import KUEUE
from blueprint.conform.daemon import NotReady
from blueprint.conform.isolate import isolate
from blueprint.conform.local import LocalCluster
from blueprint.errors import EnvironmentLacks
from tests.conformance.certain.replay import reading
from tests.conformance.certain.table import cases
from tests.conformance.certain.worlds import nodes
from tests.conformance.kueue.oracle import API

Body = dict[str, Any]

FRAMEWORKS = ["batch/job", "jobset.x-k8s.io/jobset", "kubeflow.org/pytorchjob"]
QUEUE = "kueue.x-k8s.io/queue-name"
_JOBS = frozenset({"Job", "JobSet", "PyTorchJob"})
_NAMED = frozenset({"Namespace", "ClusterQueue", "LocalQueue", "ResourceFlavor", "Cohort", "Topology", "NodePool"})
_NAMED_TOO = frozenset({"WorkloadPriorityClass", "AdmissionCheck", "ProvisioningRequestConfig"})
_ORDER = ("Namespace", "Topology", "ResourceFlavor", "ProvisioningRequestConfig", "AdmissionCheck")
_CALM, _LONGEST = 4.0, 60.0
#: The conversion of kinds goes to the port of one manager, and several run here, one after the other.
MANAGER = replace(KUEUE, convert=lambda _, crd: crd)


@dataclass
class Example:
    """One example of a rule: its configuration of Kueue, its nodes, the objects in their order, and its jobs."""

    code: str
    which: str
    configuration: Body = field(default_factory=dict)
    nodes: list[Body] = field(default_factory=list)
    objects: list[Body] = field(default_factory=list)
    jobs: list[Body] = field(default_factory=list)


def example(code: str, which: str, text: str) -> Example:
    """An example as objects whose names end in a mark, so that examples do not meet."""
    made = Example(code, which)
    found = reading(text)
    bodies = [manifest.body for manifest in (*found.manifests, *found.aside)]
    mark = f"{code.lower()}-{which}"
    named = {body["metadata"]["name"] for body in bodies if body["kind"] in _NAMED | _NAMED_TOO}
    named |= {body["metadata"]["namespace"] for body in bodies if "namespace" in body.get("metadata", {})}
    for body in sorted(bodies, key=lambda each: _ORDER.index(each["kind"]) if each["kind"] in _ORDER else 99):
        if body["kind"] == "Configuration":
            made.configuration = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
            continue
        body = _marked(body, named, mark)
        if body["kind"] == "NodePool":
            made.nodes += nodes(body)
        else:
            (made.jobs if body["kind"] in _JOBS else made.objects).append(body)
    if not made.jobs:
        made.objects += _queue(made, mark)
        made.jobs = [_asking(made)]
    spaces = {body["metadata"]["namespace"] for body in made.jobs} - {
        body["metadata"]["name"] for body in made.objects if body["kind"] == "Namespace"
    }
    made.objects[:0] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in spaces]
    return made


def _marked(value: Any, named: set[str], mark: str) -> Any:
    if isinstance(value, dict):
        return {key: _marked(inner, named, mark) for key, inner in value.items()}
    if isinstance(value, list):
        return [_marked(inner, named, mark) for inner in value]
    return f"{value}-{mark}" if isinstance(value, str) and value in named else value


def _queue(made: Example, mark: str) -> list[Body]:
    (target,) = (body["metadata"]["name"] for body in made.objects if body["kind"] == "ClusterQueue")
    meta = {"name": "main", "namespace": f"team-{mark}"}
    return [{"apiVersion": API, "kind": "LocalQueue", "metadata": meta, "spec": {"clusterQueue": target}}]


def _asking(made: Example) -> Body:
    """A job that asks for one of each resource that the queue covers."""
    (spec,) = (body["spec"] for body in made.objects if body["kind"] == "ClusterQueue")
    (queue,) = (body["metadata"] for body in made.objects if body["kind"] == "LocalQueue")
    asked = {name: "1" for group in spec["resourceGroups"] for name in group["coveredResources"]}
    container = {"name": "c", "image": "registry.example.com/c:1", "resources": {"requests": asked, "limits": asked}}
    meta = {"name": "some", "namespace": queue["namespace"], "labels": {QUEUE: queue["name"]}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}


def create(client: Client, bodies: list[Body]) -> None:
    """Create objects; a refusal is an error of the example."""
    for body in bodies:
        answer = client.create(body)
        if not answer.ok and answer.status != 409:
            raise RuntimeError(f"{body['kind']} {body['metadata']['name']} is refused: {answer.message}")


def _usable(node: Body) -> bool:
    taints = node.get("spec", {}).get("taints", ())
    return bool(node) and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)


def became(client: Client, job: Body) -> Body:
    """What became of a job: its Workload's conditions, flavors and charges, and where its pods are."""
    now = client.get(Target.of(job)).body
    uid, space = now["metadata"]["uid"], now["metadata"]["namespace"]

    def owned(kind: str, version: str) -> list[Body]:
        items = client.every(version, kind, space)
        return [each for each in items if any(o["uid"] == uid for o in each["metadata"].get("ownerReferences") or ())]

    found: Body = {"workload": False, "pods": []}
    for workload in owned("Workload", API):
        status = workload.get("status", {})
        rows = {row["type"]: [row["status"], row.get("message", "")] for row in status.get("conditions", ())}
        parts = status.get("admission", {}).get("podSetAssignments", ())
        found["workload"] = True
        found["conditions"] = rows
        found["flavors"] = {name: flavor for part in parts for name, flavor in part.get("flavors", {}).items()}
        found["charged"] = {name: amount for part in parts for name, amount in part.get("resourceUsage", {}).items()}
        found["checks"] = {row["name"]: row["state"] for row in status.get("admissionChecks", ())}
    if job["kind"] == "Job":
        found["suspended"] = now["spec"].get("suspend", False)
        found["selector"] = now["spec"]["template"]["spec"].get("nodeSelector", {})
    for pod in owned("Pod", "v1"):
        rows = {row["type"]: row for row in pod.get("status", {}).get("conditions", ())}
        said = rows.get("PodScheduled", {})
        found["pods"].append([bool(pod["spec"].get("nodeName")), said.get("message", "")])
    return found


def settled(client: Client, made: list[Example]) -> list[list[Body]]:
    """What became of every job, once nothing changed for some seconds and the last one, which may run, is admitted."""
    since, begun, before = time.monotonic(), time.monotonic(), ""
    while True:
        now = [[became(client, job) for job in each.jobs] for each in made]
        if (text := json.dumps(now, sort_keys=True)) != before:
            since, before = time.monotonic(), text
        control = bool(now[-1][0].get("conditions", {}).get("Admitted"))
        if (control and time.monotonic() - since > _CALM) or time.monotonic() - begun > _LONGEST:
            if not control:
                raise RuntimeError(f"the manager does not admit what it could: {now[-1]}")
            return now[:-1]
        time.sleep(0.3)


CONTROL = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: any}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: control}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 8}]}]}]
"""


def decide(cluster: LocalCluster, objects: list[Body], made: list[Example], number: int) -> Iterator[Body]:
    """Start the manager with the configuration that the examples share, and submit them."""
    shared = {"integrations": {"frameworks": FRAMEWORKS}, **made[0].configuration}
    held = {"controller_manager_config.yaml": json.dumps(shared)}
    meta = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    objects[:] = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": held}]
    cluster.start(MANAGER)
    together = [*made, example(f"control{number}", "good", CONTROL)]
    for each in together:
        create(cluster.client, [*each.nodes, *each.objects])
        for node in each.nodes:
            cluster.client.until(Target.of(node), _usable, _LONGEST, f"node {node['metadata']['name']}")
        for space in {job["metadata"]["namespace"] for job in each.jobs}:
            account = Target("v1", "ServiceAccount", space, "default")
            cluster.client.until(account, bool, _LONGEST, f"the account of {space}")
        create(cluster.client, each.jobs)
    for each, jobs in zip(made, settled(cluster.client, together), strict=True):
        yield {"code": each.code, "which": each.which, "jobs": jobs}
    cluster.end(MANAGER.name)


def main() -> int:
    """Decide every example, those of one configuration together."""
    groups: dict[str, list[Example]] = {}
    for case in cases("manager"):
        for which, text in (("bad", case.bad), ("good", case.good)):
            each = example(case.code, which, text)
            groups.setdefault(json.dumps(each.configuration, sort_keys=True), []).append(each)
    objects: list[Body] = []
    try:
        training = modules.crds(
            "github.com/kubeflow/training-operator", "training-operator", ("manifests/base/crds",), kind="PyTorchJob"
        )
        for module, pinned in {("sigs.k8s.io/kwok", "kwok"), *((each.module, each.pinned) for each in MANAGER.crds)}:
            modules.folder(module, pinned)  # inside there is no network to fetch them from
        isolated = not isolate()
        with LocalCluster(objects, later=[MANAGER], isolated=isolated) as cluster:
            cluster.plane.load_crds(training)
            for number, made in enumerate(groups.values()):
                for line in decide(cluster, objects, made, number):
                    print(json.dumps(line), flush=True)
    except NotReady:
        raise  # it is here, and does not start
    except EnvironmentLacks as error:
        print(error.diagnostics(), file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
