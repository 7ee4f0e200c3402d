"""Pools of nodes, and what of their GPUs is worked out."""

from __future__ import annotations

import pytest

from blueprint.check.graph import Graph
from blueprint.check.kueue import kueue
from blueprint.check.machines import Pool, by_prefix, nodes, pools, release
from tests.check.rules.cases import manifests

INVENTORY = """
apiVersion: v1
kind: ConfigMap
metadata: {name: inventory, namespace: kueue-system, labels: {platform.blueprint/inventory: "true"}}
data:
  inventory.yaml: |
    kueue: 0.17.3
    pools:
    - {name: a, nodes: 2, labels: {example.com/pool: a}, allocatable: {cpu: 8, nvidia.com/gpu: 4}}
"""
POOL = """
kind: NodePool
metadata: {name: b}
spec:
  count: 3
  gpu: NVIDIA-A100-SXM4-40GB
  gpus: 8
  labels: {example.com/pool: b}
"""


def _graph(text: str) -> Graph:
    return Graph(manifests(text))


def test_pools_come_from_config_maps_and_from_documents_without_api_version() -> None:
    graph = _graph(f"{INVENTORY}---{POOL}")
    assert {pool.name: pool.body["nodes"] for pool in pools(graph)} == {"a": 2, "b": 3}
    assert release(graph) == "0.17.3"
    assert kueue(graph).version == "0.17.3"
    assert kueue(graph).said


@pytest.mark.parametrize(
    ("mig", "offered"),
    [
        ("", {"nvidia.com/gpu": 8}),
        ("  mig: {strategy: single, geometry: {1g.5gb: 7}}\n", {"nvidia.com/gpu": 56}),
        (
            "  mig: {strategy: mixed, geometry: {3g.20gb: 1, 1g.5gb: 3}}\n",
            {"nvidia.com/gpu": 0, "nvidia.com/mig-3g.20gb": 8, "nvidia.com/mig-1g.5gb": 24},
        ),
    ],
)
def test_what_a_node_offers_follows_from_its_gpus(mig: str, offered: dict[str, int]) -> None:
    (pool,) = pools(_graph(POOL + mig))
    assert dict(pool.listed) == offered


def test_what_is_written_is_not_worked_out_again() -> None:
    (pool,) = pools(_graph(POOL + "  allocatable: {nvidia.com/gpu: 7}\n"))
    assert dict(pool.listed) == {"nvidia.com/gpu": 7}


def test_what_is_not_listed_is_more_than_enough() -> None:
    graph = _graph(POOL)
    ((node, count),) = kueue(graph).machines
    assert count == 3
    assert node.allocatable["cpu"] > 10**6
    assert node.allocatable["nvidia.com/gpu"] == 8


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("A100-40", "A100 40 GB SXM"),
        ("a100-80", "A100 80 GB SXM"),
        ("A10", "A10"),
        ("L40S", "L40S"),
        ("A100", None),  # 40 and 80 GB are not cut alike
        ("H", None),
        ("X9000", None),
    ],
)
def test_short_names_of_gpus(named: str, found: str | None) -> None:
    gpu = by_prefix(named)
    assert (gpu.name if gpu else None) == found


def test_nodes_that_offer_nothing_say_nothing() -> None:
    graph = _graph("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n")
    assert not nodes(graph)
    assert kueue(graph).world.nodes is None


def test_a_node_without_conditions_counts_as_ready() -> None:
    graph = _graph("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {cpu: 4}}\n")
    assert [node.name for node, _ in kueue(graph).machines] == ["node-1"]


def test_a_pool_of_a_hundred_thousand_nodes_is_one_kind() -> None:
    graph = _graph(POOL.replace("count: 3", "count: 100000"))
    assert [count for _, count in kueue(graph).machines] == [100_000]
    assert isinstance(pools(graph)[0], Pool)
