"""Nodes that are not there: Node objects made from the inventory of a rendered cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml_rs

from blueprint.admission.nodes import INVENTORY_LABEL

Body = dict[str, Any]
_PODS = "110"


def node_objects(objects: Iterable[Body]) -> Iterator[Body]:
    """Each node of each pool in the inventories, called as `blueprint.admission` calls it.

    KWOK fills in the rest and makes it Ready.
    """
    for body in objects:
        labels = body["metadata"].get("labels") or {}
        if body["kind"] == "ConfigMap" and labels.get(INVENTORY_LABEL) == "true":
            for text in body["data"].values():
                inventory: Any = yaml_rs.loads(text, parse_datetime=False)
                for pool in inventory.get("pools", ()):
                    yield from _pool(pool)


def _pool(pool: Mapping[str, Any]) -> Iterator[Body]:
    places = pool.get("places") or [{"nodes": pool.get("nodes", 0), "labels": {}}]
    offered = {"pods": _PODS, **{name: str(amount) for name, amount in pool.get("allocatable", {}).items()}}
    index = 0
    for place in places:
        for _ in range(place["nodes"]):
            name = f"{pool['name']}-{index}"
            index += 1
            labels = {"kubernetes.io/hostname": name, **pool.get("labels", {}), **place.get("labels", {})}
            yield {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
                "spec": {"taints": pool.get("taints", [])},
                "status": {"allocatable": offered, "capacity": offered},
            }
