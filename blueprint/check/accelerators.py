"""Which GPU a pod can get: by the labels of nodes it asks for, by the resource's name, or by its queue's flavors.

Source: gpu-feature-discovery's labels nvidia.com/gpu.product and nvidia.com/gpu.replicas; the resources of
k8s-device-plugin (mig-<profile>, gpu.shared).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from blueprint.catalog.facts import Gpu, gpus, product
from blueprint.check.graph import Graph
from blueprint.check.pods import PodTemplate
from blueprint.check.shapes import Body, items, mapping, maps, text
from blueprint.finding import Ref
from blueprint.objects import Manifest

PRODUCT = "nvidia.com/gpu.product"
REPLICAS = "nvidia.com/gpu.replicas"
_QUEUE = "kueue.x-k8s.io/queue-name"
_MIG = "nvidia.com/mig-"


@dataclass(frozen=True, slots=True)
class Device:
    """One device that a pod may get: the GPU, the memory of it (MiB), and how many pods share it (1: none other)."""

    gpu: Gpu
    memory_mib: int
    sharers: int = 1

    @property
    def name(self) -> str:
        """The product, and the memory where it is a slice."""
        whole = self.memory_mib == self.gpu.memory_mib
        return self.gpu.name if whole else f"{self.memory_mib // 1024} GiB of {self.gpu.name}"


def devices(graph: Graph, manifest: Manifest, pod: PodTemplate, resources: Iterable[str]) -> tuple[Device, ...]:
    """Every device that the pod can be given, () where that is not known.

    The pod's own node selector and required affinity come first, then the flavors of its queue.
    """
    asked = [name for name in resources if name.startswith("nvidia.com/")]
    if len(asked) != 1:
        return ()
    places = list(_by_nodes(pod.spec)) or list(_by_queue(graph, manifest, pod, asked[0]))
    found: list[Device] = []
    for labels in places:
        device = _device(asked[0], labels)
        if device is None:
            return ()
        found.append(device)
    return tuple(found) or tuple(_by_profile(asked[0]))


def _device(resource: str, labels: Mapping[str, str]) -> Device | None:
    known = product(labels.get(PRODUCT, ""))
    if known is None:
        return None
    profile = known.gpu.profile(resource.removeprefix(_MIG)) if resource.startswith(_MIG) else known.profile
    if resource.startswith(_MIG) and profile is None:
        return None
    memory = profile.memory_gb * 1024 if profile else known.gpu.memory_mib
    shared = known.shared or resource.endswith(".shared")
    replicas = labels.get(REPLICAS, "")
    return Device(known.gpu, memory, int(replicas) if replicas.isdigit() and int(replicas) else 2 if shared else 1)


def _by_profile(resource: str) -> Iterator[Device]:
    """What a MIG resource can be on any GPU that has the profile."""
    if resource.startswith(_MIG):
        for gpu in gpus():
            if profile := gpu.profile(resource.removeprefix(_MIG)):
                yield Device(gpu, profile.memory_gb * 1024)


def _by_nodes(spec: Body) -> Iterator[Mapping[str, str]]:
    """The labels of nodes that the pod insists on, one map for each product it allows."""
    selector = {str(key): text(value) for key, value in mapping(spec.get("nodeSelector")).items()}
    if PRODUCT in selector:
        yield selector
        return
    node = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    required = mapping(node.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = maps(required.get("nodeSelectorTerms"))
    allowed: list[str] = []
    for term in terms:
        rows = [
            row
            for row in maps(term.get("matchExpressions"))
            if row.get("key") == PRODUCT and row.get("operator") == "In"
        ]
        if not rows:
            return
        allowed += [text(value) for value in items(rows[0].get("values"))]
    for value in allowed:
        yield {**selector, PRODUCT: value}


def _by_queue(graph: Graph, manifest: Manifest, pod: PodTemplate, resource: str) -> Iterator[Mapping[str, str]]:
    """The node labels of the flavors through which the pod's queue gives the resource."""
    labels = {**mapping(mapping(manifest.body.get("metadata")).get("labels")), **mapping(pod.metadata.get("labels"))}
    queue = graph.get(Ref("kueue.x-k8s.io", "LocalQueue", manifest.ref.namespace, text(labels.get(_QUEUE))))
    if queue is None:
        return
    name = text(mapping(queue.body.get("spec")).get("clusterQueue"))
    cluster = graph.get(Ref("kueue.x-k8s.io", "ClusterQueue", "", name))
    for group in maps(mapping(cluster.body.get("spec")).get("resourceGroups")) if cluster else ():
        if resource not in items(group.get("coveredResources")):
            continue
        for flavor in maps(group.get("flavors")):
            found = graph.get(Ref("kueue.x-k8s.io", "ResourceFlavor", "", text(flavor.get("name"))))
            given = mapping(mapping(found.body.get("spec")).get("nodeLabels")) if found else {}
            yield {str(key): text(value) for key, value in given.items()}
