"""backupHash: a backup that could be restored, by what Velero says of it and by what lies in the object store.

`Completed` alone says little: a backup of metadata, or one that skipped every volume, completes (velero issue 6212).
The API has no hash of the contents, and no `status.snapshotID`; only the store has bytes, and they are hashed here.
Source: github.com/vmware-tanzu/velero v1.18.3 pkg/apis/velero/v1/backup_types.go,
pkg/persistence/object_store_layout.go, internal/volume/volumes_information.go.
"""

from __future__ import annotations

import gzip
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from blueprint.attest.backup_scope import bare, holds_namespace, narrowed
from blueprint.attest.engines import gone
from blueprint.attest.evidence import AHEAD, Body, Window, World, count, moment, written
from blueprint.attest.filelist import canonical
from blueprint.check.shapes import items, mapping
from blueprint.objects import Manifest

GROUP: Final = "velero.io"
NAMESPACE: Final = "velero"
"""Where Velero runs: what lies in other namespaces is not Velero's, whatever it is called."""
_PAIRS: Final = (
    ("volumeSnapshotsAttempted", "volumeSnapshotsCompleted"),
    ("csiVolumeSnapshotsAttempted", "csiVolumeSnapshotsCompleted"),
    ("backupItemOperationsAttempted", "backupItemOperationsCompleted"),
)
_OBJECT: Final = 4 * 2**20
"""Bytes of one object in an archive: more than etcd takes."""
_LARGEST: Final = 256 * 2**20
"""Bytes of unpacked JSON from the store."""


@dataclass(frozen=True, slots=True)
class BackupEvidence:
    """The hash, what it is over, and when the backup was complete."""

    sha256: str
    document: dict[str, Any]
    completed: datetime | None


def backup_evidence(
    world: World, window: Window, name: str = "", store: Path | None = None, tree: World | None = None
) -> BackupEvidence:
    """Judge one backup, by default the newest; reasons to refuse go to `world`.

    `store` is the bucket, with its prefix, as a folder: mounted, or copied. Without it only what the API says is
    judged, and the evidence says so. What a backup leaves out must be what a Schedule of the `tree` leaves out.
    """
    backup = _chosen(world, name)
    if backup is None:
        world.refuse("CRE201", f"there is no backup {name}".rstrip())
        return BackupEvidence(sha256(b"").hexdigest(), {}, None)
    status, spec = mapping(backup.body.get("status")), mapping(backup.body.get("spec"))
    completed = _status(backup, status, world, window)
    location = _location(backup, spec, world, window)
    narrowed(backup, tree or World(), world)
    objects: list[dict[str, Any]] = []
    volumes: dict[tuple[str, str], str] = {}
    if store is not None:
        objects = _stored(backup, store, volumes, world)
    _volumes(backup, spec, volumes, world)
    document = {
        "level": "status" if store is None else "store",
        "name": backup.ref.name,
        "uid": str(mapping(backup.body.get("metadata")).get("uid") or ""),
        "phase": str(status.get("phase") or ""),
        "startTimestamp": status.get("startTimestamp"),
        "completionTimestamp": status.get("completionTimestamp"),
        "expiration": status.get("expiration"),
        "storageLocation": location,
        "items": count(mapping(status.get("progress")).get("itemsBackedUp")),
        "counters": {key: count(status.get(key)) for pair in _PAIRS for key in pair},
        "objects": objects,
    }
    return BackupEvidence(sha256(canonical(document)).hexdigest(), document, completed)


def _chosen(world: World, name: str) -> Manifest | None:
    own = (backup for backup in world.all(GROUP, "Backup") if backup.ref.namespace == NAMESPACE)
    found = [backup for backup in own if not name or backup.ref.name == name]
    return max(
        found, key=lambda backup: str(mapping(backup.body.get("status")).get("startTimestamp") or ""), default=None
    )


def _status(backup: Manifest, status: Body, world: World, window: Window) -> datetime | None:
    name, phase = backup.ref.name, status.get("phase")
    if gone(backup):
        world.refuse("CRE201", f"backup {name} is being deleted")
    if phase != "Completed":
        reason = status.get("failureReason") or ", ".join(map(str, items(status.get("validationErrors"))))
        world.refuse("CRE201", f"backup {name} is {phase or 'in no phase'}" + (f": {reason}" if reason else ""))
    for attempted, done in _PAIRS:
        if count(status.get(attempted)) != count(status.get(done)):
            message = f"backup {name}: {attempted} {count(status.get(attempted))}, {done} {count(status.get(done))}"
            world.refuse("CRE202", message)
    for key in ("errors", "warnings", "backupItemOperationsFailed"):
        if number := count(status.get(key)):
            world.refuse("CRE202", f"backup {name} has {key} {number}")
    progress = mapping(status.get("progress"))
    if not count(progress.get("itemsBackedUp")):
        world.refuse("CRE203", f"backup {name} holds nothing")
    elif count(progress.get("itemsBackedUp")) < count(progress.get("totalItems")):
        world.refuse("CRE202", f"backup {name} has {progress['itemsBackedUp']} of {progress['totalItems']} items")
    completed, expires = moment(status.get("completionTimestamp")), moment(status.get("expiration"))
    if completed is None:
        world.refuse("CRE207", f"backup {name} was complete at a time that nobody knows")
    elif completed > window.now + AHEAD:
        world.refuse("CRE207", f"backup {name} is of the future ({written(completed)})")
    elif window.now - completed > window.backup:
        world.refuse("CRE207", f"backup {name} was complete at {written(completed)}, more than {window.backup} ago")
    if expires is None:
        world.refuse("CRE207", f"backup {name} expires at a time that nobody knows")
    elif expires <= window.now:
        world.refuse("CRE207", f"backup {name} expired at {written(expires)}")
    return completed


def _location(backup: Manifest, spec: Body, world: World, window: Window) -> str:
    name = str(spec.get("storageLocation") or "default")
    location = world.named(GROUP, "BackupStorageLocation", name, backup.ref.namespace)
    if location is None:
        world.refuse("CRE205", f"the storage location {name} is not in the cluster")
        return name
    status = mapping(location.body.get("status"))
    seen = moment(status.get("lastValidationTime"))
    if gone(location):
        world.refuse("CRE205", f"the storage location {name} is being deleted")
    elif status.get("phase") != "Available":
        world.refuse("CRE205", f"the storage location {name} is {status.get('phase') or 'in no phase'}")
    elif seen is None or window.now - seen > window.store:
        when = written(seen) if seen else "never"
        world.refuse("CRE205", f"the storage location {name} was last seen {when}")
    elif seen > window.now + AHEAD:
        world.refuse("CRE205", f"the storage location {name} was last seen in the future ({written(seen)})")
    return name


def _stored(backup: Manifest, store: Path, volumes: dict[tuple[str, str], str], world: World) -> list[dict[str, Any]]:
    """Hash what the store has of a backup, and read from it what became of each volume."""
    name = backup.ref.name
    folder = store / "backups" / name
    if "/" in name or name in (".", ".."):
        world.refuse("CRE206", f"{name!r} is no name of a backup")
        return []
    if links := sorted(file.name for file in folder.glob("*") if not file.is_file() or file.is_symlink()):
        world.refuse("CRE206", f"the store has {', '.join(links)}, which no bucket holds")
        return []
    if not folder.is_dir():
        world.refuse("CRE206", f"the store has no folder backups/{name}")
        return []
    needed = [f"{name}{end}" for end in (".tar.gz", "-resource-list.json.gz", "-volumeinfo.json.gz", "-results.gz")]
    needed.append("velero-backup.json")
    for file in needed:
        if not (folder / file).is_file():
            world.refuse("CRE206", f"the store lacks backups/{name}/{file}")
    if (folder / f"{name}.tar.gz").is_file():
        _contents(folder / f"{name}.tar.gz", world)
    resources = _json(folder / f"{name}-resource-list.json.gz", world)
    if resources is not None and not any(items(rows) for rows in mapping(resources).values()):
        world.refuse("CRE203", f"backup {name} lists no resource")
    for info in items(_json(folder / f"{name}-volumeinfo.json.gz", world)):
        row = mapping(info)
        result = "skipped" if row.get("skipped") else str(row.get("result") or "unknown")
        volumes[str(row.get("pvcNamespace") or ""), str(row.get("pvcName") or "")] = result
        if result == "failed":
            world.refuse("CRE208", f"the volume of {row.get('pvcNamespace')}/{row.get('pvcName')} failed")
    _copies(folder / f"{name}-podvolumebackups.json.gz", backup, world)
    _listed(backup, mapping(resources), world)
    _results(folder / f"{name}-results.gz", world)
    _kept(folder / "velero-backup.json", backup, world)
    return [
        {"key": f"backups/{name}/{file.name}", "size": file.stat().st_size, "sha256": _digest(file)}
        for file in sorted(folder.iterdir())
        if file.is_file()
    ]


def _copies(file: Path, backup: Manifest, world: World) -> None:
    """Copies of volumes by the node agent: a new cluster knows of them by this file alone (velero v1.18.3
    pkg/controller/backup_sync_controller.go), and restores no data of the others.
    """
    here = {
        each.ref.name
        for each in world.all(GROUP, "PodVolumeBackup")
        if mapping(each.body.get("metadata", {}).get("labels")).get("velero.io/backup-name") == backup.ref.name
        and each.ref.namespace == NAMESPACE
    }
    if not here:
        return
    told = {mapping(mapping(row).get("metadata")).get("name") for row in items(_json(file, world))}
    if missing := sorted(here - told):
        world.refuse("CRE206", f"{file.name} of the store does not tell of PodVolumeBackup {', '.join(missing)}")


def _kept(file: Path, backup: Manifest, world: World) -> None:
    """The backup as Velero wrote it beside the data: what the API says may have been written since, by anybody."""
    kept = _json(file, world)
    if kept is None:
        return
    name, own = backup.ref.name, mapping(kept)
    if mapping(own.get("metadata")).get("uid") != mapping(backup.body.get("metadata")).get("uid"):
        world.refuse("CRE206", f"the store's backup {name} has another UID: it is another backup")
        return
    if bare(own.get("spec")) != bare(backup.body.get("spec")):
        world.refuse("CRE206", f"the store's backup {name} was made by another spec than the API tells")
    told, said = mapping(own.get("status")), mapping(backup.body.get("status"))
    for key in ("phase", "completionTimestamp", "errors", "warnings"):
        if (told.get(key) or None) != (said.get(key) or None):
            message = f"the store's backup {name} has {key} {told.get(key)}, and the API tells {said.get(key)}"
            world.refuse("CRE206", message)


def _results(file: Path, world: World) -> None:
    """Errors and warnings by place (velero pkg/util/results.Result), whatever the counters of the status say."""
    for kind, told in mapping(_json(file, world)).items():
        found = mapping(told)
        spaces = mapping(found.get("namespaces")).values()
        if any(items(found.get(key)) for key in ("velero", "cluster")) or any(items(space) for space in spaces):
            world.refuse("CRE202", f"{file.name} tells of {kind}")


def _listed(backup: Manifest, resources: Mapping[str, Any], world: World) -> None:
    """Every bound claim must be among what was backed up, not only its data: a volume without a claim is nobody's."""
    named = set(map(str, items(resources.get("v1/PersistentVolumeClaim"))))
    for claim in world.all("", "PersistentVolumeClaim"):
        bound = mapping(claim.body.get("status")).get("phase") == "Bound"
        if bound and f"{claim.ref.namespace}/{claim.ref.name}" not in named:
            where = f"{claim.ref.namespace}/{claim.ref.name}"
            world.refuse("CRE210", f"backup {backup.ref.name} does not list the claim {where}")


def _contents(file: Path, world: World) -> None:
    """A tar that cannot be read to its end, or that holds no resource, restores nothing; nor one of another cluster.

    Velero brings the backups of every cluster that writes into the bucket: only the UIDs in it tell whose one is.
    """
    own = {("namespaces", "", each.ref.name): _uid(each.body) for each in world.all("", "Namespace")}
    claims = world.all("", "PersistentVolumeClaim")
    own |= {("persistentvolumeclaims", each.ref.namespace, each.ref.name): _uid(each.body) for each in claims}
    empty = True
    try:
        with tarfile.open(file, "r|gz") as archive:
            for member in archive:
                if not member.name.startswith("resources/") or not member.isfile():
                    continue
                empty = False
                if uid := own.get(_place(member.name)):
                    found = archive.extractfile(member)
                    body = json.loads(found.read(_OBJECT)) if found else None
                    if _uid(mapping(body)) != uid:
                        words = f"{file.name} holds another {member.name}: it is of another cluster, or of before"
                        world.refuse("CRE206", words)
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, RecursionError):
        world.refuse("CRE206", f"{file.name} cannot be read")
        return
    if empty:
        world.refuse("CRE203", f"{file.name} holds no resource")


def _place(member: str) -> tuple[str, str, str]:
    """Plural, namespace and name of an object in the archive (velero pkg/archive/filesystem.go `GetItemFilePath`)."""
    match member.split("/"):
        case ["resources", plural, "cluster", name]:
            return plural, "", name.removesuffix(".json")
        case ["resources", plural, "namespaces", namespace, name]:
            return plural, namespace, name.removesuffix(".json")
    return "", "", ""


def _uid(body: Body) -> str:
    return str(mapping(body.get("metadata")).get("uid") or "")


def _json(file: Path, world: World) -> Any:  # noqa: ANN401 - JSON
    if not file.is_file():
        return None
    try:
        if file.suffix != ".gz":
            return json.loads(file.read_bytes())
        with gzip.open(file) as stream:
            data = stream.read(_LARGEST + 1)
        return json.loads(data) if len(data) <= _LARGEST else _too_large(file, world)
    except (OSError, EOFError, ValueError, zlib.error, RecursionError):
        world.refuse("CRE206", f"{file.name} cannot be read")
        return None


def _too_large(file: Path, world: World) -> None:
    world.refuse("CRE206", f"{file.name} is larger than {_LARGEST // 2**20} MiB")


def _volumes(backup: Manifest, spec: Body, stored: dict[tuple[str, str], str], world: World) -> None:
    """Every bound claim in the backup's namespaces needs a copy of its data: by the store, or by an upload."""
    uploads = set(_uploads(backup, world))
    for claim in world.all("", "PersistentVolumeClaim"):
        namespace, name = claim.ref.namespace, claim.ref.name
        if mapping(claim.body.get("status")).get("phase") != "Bound":
            continue
        if not holds_namespace(spec, namespace):
            world.refuse("CRE209", f"backup {backup.ref.name} leaves out the namespace {namespace} of claim {name}")
            continue
        result = "succeeded" if (namespace, name) in uploads else stored.get((namespace, name), "unknown")
        if result not in ("succeeded", "failed"):
            world.refuse("CRE204", f"nothing says that the data of claim {namespace}/{name} was copied ({result})")


def _uploads(backup: Manifest, world: World) -> Iterator[tuple[str, str]]:
    """(namespace, claim) of completed uploads of this backup with all their bytes; a reason for each that is not."""
    for upload in world.all(GROUP, "PodVolumeBackup", "DataUpload"):
        meta, status = mapping(upload.body.get("metadata")), mapping(upload.body.get("status"))
        of = mapping(meta.get("labels")).get("velero.io/backup-name")
        if of != backup.ref.name or upload.ref.namespace != NAMESPACE:
            continue
        spec, progress = mapping(upload.body.get("spec")), mapping(status.get("progress"))
        claim = mapping(meta.get("annotations")).get("velero.io/pvc-name") or spec.get("sourcePVC")
        space = mapping(spec.get("pod")).get("namespace") or spec.get("sourceNamespace")
        if gone(upload):
            world.refuse("CRE208", f"{upload.kind} {upload.ref.name} is being deleted")
        elif status.get("phase") != "Completed":
            world.refuse("CRE208", f"{upload.kind} {upload.ref.name} is {status.get('phase') or 'in no phase'}")
        elif count(progress.get("bytesDone")) != count(progress.get("totalBytes")):
            done, total = count(progress.get("bytesDone")), count(progress.get("totalBytes"))
            world.refuse("CRE208", f"{upload.kind} {upload.ref.name} has {done} of {total} bytes")
        else:
            yield str(space), str(claim)


def _digest(file: Path) -> str:
    digest = sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
