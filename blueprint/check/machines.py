"""The nodes of a tree as rules see them: pools of an inventory, Node objects, and what is known of their GPUs.

An inventory is that of `admission.nodes`. A pool may leave `allocatable` of GPUs out and say instead

    gpu: NVIDIA-A100-SXM4-40GB      # the product label, or the name in the catalog of GPUs
    gpus: 8                         # of one node
    mig: {strategy: mixed, geometry: {1g.5gb: 7}}       # how each GPU is cut; strategy single or mixed

What a pool does not list of CPU, memory and ephemeral storage is not known, and never the reason of a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml_rs

from blueprint.admission.nodes import INVENTORY_LABEL
from blueprint.catalog.gpus import Gpu, gpu, gpus, product
from blueprint.check.graph import Graph, labels_of
from blueprint.check.shapes import Body, mapping, maps, number, text
from blueprint.objects import Manifest

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-"
PRODUCT = "nvidia.com/gpu.product"
_ENOUGH = {"cpu": "1000000", "memory": "1Ei", "ephemeral-storage": "1Ei"}


@dataclass(frozen=True, slots=True)
class Mig:
    """How each GPU of a pool is cut: instances by profile, under the strategy single or mixed ("" if not said)."""

    strategy: str
    geometry: Mapping[str, int]

    @property
    def wish(self) -> list[str]:
        """The instances one by one."""
        return [name for name, count in self.geometry.items() for _ in range(max(0, min(count, 16)))]


@dataclass(frozen=True)
class Pool:
    """Nodes of one kind. `path` is where the pool stands in its document, "" where it is the document.

    `listed` is what a node is said to offer, `gpu` the model that its labels or the pool name.
    """

    manifest: Manifest
    path: str
    name: str
    body: Body

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The labels that all nodes of the pool have."""
        return {str(k): v for k, v in mapping(self.body.get("labels")).items() if isinstance(v, str)}

    @property
    def gpus(self) -> int:
        """Whole GPUs of a node as the pool says, 0 where it does not."""
        return number(self.body.get("gpus"), 0) or 0

    @cached_property
    def gpu(self) -> Gpu | None:
        """The model, None where it is not said or not known."""
        named = text(self.body.get("gpu"))
        if named:
            return gpu(named) or by_prefix(named)
        known = product(self.labels.get(PRODUCT, ""))
        return known.gpu if known else None

    @cached_property
    def mig(self) -> Mig | None:
        """How its GPUs are cut, None where they are whole."""
        written = mapping(self.body.get("mig"))
        layout = mapping(written.get("geometry") or written.get("layout"))
        geometry = {str(name): count for name, value in layout.items() if (count := number(value))}
        strategy = text(written.get("strategy")) or self.labels.get("nvidia.com/mig.strategy", "")
        return Mig(strategy, geometry) if geometry else None

    @cached_property
    def listed(self) -> Mapping[str, Any]:
        """What a node offers, with the GPUs worked out where `allocatable` leaves them out."""
        written = mapping(self.body.get("allocatable"))
        if any(str(name).startswith("nvidia.com/") for name in written) or not self.gpus:
            return written
        if self.mig is None:
            return {**written, GPU: self.gpus}
        if self.mig.strategy == "single":
            return {**written, GPU: self.gpus * sum(self.mig.geometry.values())}
        sliced = {f"{MIG}{name.replace('+', '.')}": self.gpus * n for name, n in self.mig.geometry.items()}
        return {**written, GPU: 0, **sliced}

    def document(self) -> Body:
        """The pool for a decision: unknown amounts are more than enough."""
        return {**self.body, "name": self.name, "allocatable": {**_ENOUGH, **self.listed}}


def by_prefix(named: str) -> Gpu | None:
    """A GPU by a short name such as `A100-40`; None where several models fit that are not cut alike."""
    words = named.replace("_", "-").replace(" ", "-").lower().split("-")
    found = []
    for each in gpus():
        first, *rest = each.name.lower().split()
        if first == words[0] and all(any(have.startswith(word) for have in rest) for word in words[1:]):
            found.append(each)
    alike = {tuple(profile.name for profile in each.profiles) for each in found}
    return found[0] if len(alike) == 1 else None


def pools(graph: Graph) -> Sequence[Pool]:
    """Every pool of every inventory in the tree."""
    return graph.derived(_pools)


def _pools(graph: Graph) -> list[Pool]:
    found: list[Pool] = []
    for manifest in graph.aside:
        if manifest.kind == "NodePool":
            spec = mapping(manifest.body.get("spec"))
            nodes = spec.get("nodes", spec.get("count"))
            found.append(Pool(manifest, "spec", manifest.ref.name, {**spec, "nodes": nodes}))
        elif manifest.kind == "Inventory":
            found += _rows(manifest, manifest.body, "pools")
    for manifest in graph.kind("ConfigMap"):
        if labels_of(manifest.body).get(INVENTORY_LABEL) == "true":
            for key, content in mapping(manifest.body.get("data")).items():
                found += _rows(manifest, _parsed(content), f"data[{key}]")
    return found


def _rows(manifest: Manifest, document: Body, path: str) -> Iterator[Pool]:
    for index, row in enumerate(maps(document.get("pools"))):
        where = f"{path}[{index}]" if path == "pools" else path
        yield Pool(manifest, where, text(row.get("name")), row)


def _parsed(content: object) -> Body:
    try:
        return mapping(yaml_rs.loads(content, parse_datetime=False)) if isinstance(content, str) else {}
    except ValueError:
        return {}


def release(graph: Graph) -> str:
    """The version of Kueue that an inventory names, "" where none does."""
    documents = [m.body for m in graph.aside if m.kind == "Inventory"]
    for manifest in graph.kind("ConfigMap"):
        if labels_of(manifest.body).get(INVENTORY_LABEL) == "true":
            documents += [_parsed(content) for content in mapping(manifest.body.get("data")).values()]
    return next((name for body in documents if (name := text(body.get("kueue")))), "")


def nodes(graph: Graph) -> Sequence[Manifest]:
    """Node objects that say what they offer; one without conditions counts as ready."""
    found: list[Manifest] = []
    for manifest in graph.kind("Node"):
        status = mapping(manifest.body.get("status"))
        if not status.get("allocatable"):
            continue
        ready = {"conditions": [{"type": "Ready", "status": "True"}], **status}
        found.append(Manifest({**manifest.body, "status": ready}, manifest.source))
    return found
