"""Training: placement, claims, checkpoints, devices, and what Kueue needs to see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.render.worlds import DRA, PLAIN, RACKS, World, cluster, job, team

KUEUE = "kueue.x-k8s.io"


def racked(folder: Path, **spec: str) -> World:
    return World(
        folder,
        cluster(f"[{RACKS}]"),
        team("[{cluster: here, pool: racked, gpus: 32}]"),
        job(pool="racked", gpus="4", **spec),
    )


def runtime_pod(world: World) -> dict[str, Any]:
    replicated = world.get("TrainingRuntime", "run")["spec"]["template"]["spec"]["replicatedJobs"][0]
    template: dict[str, Any] = replicated["template"]["spec"]["template"]
    return template


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        ("{}", {"unconstrained-topology": "true"}),
        ("{required: rack}", {"required-topology": "topology.blueprint/rack"}),
        ("{preferred: block}", {"preferred-topology": "topology.blueprint/block"}),
        (
            "{required: rack, groupSize: 2}",
            {"slice-required-topology": "topology.blueprint/rack", "slice-size": "2"},
        ),
        (
            "{required: rack, preferred: block}",
            {
                "slice-required-topology": "topology.blueprint/rack",
                "slice-size": "4",
                "preferred-topology": "topology.blueprint/block",
            },
        ),
        ("{required: block, preferred: rack}", {"required-topology": "topology.blueprint/block"}),
        ("{required: rack, preferred: rack}", {"required-topology": "topology.blueprint/rack"}),
        (
            "{required: host, groupSize: 1, preferred: block}",
            {
                "slice-required-topology": "kubernetes.io/hostname",
                "slice-size": "1",
                "preferred-topology": "topology.blueprint/block",
            },
        ),
    ],
)
def test_required_and_preferred_stay_apart(placement: str, expected: dict[str, str], tmp_path: Path) -> None:
    world = racked(tmp_path, api="TrainJob", nodes="4", placement=placement)
    annotations = runtime_pod(world)["metadata"]["annotations"]
    assert annotations == {f"{KUEUE}/podset-{key}": value for key, value in expected.items()}


def test_master_and_workers_are_placed_as_one(tmp_path: Path) -> None:
    world = racked(tmp_path, nodes="3", placement="{required: block}")
    roles = world.get("PyTorchJob", "run")["spec"]["pytorchReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in roles.items()} == {"Master": 1, "Worker": 2}
    for spec in roles.values():
        assert spec["template"]["metadata"]["annotations"] == {
            f"{KUEUE}/podset-required-topology": "topology.blueprint/block",
            f"{KUEUE}/podset-group-name": "run",
        }


def test_a_plain_pool_gets_no_topology_request(tmp_path: Path) -> None:
    world = World(
        tmp_path, cluster(f"[{PLAIN}]"), team("[{cluster: here, pool: gpu, gpus: 8}]"), job(pool="gpu", gpus="2")
    )
    template = world.get("PyTorchJob", "run")["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    assert "annotations" not in template["metadata"]


def test_the_queue_label_is_on_the_job(tmp_path: Path) -> None:
    world = racked(tmp_path, priority="low")
    labels = world.get("PyTorchJob", "run")["metadata"]["labels"]
    assert labels[f"{KUEUE}/queue-name"] == "training"
    assert labels[f"{KUEUE}/priority-class"] == "platform-low"
    assert "platform-low" in world.all("WorkloadPriorityClass")
    assert "training" in world.all("LocalQueue")


def test_devices_come_by_claim_and_are_not_counted_twice(tmp_path: Path) -> None:
    world = World(
        tmp_path,
        cluster(f"[{DRA}]"),
        team("[{cluster: here, pool: claims, gpus: 8}]"),
        job(pool="claims", gpus="4", api="TrainJob"),
    )
    pod = runtime_pod(world)["spec"]
    assert pod["resourceClaims"] == [{"name": "gpus", "resourceClaimTemplateName": "run-gpus"}]
    assert pod["containers"][0]["resources"]["claims"] == [{"name": "gpus"}]
    assert "nvidia.com/gpu" not in pod["containers"][0]["resources"]["limits"]
    request = world.get("ResourceClaimTemplate", "run-gpus")["spec"]["spec"]["devices"]["requests"][0]
    assert request["exactly"] == {"deviceClassName": "h100", "allocationMode": "ExactCount", "count": 4}


def test_a_checkpoint_is_a_claim_a_place_an_interval_and_time_to_save(tmp_path: Path) -> None:
    world = racked(tmp_path, checkpoint="{size: 1Ti, everySteps: 250, grace: 10m}")
    claim = world.get("PersistentVolumeClaim", "run-checkpoints")["spec"]
    assert claim["accessModes"] == ["ReadWriteOnce"]
    pod = world.get("PyTorchJob", "run")["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 600
    environment = {row["name"]: row["value"] for row in pod["containers"][0]["env"]}
    assert environment["CHECKPOINT_EVERY_STEPS"] == "250"
    assert {"name": "checkpoints", "mountPath": environment["CHECKPOINT_DIR"]} in pod["containers"][0]["volumeMounts"]


def test_checkpoints_of_several_nodes_are_shared(tmp_path: Path) -> None:
    world = racked(tmp_path, nodes="2", checkpoint="{size: 1Ti}")
    assert world.get("PersistentVolumeClaim", "run-checkpoints")["spec"]["accessModes"] == ["ReadWriteMany"]


def test_data_is_mounted_read_only_and_claimed_once(tmp_path: Path) -> None:
    data = "[{name: corpus, claim: corpus, path: /data, size: 1Ti}]"
    world = World(
        tmp_path,
        cluster(f"[{PLAIN}]"),
        team("[{cluster: here, pool: gpu, gpus: 8}]"),
        job("one", pool="gpu", datasets=data),
        job("two", pool="gpu", datasets=data),
    )
    assert set(world.all("PersistentVolumeClaim")) == {"corpus"}
    for name in ("one", "two"):
        pod = world.get("PyTorchJob", name)["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
        assert {"name": "corpus", "mountPath": "/data", "readOnly": True} in pod["containers"][0]["volumeMounts"]


def test_runs_are_not_synced_by_themselves(tmp_path: Path) -> None:
    world = racked(tmp_path)
    applications = world.all("Application")
    assert "automated" not in applications["runs-alpha"]["spec"]["syncPolicy"]
    assert applications["team-alpha"]["spec"]["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True}
    assert "RespectIgnoreDifferences=true" in applications["runs-alpha"]["spec"]["syncPolicy"]["syncOptions"]


def test_nothing_else_waits_for_runs_or_claims(tmp_path: Path) -> None:
    world = racked(tmp_path, checkpoint="{size: 1Ti}")
    for application in world.cluster.applications:
        assert not {need for need in application.needs if need.startswith(("runs-", "data-"))}
    assert not world.findings


def test_of_several_wishes_for_one_claim_the_largest_counts(tmp_path: Path) -> None:
    data = "[{name: corpus, claim: corpus, path: /data, size: %s}]"
    runs = [job(f"run-{n}", pool="gpu", datasets=data % size) for n, size in enumerate(("900Gi", "2Ti", "1Ti"))]
    world = World(
        tmp_path, cluster(f"[{PLAIN}]"), team("[{cluster: here, pool: gpu, gpus: 8}]"), *runs, told=("SPC222",) * 2
    )
    claim = world.get("PersistentVolumeClaim", "corpus")
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Ti"
