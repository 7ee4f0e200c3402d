"""Whether one node of a pool can hold one pod, and the pool one run: no queue and no quota changes that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blueprint.finding import Finding
from blueprint.quantity import parse_quantity
from blueprint.spec.cluster import Cluster, NodePool
from blueprint.spec.inference import InferenceService
from blueprint.spec.platform import Document, Platform
from blueprint.spec.training import TrainingJob

_Work = Document[TrainingJob] | Document[InferenceService]


def room(platform: Platform, clusters: Mapping[str, Document[Cluster]]) -> Iterator[Finding]:
    """SPC223 and SPC224: pods larger than a node of their pool, and runs larger than all of it.

    Each is said of the first cluster only.
    """
    for job in platform.training_jobs:
        spec = job.model.spec
        asks: dict[str, int | str] = {"spec.gpus": spec.gpus, "spec.cpu": spec.cpu, "spec.memory": spec.memory}
        found = list(_first(job, spec.pool, "spec.pool", asks, clusters))
        yield from found or _whole(job, clusters)
    for service in platform.services:
        shape, at = service.model.spec.gpus, "spec.gpus"
        if not service.knows(at):
            continue
        # A replica on a slice asks for one slice, and that is counted against the layout.
        gpus: dict[str, int | str] = {} if shape.profile else {f"{at}.tensorParallel": shape.gpus_per_pod}
        asked: dict[str, int | str] = {**gpus, f"{at}.cpu": shape.cpu, f"{at}.memory": shape.memory}
        yield from _first(service, shape.pool, f"{at}.pool", asked, clusters)


def _first(
    work: _Work, name: str, at: str, asks: Mapping[str, int | str], clusters: Mapping[str, Document[Cluster]]
) -> Iterator[Finding]:
    """A finding for each amount that is too much, told of the first cluster on which it is."""
    if not work.knows("spec.clusters", at):
        return
    on = [clusters[cluster] for cluster in work.model.spec.clusters if cluster in clusters]
    for path, asked in asks.items():
        what = path.rpartition(".")[2]
        for cluster in on if work.knows(path) else ():
            pool = _pool(cluster, name)
            has = _has(pool, what) if pool else None
            if has is not None and parse_quantity(asked) > parse_quantity(has):
                unit = {"cpu": "cores", "memory": "of memory"}.get(what, "GPUs")
                there = f"a node of {name} on {cluster.model.metadata.name} has {has}"
                message = f"a pod asks for {asked} {unit}, {there}"
                fix = f"ask for {has} at most, and for more pods" if unit == "GPUs" else f"ask for less than {has}"
                yield Finding("SPC223", message, work.locate(path), path=path, fix=fix)
                break


def _whole(job: Document[TrainingJob], clusters: Mapping[str, Document[Cluster]]) -> Iterator[Finding]:
    """SPC224; a pool whose nodes come on demand may have more of them than are written."""
    spec = job.model.spec
    if not job.knows("spec.clusters", "spec.pool", "spec.nodes", "spec.gpus"):
        return
    for name in spec.clusters:
        pool = _pool(clusters[name], spec.pool) if name in clusters else None
        each = _has(pool, "gpus") if pool and not pool.provisioning else None
        if pool and isinstance(each, int) and spec.nodes * spec.gpus > pool.nodes * each:
            message = f"the run asks for {spec.nodes * spec.gpus} GPUs, all {pool.nodes} nodes of {pool.name} on {name}"
            at, path = job.locate("spec.nodes"), "spec.nodes"
            fix = f"ask for {pool.nodes * each // spec.gpus} pods at most"
            yield Finding("SPC224", f"{message} have {pool.nodes * each}", at, path=path, fix=fix)
            return


def _pool(cluster: Document[Cluster], name: str) -> NodePool | None:
    """The pool of that name, if it is without mistakes."""
    for index, pool in enumerate(cluster.model.spec.node_pools):
        if pool.name == name:
            return pool if cluster.knows(f"spec.nodePools[{index}]") else None
    return None


def _has(pool: NodePool, what: str) -> int | str | None:
    """What one node offers; None where it has no whole GPUs, which other rules judge."""
    if what == "cpu":
        return pool.cpu
    if what == "memory":
        return pool.memory
    if pool.gpus is None:
        return None
    mig = pool.gpus.mig if pool.devices == "plugin" else None
    if mig and mig.strategy == "mixed":
        return None
    return pool.gpus.count * (sum(mig.layout.values()) if mig else 1)
