"""Everything that a decision depends on, looked up by name: anybody's objects, read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from blueprint.admission.amounts import Resources, resources
from blueprint.admission.body import Body, at, labels, rows, text, whole
from blueprint.admission.nodes import Node, find_nodes, inventories
from blueprint.admission.queues import (
    GROUP,
    ClusterQueue,
    Cohort,
    Flavor,
    LocalQueue,
    cluster_queue,
    cohort,
    flavor,
    local_queue,
)
from blueprint.admission.settings import DEFAULT_VERSION, Settings, find_settings
from blueprint.objects import Manifest

_T = TypeVar("_T")
_RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")

KINDS = frozenset(
    {
        *("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Topology", "AdmissionCheck"),
        *("WorkloadPriorityClass", "PriorityClass", "ProvisioningRequestConfig", "MultiKueueConfig", *_RUNTIMES),
        *("Namespace", "LimitRange", "RuntimeClass", "DeviceClass", "ResourceClaimTemplate", "Node", "List"),
        *("Configuration", "ConfigMap", "Inventory", "NodePool"),
    }
)
"""Every kind that `world` reads."""


@dataclass(frozen=True, slots=True)
class World:
    """The objects by name. `nodes` is None where nothing says which nodes there are.

    Of two objects of one name the later one counts, as when both are applied.
    """

    manifests: tuple[Manifest, ...]
    settings: Settings
    nodes: tuple[Node, ...] | None
    queues: Mapping[str, ClusterQueue]
    cohorts: Mapping[str, Cohort]
    local_queues: Mapping[tuple[str, str], LocalQueue]
    flavors: Mapping[str, Flavor]
    topologies: Mapping[str, tuple[str, ...]]
    checks: Mapping[str, Manifest]
    classes: Mapping[str, int]
    pod_classes: Mapping[str, Manifest]
    namespaces: Mapping[str, Mapping[str, str]]
    limit_ranges: Mapping[str, tuple[Manifest, ...]]
    overheads: Mapping[str, Resources]
    named: Mapping[tuple[str, str, str], Body]
    extended: Mapping[str, tuple[str, ...]]

    def find(self, kind: str, namespace: str, name: str) -> Body | None:
        """A runtime, claim template or configuration by kind, namespace and name."""
        return self.named.get((kind, namespace, name))


def world(manifests: Iterable[Manifest], aside: Iterable[Manifest] = (), kueue: str = "") -> World:
    """Read the objects.

    `aside` are documents that are no Kubernetes objects: Kueue's configuration as a file, inventories. `kueue` is its
    version; without it that of the inventory, else the one that the rules here were read from.
    """
    everything = tuple(manifests)
    files = tuple(aside)
    documents = inventories(everything, (each.body for each in files))
    release = kueue or next((name for each in documents if (name := text(each, "kueue"))), DEFAULT_VERSION)
    by_kind: dict[str, list[Manifest]] = {}
    for manifest in everything:
        key = f"{manifest.kind}.{manifest.ref.group}" if manifest.ref.group else manifest.kind
        by_kind.setdefault(key, []).append(manifest)

    def read(kind: str, reader: Callable[[Manifest], _T]) -> dict[str, _T]:
        return {manifest.ref.name: reader(manifest) for manifest in by_kind.get(kind, ())}

    ranges: dict[str, list[Manifest]] = {}
    for manifest in by_kind.get("LimitRange", ()):
        ranges.setdefault(manifest.ref.namespace or "default", []).append(manifest)
    extended: dict[str, list[str]] = {}
    for manifest in by_kind.get("DeviceClass.resource.k8s.io", ()):
        if name := text(manifest.body, "spec", "extendedResourceName"):
            extended.setdefault(name, []).append(manifest.ref.name)
    named_kinds = (
        *(f"{kind}.trainer.kubeflow.org" for kind in _RUNTIMES),
        "ResourceClaimTemplate.resource.k8s.io",
        f"ProvisioningRequestConfig.{GROUP}",
        f"MultiKueueConfig.{GROUP}",
    )
    return World(
        manifests=everything,
        settings=find_settings((*files, *everything), release),
        nodes=find_nodes(everything, documents),
        queues=read(f"ClusterQueue.{GROUP}", cluster_queue),
        cohorts=read(f"Cohort.{GROUP}", cohort),
        local_queues={
            (manifest.ref.namespace or "default", manifest.ref.name): local_queue(manifest)
            for manifest in by_kind.get(f"LocalQueue.{GROUP}", ())
        },
        flavors=read(f"ResourceFlavor.{GROUP}", flavor),
        topologies=read(
            f"Topology.{GROUP}", lambda m: tuple(text(row, "nodeLabel") for row in rows(m.body, "spec", "levels"))
        ),
        checks=read(f"AdmissionCheck.{GROUP}", lambda m: m),
        classes=read(f"WorkloadPriorityClass.{GROUP}", lambda m: whole(m.body, "value") or 0),
        pod_classes=read("PriorityClass.scheduling.k8s.io", lambda m: m),
        namespaces=read(
            "Namespace",
            lambda m: {**labels(m.body, "metadata", "labels"), "kubernetes.io/metadata.name": m.ref.name},
        ),
        limit_ranges={namespace: tuple(found) for namespace, found in ranges.items()},
        overheads=read("RuntimeClass.node.k8s.io", lambda m: resources(m.body, "overhead", "podFixed")),
        named={
            (manifest.kind, _scope(manifest), manifest.ref.name): manifest.body
            for kind in named_kinds
            for manifest in by_kind.get(kind, ())
        },
        extended={name: tuple(sorted(found)) for name, found in extended.items()},
    )


def _scope(manifest: Manifest) -> str:
    namespaced = manifest.kind in ("TrainingRuntime", "ResourceClaimTemplate")
    return (manifest.ref.namespace or "default") if namespaced else ""


def default_priority(found: World) -> int:
    """The priority of pods without a class: the lowest of the global defaults, 0 without one."""
    values = [
        whole(manifest.body, "value") or 0
        for manifest in found.pod_classes.values()
        if at(manifest.body, "globalDefault") is True
    ]
    return min(values, default=0)
