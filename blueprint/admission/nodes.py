"""Nodes: from Node objects, or from an inventory that says which nodes there are without their being in Git.

An inventory is a list of pools, and may name the version of Kueue. It stands in a ConfigMap with the label
`platform.blueprint/inventory: "true"`, each key of its data one YAML document, or in a file of its own:

    kueue: 0.17.0
    pools:
    - name: h100                    # nodes are called h100-0, h100-1, …, and carry that as kubernetes.io/hostname
      nodes: 4                      # how many; may be left out where `places` count them
      labels: {example.com/pool: h100}
      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
      allocatable: {cpu: 96, memory: 1000Gi, nvidia.com/gpu: 8}     # of one node; pods: 110 unless given
      places:                       # optional: where the nodes stand, as further labels
      - {nodes: 2, labels: {example.com/rack: r1}}
      - {nodes: 2, labels: {example.com/rack: r2}}

The file form has `kind: Inventory`, or is one pool as `kind: NodePool` with `metadata.name` and the rest below `spec`
(`count` for `nodes`). The rendered `queues` application carries such a ConfigMap for each cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml_rs

from blueprint.admission.amounts import PODS, Amounts, amounts, resources
from blueprint.admission.body import Body, labels, mapping, rows, text, whole
from blueprint.admission.match import HOSTNAME, Taint, taints
from blueprint.objects import Manifest

INVENTORY_LABEL = "platform.blueprint/inventory"
#: What a kubelet allows unless told otherwise (k8s.io/kubernetes v1.35.4 pkg/kubelet/apis/config/v1beta1/defaults.go).
_PODS = 110
_MOST_NODES = 100_000


@dataclass(frozen=True, slots=True)
class Node:
    """One node: labels, taints, and what it offers to pods in Kueue's integers."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Mapping[str, int]

    def carries(self, wanted: Mapping[str, str], keys: Iterable[str]) -> bool:
        """Whether it has these labels, and any value for each of the keys."""
        mine = self.labels
        return all(mine.get(key) == value for key, value in wanted.items()) and all(key in mine for key in keys)


def inventories(manifests: Iterable[Manifest], others: Iterable[Body] = ()) -> list[Body]:
    """The inventory documents: `others` that are no Kubernetes objects, and those in ConfigMaps."""
    found = [body for body in others if text(body, "kind") in ("Inventory", "NodePool")]
    for manifest in manifests:
        mark = labels(manifest.body, "metadata", "labels").get(INVENTORY_LABEL)
        if (manifest.kind, manifest.api_version, mark) == ("ConfigMap", "v1", "true"):
            found += [_document(content) for content in mapping(manifest.body, "data").values()]
    return found


def find_nodes(manifests: Iterable[Manifest], documents: Iterable[Body]) -> tuple[Node, ...] | None:
    """All nodes that are ready and take pods; None where nothing says which nodes there are."""
    found: list[Node] = []
    given = False
    for body in documents:
        given = True
        found += inventory(body)
    for manifest in manifests:
        if (manifest.kind, manifest.api_version) == ("Node", "v1"):
            given = True
            if _schedulable(manifest.body):
                found.append(_node(manifest.body))
    return tuple({node.name: node for node in found}.values()) if given else None


def inventory(document: Body) -> Iterator[Node]:
    """The nodes of one inventory document."""
    if text(document, "kind") == "NodePool":
        spec = mapping(document, "spec")
        yield from _pool({**spec, "name": text(document, "metadata", "name"), "nodes": spec.get("count")})
    for pool in rows(document, "pools"):
        yield from _pool(pool)


def _document(content: object) -> Body:
    try:
        loaded: Any = yaml_rs.loads(content, parse_datetime=False) if isinstance(content, str) else None
    except ValueError:
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _pool(pool: Body) -> Iterator[Node]:
    name = text(pool, "name")
    common = labels(pool, "labels")
    tainted = taints(pool, "taints")
    offered = {PODS: _PODS} | amounts(resources(pool, "allocatable"))
    places = rows(pool, "places") or [{"nodes": whole(pool, "nodes") or 0}]
    index = 0
    for place in places:
        for _ in range(min(whole(place, "nodes") or 0, _MOST_NODES - index)):
            node = f"{name}-{index}"
            yield Node(node, {HOSTNAME: node, **common, **labels(place, "labels")}, tainted, offered)
            index += 1


def _schedulable(body: Body) -> bool:
    """Ready and not cordoned, as kueue v0.17.0 pkg/cache/scheduler/tas_nodes_cache.go asks."""
    conditions = {text(c, "type"): text(c, "status") for c in reversed(rows(body, "status", "conditions"))}
    return mapping(body, "spec").get("unschedulable") is not True and conditions.get("Ready") == "True"


def _node(body: Body) -> Node:
    offered: Amounts = amounts(resources(body, "status", "allocatable"))
    return Node(
        text(body, "metadata", "name"), labels(body, "metadata", "labels"), taints(body, "spec", "taints"), offered
    )
