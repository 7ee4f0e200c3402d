"""Velero: where backups go, and the daily one of what tenants and the platform hold.

Git holds what was asked for; a backup is for what it does not hold: volumes, and objects that people made by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from blueprint.quantity import parse_quantity
from blueprint.render.emit import emit
from blueprint.render.names import name
from blueprint.render.plan import Item
from blueprint.render.site import MANAGED_BY, Site
from blueprint.spec.cluster import Backup

APPLICATION: Final = "backup"
NAMESPACE: Final = "velero"

#: Decisions and reports of controllers: restored, they would hold quota, devices and nodes for what no longer runs.
EXCLUDED: Final = [
    "events",
    "events.events.k8s.io",
    "pods",
    "replicasets.apps",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "controllerrevisions.apps",
    "leases.coordination.k8s.io",
    "resourceclaims.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "workloads.kueue.x-k8s.io",
    "policyreports.wgpolicyk8s.io",
    "clusterpolicyreports.wgpolicyk8s.io",
    "ephemeralreports.reports.kyverno.io",
]


def items(site: Site) -> Iterator[Item]:
    """Location, rule for volumes and schedule; nothing where the cluster is not backed up or has no Velero."""
    backup = site.cluster.spec.backup
    if backup is None or site.cluster.spec.components.velero is None:
        return
    source = site.document.locate("spec.backup")
    place = name("BackupStorageLocation", "default")
    volumes = name("ConfigMap", "backup-volumes")
    yield site.item(
        APPLICATION,
        "BackupStorageLocation",
        source,
        name=place,
        namespace=NAMESPACE,
        labels=MANAGED_BY,
        provider=backup.provider,
        bucket=backup.bucket,
        prefix=site.name,
        config=_config(backup) or None,
    )
    yield site.item(
        APPLICATION,
        "ConfigMap",
        source,
        name=volumes,
        namespace=NAMESPACE,
        labels=MANAGED_BY,
        annotations=None,
        data={"policies.yaml": emit(_volumes(site, backup))},
    )
    snapshots = site.cluster.spec.storage.snapshots is not None
    yield site.item(
        APPLICATION,
        "Schedule",
        source,
        name=name("Schedule", "daily"),
        namespace=NAMESPACE,
        labels=MANAGED_BY,
        schedule=backup.schedule,
        namespaces=namespaces(site),
        # A pod is what copying files of its volumes needs; with snapshots it would only be restored half-alive.
        excluded=EXCLUDED if snapshots else [kind for kind in EXCLUDED if kind != "pods"],
        keep=_go_duration(int(backup.keep.total_seconds())),
        place=place,
        volumes=volumes,
        snapshots=snapshots,
    )


def namespaces(site: Site) -> list[str]:
    """Those of the tenants, of Argo CD and of the metrics: what a new cluster would not have from Git alone."""
    tenants = {document.model.namespace for document in site.platform.teams_on(site.name)}
    return sorted({*tenants, site.delivery.model.spec.namespace, site.cluster.spec.monitoring.namespace})


def _config(backup: Backup) -> dict[str, str]:
    """What the object store's plugin reads; a store of one's own is addressed by path, not by host name."""
    config = {"region": backup.region} if backup.region else {}
    if backup.endpoint is not None:
        config |= {"s3Url": backup.endpoint, "s3ForcePathStyle": "true"}
    return config


def _volumes(site: Site, backup: Backup) -> dict[str, object]:
    """Velero's resource policy: what it skips, however it copies the rest (velero v1.18.3 resourcepolicies)."""
    above = int(parse_quantity(backup.volumes_up_to)) + 1  # the bounds of a range belong to it
    source = site.document.locate("spec.backup")
    return site.templates.render("VolumePolicy", source=source, capacity=f"{above},")


def _go_duration(seconds: int) -> str:
    """As Go writes durations, so that what Velero writes back is no difference."""
    hours, rest = divmod(seconds, 3600)
    return f"{hours}h{rest // 60}m{rest % 60}s"
