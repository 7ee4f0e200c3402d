"""All pictures of a tree: one of each kind for each cluster in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from blueprint.admission.world import World, world
from blueprint.check.applications import Deliveries
from blueprint.check.clusters import graphs
from blueprint.check.graph import Graph
from blueprint.check.parse import Reading
from blueprint.errors import UsageError
from blueprint.picture import network, quotas, timeline, way
from blueprint.picture.model import Picture, in_words

KINDS = ("quota", "waves", "network")
"""What is drawn of each cluster, in this order; besides, the way of an application that is named."""

_NOTHING = {
    "quota": "no ClusterQueue and no Cohort is here, so that Kueue has nothing to share out",
    "waves": "no Application of Argo CD holds any of these objects, so that nothing orders them in waves",
    "network": "no Namespace is here, and no policy about who may talk to whom",
}
"""Why there is nothing to see, by what was asked for."""


def clusters(reading: Reading) -> dict[str, Graph]:
    """The objects of each cluster by the cluster's name: of a single one, that is "" where nothing tells it."""
    parts = graphs(reading.manifests, deliveries=Deliveries(Graph(reading.manifests)))
    if len(parts) == 1:
        return {_name(parts[0]): parts[0]}
    return {_name(part) or f"part {number}": part for number, part in enumerate(parts, 1)}


def _name(graph: Graph) -> str:
    """The label of our Applications, else the folder that all objects share."""
    for manifest in graph.kind("Application.argoproj.io"):
        metadata = manifest.body.get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        if isinstance(labels, dict) and isinstance(name := labels.get("platform.blueprint/cluster"), str):
            return name
    folders = [PurePosixPath(manifest.source.file).parent.parts for manifest in graph.manifests]
    shared: list[str] = []
    for steps in zip(*folders, strict=False):
        if len(set(steps)) > 1:
            break
        shared.append(steps[0])
    return shared[-1] if shared and shared[-1] not in ("/", ".") else ""


def drawn(
    reading: Reading,
    kinds: Sequence[str],
    *,
    only: Sequence[str] = (),
    applications: Sequence[str] = (),
    written: Mapping[str, str] | None = None,
) -> list[Picture]:
    """The pictures of the kinds, for all clusters or `only` some, then the ways of the applications.

    A picture with nothing in it says why. Raises UsageError for a cluster or application that is not there, and where
    nothing is in any picture.
    """
    if not reading.manifests:
        raise UsageError("there are no Kubernetes objects here", hint="name a rendered tree or a folder of manifests")
    parts = clusters(reading)
    if missing := [name for name in only if name not in parts]:
        raise UsageError(f"no cluster is called {missing[0]}", hint=f"clusters here: {', '.join(parts)}")
    found: list[Picture] = []
    empty = 0
    for name, graph in parts.items():
        if only and name not in only:
            continue
        around = _world(graph, reading)
        for kind in kinds:
            one = _one(kind, graph, around, name)
            empty += one.empty
            found.append(in_words(one, f"{_NOTHING[kind][0].upper()}{_NOTHING[kind][1:]}.") if one.empty else one)
        for application in applications:
            scene = _scene("way", f"{name}-{application}")
            found.append(way.picture(graph, around, application, written, scene, name))
    if found and empty == len(found):
        reasons = "; ".join(_NOTHING[kind] for kind in kinds)
        raise UsageError(f"there is nothing to draw: {reasons}", hint="blueprint review and check read any objects")
    return found


def _world(graph: Graph, reading: Reading) -> World:
    folders = {PurePosixPath(manifest.source.file).parent for manifest in graph.manifests}
    above = {step for folder in folders for step in (folder, *folder.parents)}
    return world(graph.manifests, [m for m in reading.aside if PurePosixPath(m.source.file).parent in above])


def _one(kind: str, graph: Graph, around: World, name: str) -> Picture:
    scene = _scene(kind, name)
    if kind == "quota":
        return quotas.picture(around, scene, name)
    if kind == "waves":
        return timeline.picture(graph, scene, name)
    return network.picture(graph, scene, name)


def _scene(kind: str, name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{kind}-{name}".lower()).strip("-")
