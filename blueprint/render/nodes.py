"""What the kubelet of a GPU node must be told: a file on the nodes, so no object, and Argo CD never sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from blueprint.catalog.facts import geometry, gpu, gpus
from blueprint.finding import Confidence, Finding, Severity, Source
from blueprint.render.emit import emit
from blueprint.render.site import Site
from blueprint.spec.cluster import NodePool
from blueprint.spec.nearest import nearest


def files(site: Site) -> Iterator[tuple[str, str]]:
    """One drop-in for each pool with GPUs: path below the cluster's folder, and text.

    With policy `single-numa-node` the kubelet refuses a pod whose whole CPUs and GPUs do not fit one NUMA node, with
    `best-effort` it aligns them where it can (kubernetes v1.35.4 pkg/kubelet/cm/topologymanager). The CPU manager must
    be `static`, or there is nothing to align.
    """
    for pool in site.cluster.spec.node_pools:
        if pool.gpus is not None:
            policy = "single-numa-node" if pool.single_numa_node else "best-effort"
            body = site.templates.render("KubeletConfiguration", source=site.document.source, policy=policy)
            yield f"node-files/kubelet-{pool.name}.yaml", emit(body)


def findings(site: Site) -> Iterator[Finding]:
    """What no node of a pool can be or run."""
    yield from _unknown(site)
    yield from _uncuttable(site)
    yield from _refused(site)


def _unknown(site: Site) -> Iterator[Finding]:
    """NOD103: a GPU that the catalog does not know. Nodes without that very label serve nothing of the pool.

    The label is NVML's name of the product with `-` for each blank (gpu-feature-discovery): a name of one small word is
    none, and one that differs from a known one in letters only is a slip. Any other may be a GPU newer than the table.
    """
    known = [product for each in gpus() for product in each.products]
    for index, pool in enumerate(site.cluster.spec.node_pools):
        if pool.gpus is None or pool.gpus.product in known:
            continue
        written = pool.gpus.product
        near = _meant(written, known)
        slip = "-" not in written or written == written.lower() or (near is not None and _letters(written, near))
        path = f"spec.nodePools[{index}].gpus.product"
        what = "its layout and what fits it are" if pool.gpus.mig else "what fits it is"
        message = f"the GPU {written} of {pool.name} is not known: {what} not judged"
        if slip:
            message = (
                f"no known GPU has the label {written}: nothing starts on {pool.name} without a node that bears it"
            )
        fix = f"write {near}" if near else "compare with the label nvidia.com/gpu.product of a node"
        yield Finding(
            "NOD103",
            message + (f"; did you mean {near}?" if near else ""),
            site.document.locate(path),
            Severity.WARNING if slip else Severity.NOTE,
            Confidence.LIKELY if slip else Confidence.STYLE,
            path=path,
            fix=fix,
        )


def _meant(written: str, known: Sequence[str]) -> str | None:
    """The known label that was most likely meant: one that holds every word that is written, else the most alike."""
    words = re.findall(r"[a-z0-9]+", written.lower())
    holding = [product for product in known if all(word in product.lower() for word in words)]
    return holding[0] if holding and words else nearest(written, known, cutoff=0.75)


def _letters(one: str, other: str) -> bool:
    """Whether the numbers in two labels are the same: another number is another GPU, or another memory."""
    return re.findall(r"\d+", one) == re.findall(r"\d+", other)


def _uncuttable(site: Site) -> Iterator[Finding]:
    """NOD102: a MIG layout that the GPU cannot be cut into; nothing is said of GPUs that the catalog does not know."""
    for index, pool in enumerate(site.cluster.spec.node_pools):
        mig = pool.gpus.mig if pool.gpus else None
        known = gpu(pool.gpus.product) if pool.gpus else None
        if mig is None or known is None:
            continue
        # More slices than any GPU has are too many whatever they are; the search need not see them all.
        wish = [profile for profile, number in mig.layout.items() for _ in range(min(number, known.slices + 1))]
        if problem := geometry(known, wish).problem:
            path = f"spec.nodePools[{index}].gpus.mig.layout"
            message = f"the GPUs of {pool.name} cannot be cut like this: {problem}"
            sure = Confidence.CERTAIN if known.confidence == "certain" else Confidence.LIKELY
            yield Finding("NOD102", message, site.document.locate(path), confidence=sure, path=path)


def _refused(site: Site) -> Iterator[Finding]:
    """NOD101: pods that their pool's kubelets would refuse: they want more GPUs than one NUMA node has."""
    for pool_name, wanted, who, place in _wishes(site):
        pool = site.cluster.spec.pool(pool_name)
        if pool is not None and (most := _gpus_of_numa_node(pool)) is not None and wanted > most:
            yield Finding(
                "NOD101",
                f"a pod of {who} asks for {wanted} GPUs, a NUMA node of {pool.name} has {most}: the kubelet refuses it",
                place,
                confidence=Confidence.LIKELY,
                fix=f"leave singleNumaNode out on {pool.name}, or let a pod ask for {most} GPUs at most",
            )


def _wishes(site: Site) -> Iterator[tuple[str, int, str, Source]]:
    """Pool, GPUs of one pod, whose, and where that is written."""
    for job in site.platform.training_on(site.name):
        yield job.model.spec.pool, job.model.spec.gpus, job.model.metadata.name, job.locate("spec.gpus")
    for service in site.platform.services_on(site.name):
        shape = service.model.spec.gpus
        yield shape.pool, shape.gpus_per_pod, service.model.metadata.name, service.locate("spec.gpus.tensorParallel")


def _gpus_of_numa_node(pool: NodePool) -> int | None:
    """None where the kubelet does not refuse: the policy is off, claims give no hints, or slices are counted."""
    if not pool.single_numa_node or pool.gpus is None or pool.gpus.mig or pool.devices == "dra":
        return None
    return max(1, pool.gpus.count // pool.numa_nodes)
