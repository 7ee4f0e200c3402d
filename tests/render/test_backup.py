"""Backups: where they go, what they hold, how volumes are copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.render.worlds import PLAIN, World, cluster, team

QUOTA = "[{cluster: here, pool: gpu, gpus: 2}]"
SNAPSHOTS = {"storage": "{snapshots: fast}"}


def world(folder: Path, backup: str = "{bucket: b}", **spec: str) -> World:
    return World(folder, cluster(f"[{PLAIN}]", backup=backup, **(SNAPSHOTS | spec)), team(QUOTA), team(QUOTA, "beta"))


def template(found: World) -> dict[str, Any]:
    spec: dict[str, Any] = found.get("Schedule", "daily")["spec"]["template"]
    return spec


def test_a_cluster_without_a_backup_has_nothing_of_it(tmp_path: Path) -> None:
    found = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA))
    assert not [file for file in found.cluster.files if file.application == "backup"]


def test_tenants_and_the_platform_are_saved(tmp_path: Path) -> None:
    assert template(world(tmp_path))["includedNamespaces"] == ["alpha", "argocd", "beta", "monitoring"]


def test_decisions_of_controllers_are_not(tmp_path: Path) -> None:
    excluded = template(world(tmp_path))["excludedResources"]
    assert {"workloads.kueue.x-k8s.io", "resourceclaims.resource.k8s.io", "pods"} <= set(excluded)


def test_it_is_kept_for_as_long_as_the_spec_says(tmp_path: Path) -> None:
    assert template(world(tmp_path / "a", "{bucket: b, keep: 90d}"))["ttl"] == "2160h0m0s"
    assert template(world(tmp_path / "b", "{bucket: b, keep: 1h30m5s}"))["ttl"] == "1h30m5s"


def test_argo_cd_cannot_prune_backups_by_their_owner(tmp_path: Path) -> None:
    assert world(tmp_path).get("Schedule", "daily")["spec"]["useOwnerReferencesInBackup"] is False


def test_snapshots_are_moved_into_the_bucket(tmp_path: Path) -> None:
    spec = template(world(tmp_path))
    assert (spec["snapshotVolumes"], spec["snapshotMoveData"], spec["defaultVolumesToFsBackup"]) == (True, True, False)


def test_large_volumes_are_left_out(tmp_path: Path) -> None:
    def skipped(found: World) -> str:
        data = yaml.safe_load(found.get("ConfigMap", "backup-volumes")["data"]["policies.yaml"])
        assert all(row["action"] == {"type": "skip"} for row in data["volumePolicies"])
        return str(data["volumePolicies"][0]["conditions"]["capacity"])

    assert skipped(world(tmp_path / "a")) == f"{2**40 + 1},"
    assert skipped(world(tmp_path / "b", "{bucket: b, volumesUpTo: 10Gi}")) == f"{10 * 2**30 + 1},"


def test_the_location_is_of_the_cluster(tmp_path: Path) -> None:
    spec = world(tmp_path / "a", "{bucket: b, region: r}").get("BackupStorageLocation", "default")["spec"]
    assert spec["objectStorage"] == {"bucket": "b", "prefix": "here"}
    assert spec["config"] == {"region": "r"}
    own = world(tmp_path / "b", "{bucket: b, endpoint: https://store.example.com}")
    config = own.get("BackupStorageLocation", "default")["spec"]["config"]
    assert config == {"s3Url": "https://store.example.com", "s3ForcePathStyle": "true"}
    plain = world(tmp_path / "c").get("BackupStorageLocation", "default")["spec"]
    assert "config" not in plain


def test_the_schedule_comes_with_what_it_names(tmp_path: Path) -> None:
    found = world(tmp_path)
    assert not found.findings
    spec = template(found)
    assert spec["storageLocation"] in found.all("BackupStorageLocation")
    assert spec["resourcePolicy"] == {"kind": "configmap", "name": "backup-volumes"}
