"""Objects for tests, written short: queues, flavors, jobs, nodes, and the decision about them."""

from __future__ import annotations

from typing import Any

import yaml

from blueprint.admission.change import Change, smallest_change
from blueprint.admission.decide import Decision, decide
from blueprint.admission.world import World, world
from blueprint.finding import Source
from blueprint.objects import Manifest

Body = dict[str, Any]
API = "kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"


def kueue(kind: str, name: str, spec: Body, namespace: str = "") -> Body:
    """An object of Kueue's own group."""
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": API, "kind": kind, "metadata": meta, "spec": spec}


def flavor(name: str, **spec: Any) -> Body:
    """A ResourceFlavor."""
    return kueue("ResourceFlavor", name, spec)


def row(name: str, nominal: object, borrow: object = None, lend: object = None) -> Body:
    """A row of quota."""
    limits = {"borrowingLimit": borrow, "lendingLimit": lend}
    return {"name": name, "nominalQuota": nominal} | {k: v for k, v in limits.items() if v is not None}


def group(flavors: dict[str, list[Body]]) -> Body:
    """A resource group: rows by flavor, each in the same order of resources."""
    covered = [each["name"] for each in next(iter(flavors.values()))]
    return {
        "coveredResources": covered,
        "flavors": [{"name": name, "resources": rows} for name, rows in flavors.items()],
    }


def queue(name: str, *groups: Body, cohort: str = "", **spec: Any) -> Body:
    """A ClusterQueue for all namespaces."""
    whole = {"namespaceSelector": {}, "resourceGroups": list(groups)} | ({"cohortName": cohort} if cohort else {})
    return kueue("ClusterQueue", name, whole | spec)


def gpus(name: str, nominal: object, borrow: object = None, lend: object = None, cohort: str = "", **spec: Any) -> Body:
    """A ClusterQueue with GPUs of flavor `f`."""
    return queue(name, group({"f": [row(GPU, nominal, borrow, lend)]}), cohort=cohort, **spec)


def local(name: str, to: str, namespace: str = "team", **spec: Any) -> Body:
    """A LocalQueue."""
    return kueue("LocalQueue", name, {"clusterQueue": to} | spec, namespace)


def pods(name: str = "p", count: int = 1, requests: Body | None = None, **more: Any) -> Body:
    """A pod set of a Workload; `topology` is its topology request, the rest goes into the pod spec."""
    topology = more.pop("topology", None)
    least = more.pop("least", None)
    spec = {"containers": [{"name": "c", "resources": {"requests": requests or {}}}], **more}
    body: Body = {"name": name, "count": count, "template": {"spec": spec}}
    return body | ({"topologyRequest": topology} if topology else {}) | ({"minCount": least} if least else {})


def workload(*sets: Body, queue: str = "lq", name: str = "w", **spec: Any) -> Body:
    """A Workload written by hand."""
    return kueue("Workload", name, {"queueName": queue, "podSets": list(sets)} | spec, "team")


def node(name: str, labels: Body | None = None, allocatable: Body | None = None, **spec: Any) -> Body:
    """A node that is ready."""
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    status = {
        "allocatable": {"pods": "110", **(allocatable or {})},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def manifests(*bodies: Body) -> list[Manifest]:
    """The bodies with places."""
    return [Manifest(body, Source("test.yaml", index + 1)) for index, body in enumerate(bodies)]


def read(*bodies: Body, version: str = "0.17.0") -> World:
    """A world of these objects."""
    return world(manifests(*bodies), kueue=version)


def decided(*bodies: Body, version: str = "0.17.0") -> Decision:
    """The decision about the last object."""
    found = read(*bodies, version=version)
    return decide(found, found.manifests[-1])


def changed(*bodies: Body) -> Change | None:
    """The smallest change for the last object."""
    found = read(*bodies)
    return smallest_change(found, found.manifests[-1], decide(found, found.manifests[-1]))


def load(text: str) -> list[Body]:
    """The documents of a YAML text."""
    return [body for body in yaml.safe_load_all(text) if body]


def codes(decision: Decision) -> list[str]:
    """The codes of its reasons."""
    return [reason.code for reason in decision.reasons]


def flavors(decision: Decision) -> dict[str, dict[str, str]]:
    """Flavor by pod set and resource."""
    return {plan.name: plan.flavors for plan in decision.podsets}
