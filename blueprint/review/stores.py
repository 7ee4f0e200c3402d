"""Where pods keep what they write: a claim that is no claim any more, a mount that goes, fewer replicas."""

from __future__ import annotations

from blueprint.check.pods import containers
from blueprint.check.shapes import Body, mapping, maps, text
from blueprint.objects import Manifest
from blueprint.review.diff import MISSING, Edit, Item
from blueprint.review.model import Pair, Risk
from blueprint.review.workloads import pods

Said = tuple[Risk, str]

_KEPT = ("persistentVolumeClaim", "nfs", "csi", "cephfs", "glusterfs", "iscsi", "azureFile", "awsElasticBlockStore")
"""Sources of volumes whose files outlive the pod (k8s.io/api v0.35.4 core/v1/types.go VolumeSource)."""


def volume(pair: Pair, name: str) -> Said | None:
    """A volume of a pod that kept what was written, and does so no more; or that is another one."""
    old, new = (_source(manifest, name) for manifest in (pair.old, pair.new))
    kept = next((kind for kind in _KEPT if kind in old), "")
    if not kept or old == new:
        return None
    was = text(mapping(old[kept]).get("claimName")) or kept
    if not any(kind in new for kind in _KEPT):
        if not _written(pair.old, name):
            return None
        instead = next((kind for kind in new if kind != "name"), "nothing")
        return Risk.DESTRUCTIVE, f"volume {name} is {instead} instead of {was}: what pods write there goes with them"
    if kept in new and text(mapping(new[kept]).get("claimName")) != text(mapping(old[kept]).get("claimName")):
        claim = text(mapping(new[kept]).get("claimName"))
        return Risk.TRAFFIC, f"volume {name} is claim {claim} instead of {was}: its pods find other data"
    return None


def mount(pair: Pair, edit: Edit) -> Said | None:
    """A place in a container at which a volume that is kept was mounted."""
    before, after = (_mounts(manifest) for manifest in (pair.old, pair.new))
    for (container, place), row in before.items():
        name = text(row.get("name"))
        source = _claimed(pair.old, name)
        if not source or after.get((container, place)) == row or not _about(edit, place):
            continue
        if (container, place) not in after and row.get("readOnly") is not True:
            return Risk.DESTRUCTIVE, f"{place} of {container} is no volume any more: what is written there goes with it"
        other = after.get((container, place))
        if other is not None and text(other.get("subPath")) != text(row.get("subPath")):
            return Risk.TRAFFIC, f"{place} of {container} is another folder of volume {name}: its pods find other data"
    return None


def fewer(pair: Pair, edit: Edit) -> Said | None:
    """Replicas of a StatefulSet that deletes the volumes of those that go."""
    if not (isinstance(edit.before, int) and isinstance(edit.after, int) and edit.after < edit.before):
        return None
    spec = mapping(pair.there.body.get("spec"))
    if mapping(spec.get("persistentVolumeClaimRetentionPolicy")).get("whenScaled") != "Delete":
        return None
    return (
        Risk.DESTRUCTIVE,
        f"replicas {edit.before} → {edit.after}: the volumes of those that go are deleted (whenScaled)",
    )


def _source(manifest: Manifest | None, name: str) -> Body:
    for pod in pods(manifest) if manifest else ():
        for row in maps(pod.spec.get("volumes")):
            if row.get("name") == name:
                return row
    return {}


def _claimed(manifest: Manifest | None, name: str) -> bool:
    """Whether a volume outlives its pod: a claim, or the template of one in a StatefulSet."""
    if any(kind in _source(manifest, name) for kind in _KEPT):
        return True
    spec = mapping(manifest.body.get("spec")) if manifest else {}
    return any(mapping(row.get("metadata")).get("name") == name for row in maps(spec.get("volumeClaimTemplates")))


def _mounts(manifest: Manifest | None) -> dict[tuple[str, str], Body]:
    return {
        (text(container.get("name")), text(row.get("mountPath"))): row
        for pod in (pods(manifest) if manifest else ())
        for _, container in containers(pod.spec)
        for row in maps(container.get("volumeMounts"))
    }


def _written(manifest: Manifest | None, name: str) -> bool:
    return any(row.get("name") == name and row.get("readOnly") is not True for row in _mounts(manifest).values())


def _about(edit: Edit, place: str) -> bool:
    """Whether an edit is about the mount at a place, or about all mounts of a container."""
    keys = [value for step in edit.steps if isinstance(step, Item) for _, value in step.keys]
    return place in keys or edit.after is MISSING or isinstance(edit.before, list)
