"""Files for the nodes: CPUs and GPUs of a pod on one NUMA node."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.render.worlds import PLAIN, World, cluster, team

QUOTA = team("[{cluster: here, pool: gpu, gpus: 8}]")


def test_a_gpu_pool_gets_its_drop_in_unless_it_says_no(tmp_path: Path) -> None:
    world = World(tmp_path / "a", cluster(f"[{PLAIN}]"), QUOTA)
    files = {path: text for path, text in world.cluster.plain.items() if "kubelet" in path}
    assert list(files) == ["here/node-files/kubelet-gpu.yaml"]
    settings = yaml.safe_load(files["here/node-files/kubelet-gpu.yaml"])
    assert settings["topologyManagerPolicy"] == "single-numa-node"
    assert settings["cpuManagerPolicy"] == "static"
    without = World(tmp_path / "b", cluster(f"[{PLAIN[:-1]}, singleNumaNode: false}}]"), QUOTA)
    assert not [path for path in without.cluster.plain if "kubelet" in path]


def test_a_pool_without_gpus_gets_none(tmp_path: Path) -> None:
    system = "{name: system, purpose: system, nodes: 1, cpu: 4, memory: 16Gi}"
    world = World(tmp_path, cluster(f"[{PLAIN}, {system}]"), QUOTA)
    assert not [path for path in world.cluster.plain if "system" in path]
