"""Examples about Kueue as objects of its scheduler: a Workload for each job, a node for each of a pool."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from blueprint.admission.podsets import Job, PodSet, Wish, job
from blueprint.objects import Manifest
from tests.conformance.kueue.oracle import API, HOST

Body = dict[str, Any]
_OWN = frozenset({"ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Topology"})
_NAMED = ("clusterQueue", "cohortName", "parentName", "topologyName")


@dataclass
class World:
    """What an example comes to; names of Kueue's objects end in a mark, so that examples do not meet."""

    mark: str
    objects: list[Body] = field(default_factory=list)
    nodes: list[Body] = field(default_factory=list)
    workloads: list[Body] = field(default_factory=list)


def world(manifests: list[Manifest], mark: str) -> World:
    """The world of an example. Where it has no job, one that asks for little is queued."""
    made = World(mark)
    for manifest in manifests:
        body = copy.deepcopy(manifest.body)
        if manifest.kind in _OWN:
            made.objects.append(_marked(body, mark))
        elif manifest.kind == "NodePool":
            made.nodes += nodes(body)
        elif manifest.kind in ("Namespace", "LimitRange"):
            made.objects.append(body)
        else:
            found = job(manifest, lambda *_: None)
            if isinstance(found, Job):
                name = f"{manifest.ref.name}-{mark}"
                queue = found.labels["kueue.x-k8s.io/queue-name"]
                made.workloads.append(_workload(name, manifest.ref.namespace, f"{queue}-{mark}", found.podsets))
    if not made.workloads:
        queues = [body for body in made.objects if body["kind"] == "LocalQueue"] or [_queue(made)]
        meta = queues[0]["metadata"]
        container = {"name": "c", "image": "registry.example.com/c", "resources": {"requests": {"cpu": "1"}}}
        pods = PodSet("main", 1, {"containers": [container], "restartPolicy": "Never"})
        made.workloads.append(_workload(f"some-{mark}", meta["namespace"], meta["name"], (pods,)))
    # Namespaces come first; those that are there already do no harm.
    made.objects.sort(key=lambda body: body["kind"] != "Namespace")
    return made


def _queue(made: World) -> Body:
    target = next(body["metadata"]["name"] for body in made.objects if body["kind"] == "ClusterQueue")
    meta = {"name": f"some-{made.mark}", "namespace": "default"}
    queue = {"apiVersion": API, "kind": "LocalQueue", "metadata": meta, "spec": {"clusterQueue": target}}
    made.objects.append(queue)
    return queue


def _marked(body: Body, mark: str) -> Body:
    body["metadata"]["name"] += f"-{mark}"
    spec = body.setdefault("spec", {})
    for name in _NAMED:
        if name in spec:
            spec[name] += f"-{mark}"
    for group in spec.get("resourceGroups", ()) if body["kind"] != "LocalQueue" else ():
        for flavor in group["flavors"]:
            flavor["name"] += f"-{mark}"
    return body


def nodes(pool: Body) -> Iterator[Body]:
    """A node for each of a pool of an example."""
    spec = pool["spec"]
    for number in range(spec["nodes"]):
        name = f"{pool['metadata']['name']}-{number}"
        offered = {"pods": "110", **{key: str(value) for key, value in spec["allocatable"].items()}}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {**spec.get("labels", {}), HOST: name}},
            "spec": {"taints": spec["taints"]} if "taints" in spec else {},
            "status": {"allocatable": offered, "conditions": [{"type": "Ready", "status": "True"}]},
        }


def _workload(name: str, namespace: str, queue: str, podsets: tuple[PodSet, ...]) -> Body:
    return {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"queueName": queue, "podSets": [_podset(each) for each in podsets]},
    }


def _podset(each: PodSet) -> Body:
    made: Body = {"name": each.name, "count": each.count, "template": {"spec": each.spec}}
    if request := _request(each.wish):
        made["topologyRequest"] = request
    return made


def _request(wish: Wish) -> Body:
    said = {
        "required": wish.required,
        "preferred": wish.preferred,
        "unconstrained": wish.unconstrained,
        "podSetSliceRequiredTopology": wish.slice_level,
        "podSetSliceSize": wish.slice_size,
        "podSetGroupName": wish.group,
    }
    return {key: value for key, value in said.items() if value is not None}
