"""backupHash reads what Velero writes: names, fields and phases are those of Velero's own source and CRDs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from blueprint.attest.backup_evidence import _PAIRS, _place
from blueprint.catalog.schemas import SchemaPack
from blueprint.conform import modules
from tests.attest.deployment import BACKUP, Deployment

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def velero() -> Path:
    """The source of the pinned Velero."""
    return modules.folder("github.com/vmware-tanzu/velero", "crds")


def test_the_store_that_we_read_is_laid_out_by_velero(velero: Path, tmp_path: Path) -> None:
    source = (velero / "pkg/persistence/object_store_layout.go").read_text("utf-8")
    plain = re.findall(r'subdirs\["backups"\], backup, "([^"]+)"', source)
    named = re.findall(r'subdirs\["backups"\], backup, fmt\.Sprintf\("%s([^"]+)", backup\)', source)
    keys = {*plain, *(f"{BACKUP}{end}" for end in named)}
    assert len(keys) > 10
    deployment = Deployment(tmp_path)
    deployment.write_store()
    ours = {file.name for file in (tmp_path / "backups" / BACKUP).iterdir()}
    assert ours - keys == set()
    needed = {"velero-backup.json", *(f"{BACKUP}{end}" for end in (".tar.gz", "-resource-list.json.gz"))}
    assert needed | {f"{BACKUP}-volumeinfo.json.gz"} <= ours
    constants = (velero / "pkg/apis/velero/v1/constants.go").read_text("utf-8")
    for name, text in (
        ("ResourcesDir", "resources"),
        ("NamespaceScopedDir", "namespaces"),
        ("ClusterScopedDir", "cluster"),
    ):
        assert re.search(rf'{name}\s+= "{text}"', constants)
    archive = (velero / "pkg/archive/filesystem.go").read_text("utf-8")
    path = 'ResourcesDir, groupResource, versionPath, GetScopeDir(namespace), namespace, name+".json")'
    assert path in archive
    assert [_place(name) for name in deployment.members] == [
        ("", "", ""),
        ("pods", "team-a", "chat-0"),
        ("persistentvolumeclaims", "team-a", "models"),
    ]


def test_results_are_told_in_veleros_words(velero: Path) -> None:
    result = (velero / "pkg/util/results/result.go").read_text("utf-8")
    assert set(re.findall(r'json:"(\w+),', result)) == {"velero", "cluster", "namespaces"}
    controller = (velero / "pkg/controller/backup_controller.go").read_text("utf-8")
    assert re.search(r'"warnings":\s+backupWarnings,\s+"errors":\s+backupErrors,', controller)


def test_what_became_of_volumes_is_told_in_veleros_words(velero: Path, tmp_path: Path) -> None:
    source = (velero / "internal/volume/volumes_information.go").read_text("utf-8")
    struct = source.partition("type BackupVolumeInfo struct {")[2].partition("\n}")[0]
    fields = set(re.findall(r'json:"(\w+)', struct))
    (row,) = Deployment(tmp_path).volumes
    assert row.keys() <= fields
    results = re.findall(r'^\s*VolumeResult\w+\s+VolumeResult = "(\w+)"', source, re.MULTILINE)
    assert set(results) == {"succeeded", "failed"}


def test_labels_and_annotations_of_uploads(velero: Path) -> None:
    said = "".join(file.read_text("utf-8") for file in velero.glob("pkg/**/*.go") if "_test" not in file.name)
    for text in ('"velero.io/pvc-name"', '"velero.io/backup-name"'):
        assert text in said


def test_the_status_that_we_read_is_in_the_crds() -> None:
    pack = SchemaPack.shipped()

    def fields(kind: str, *path: str, version: str = "velero.io/v1") -> dict[str, Any]:
        found = pack.kind(version, kind)
        assert found is not None
        schema: dict[str, Any] = found.schema
        for step in path:
            schema = schema["properties"][step]
        return dict(schema["properties"])

    status = fields("Backup", "status")
    counted = {name for pair in _PAIRS for name in pair} | {"errors", "backupItemOperationsFailed"}
    assert (
        counted | {"warnings", "phase", "completionTimestamp", "expiration", "progress", "validationErrors"}
        <= status.keys()
    )
    assert "snapshotID" not in status
    assert {"Completed", "PartiallyFailed", "Failed"} <= set(status["phase"]["enum"])
    assert fields("Backup", "status", "progress").keys() >= {"itemsBackedUp", "totalItems"}
    assert fields("BackupStorageLocation", "status").keys() >= {"phase", "lastValidationTime"}
    for kind, version in (("PodVolumeBackup", "velero.io/v1"), ("DataUpload", "velero.io/v2alpha1")):
        assert fields(kind, "status", "progress", version=version).keys() >= {"bytesDone", "totalBytes"}
    assert fields("DataUpload", "spec", version="velero.io/v2alpha1").keys() >= {"sourcePVC", "sourceNamespace"}
