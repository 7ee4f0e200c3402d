"""Files for the nodes: CPUs and GPUs of a pod on one NUMA node, and pods that this would refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.render.worlds import DRA, PLAIN, World, cluster, job, team

QUOTA = team("[{cluster: here, pool: gpu, gpus: 8}]")


@pytest.mark.parametrize(("single", "policy"), [("true", "single-numa-node"), ("false", "best-effort")])
def test_a_gpu_pool_gets_its_drop_in(single: str, policy: str, tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN[:-1]}, singleNumaNode: {single}}}]"), QUOTA)
    files = {path: text for path, text in world.cluster.plain.items() if "kubelet" in path}
    assert list(files) == ["here/node-files/kubelet-gpu.yaml"]
    settings = yaml.safe_load(files["here/node-files/kubelet-gpu.yaml"])
    assert settings["topologyManagerPolicy"] == policy
    assert settings["cpuManagerPolicy"] == "static"


def test_a_pool_without_gpus_gets_none(tmp_path: Path) -> None:
    system = "{name: system, purpose: system, nodes: 1, cpu: 4, memory: 16Gi}"
    world = World(tmp_path, cluster(f"[{PLAIN}, {system}]"), QUOTA)
    assert not [path for path in world.cluster.plain if "system" in path]


@pytest.mark.parametrize(
    ("more", "gpus", "refused"),
    [
        ("", 8, False),
        (", singleNumaNode: true", 8, True),
        (", singleNumaNode: true", 5, True),
        (", singleNumaNode: true", 4, False),
        (", singleNumaNode: true, numaNodes: 1", 8, False),
        (", singleNumaNode: true, numaNodes: 4", 4, True),
    ],
)
def test_a_pod_larger_than_a_numa_node(more: str, gpus: int, refused: bool, tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN[:-1]}{more}}}]"), QUOTA, job(pool="gpu", gpus=str(gpus)))
    found = [finding for finding in world.findings if finding.code == "NOD101"]
    assert bool(found) is refused
    assert all(finding.source and finding.source.line > 1 for finding in found)


def test_claims_give_the_kubelet_no_hints(tmp_path: Path) -> None:
    quota = team("[{cluster: here, pool: claims, gpus: 8}]")
    strict = DRA.replace("devices: dra", "devices: dra, singleNumaNode: true")
    world = World(tmp_path, cluster(f"[{strict}]"), quota, job(pool="claims", gpus="8", api="TrainJob"))
    assert not world.findings


@pytest.mark.parametrize(
    ("product", "layout", "words"),
    [
        ("NVIDIA-A100-SXM4-80GB", "{7g.80gb: 2}", "14 compute slices are asked"),
        ("NVIDIA-A100-SXM4-80GB", "{1g.5gb: 7}", "no profile 1g.5gb"),
        ("NVIDIA-A100-SXM4-80GB", "{1g.10gb: 1000000}", "compute slices are asked"),
        ("NVIDIA-A100-SXM4-80GB", "{3g.40gb: 2, 1g.10gb: 1}", "side by side"),
        ("NVIDIA-L4", "{1g.10gb: 1}", "has no MIG"),
    ],
)
def test_a_layout_that_no_gpu_has_is_found(product: str, layout: str, words: str, tmp_path: Path) -> None:
    [finding] = _cut(product, layout, tmp_path).findings
    assert (finding.code, finding.path) == ("NOD102", "spec.nodePools[1].gpus.mig.layout")
    assert words in finding.message


@pytest.mark.parametrize(
    ("product", "layout"),
    [
        ("NVIDIA-A100-SXM4-80GB", "{1g.10gb: 1, 2g.20gb: 1, 4g.40gb: 1}"),
        ("NVIDIA-A100-SXM4-80GB", "{1g.10gb+me: 1, 1g.10gb: 6}"),
        ("NVIDIA-NEXT-YEAR", "{9g.900gb: 3}"),
    ],
)
def test_a_layout_that_fits_or_is_unknown_is_not(product: str, layout: str, tmp_path: Path) -> None:
    assert not [finding for finding in _cut(product, layout, tmp_path).findings if finding.code == "NOD102"]


def _cut(product: str, layout: str, folder: Path) -> World:
    cut = (
        "{name: cut, purpose: serving, nodes: 1, cpu: 64, memory: 512Gi,"
        f" gpus: {{product: {product}, count: 8, mig: {{strategy: mixed, layout: {layout}}}}}}}"
    )
    return World(folder, cluster(f"[{PLAIN}, {cut}]"), QUOTA)


@pytest.mark.parametrize(
    ("product", "severity", "near"),
    [
        ("NVIDIA-L4", None, ""),
        ("h100", "warning", "NVIDIA-H100"),
        ("nvidia-a100-sxm4-80gb", "warning", "NVIDIA-A100-SXM4-80GB"),
        ("NVIDIA-A100-SXM4-80G", "warning", "NVIDIA-A100-SXM4-80GB"),
        ("NVIDIA-A100-SXM4-96GB", "note", "NVIDIA-A100-SXM4-80GB"),  # another number may be another GPU
        ("Quasar-X9000-SXM7", "note", ""),
    ],
)
def test_a_gpu_that_nobody_knows_is_said_to_be_unknown(
    product: str, severity: str | None, near: str, tmp_path: Path
) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN.replace('NVIDIA-L4', product)}]"), QUOTA)
    found = [finding for finding in world.findings if finding.code == "NOD103"]
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    for finding in found:
        assert finding.source and finding.source.line > 1
        assert (f"did you mean {near}" in finding.message) if near else "did you mean" not in finding.message
