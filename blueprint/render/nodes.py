"""What the kubelet of a GPU node must be told: a file on the nodes, so no object, and Argo CD never sees it."""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.render.emit import emit
from blueprint.render.site import Site


def files(site: Site) -> Iterator[tuple[str, str]]:
    """One drop-in for each pool with GPUs that wants `singleNumaNode`: path below the cluster's folder, and text.

    With policy `single-numa-node` a pod that asks for whole CPUs starts only where its CPUs and GPUs share a NUMA node
    (kubernetes v1.35.4 pkg/kubelet/cm/topologymanager). The CPU manager must be `static`, or there is nothing to align.
    """
    for pool in site.cluster.spec.node_pools:
        if pool.gpus is not None and pool.single_numa_node:
            body = site.templates.render("KubeletConfiguration", source=site.document.source)
            yield f"node-files/kubelet-{pool.name}.yaml", emit(body)
