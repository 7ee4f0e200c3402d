"""What rendered objects name and the plan does not bring: it stands in the cluster already."""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.finding import Ref
from blueprint.render.site import Site

GATEKEEPER = "gatekeeper-system"

#: Namespaces that the installation of a component makes.
COMPONENT_NAMESPACES = ("kueue-system", GATEKEEPER, "kyverno", "velero", "keda", "istio-ingress")


def outside(site: Site) -> frozenset[Ref]:
    """Objects that a rendered object may name without anybody rendering them."""
    return frozenset(_all(site))


def _all(site: Site) -> Iterator[Ref]:
    spec = site.cluster.spec
    for namespace in (*COMPONENT_NAMESPACES, spec.monitoring.namespace, site.delivery.model.spec.namespace):
        yield Ref("", "Namespace", "", namespace)
    for storage_class in (spec.storage.block, spec.storage.shared):
        yield Ref("storage.k8s.io", "StorageClass", "", storage_class)
    for document in site.platform.training_on(site.name):
        team = site.platform.team(document.model.spec.team)
        for data in document.model.spec.datasets:
            if team is not None and data.size is None:
                yield Ref("", "PersistentVolumeClaim", team.model.namespace, data.claim)
