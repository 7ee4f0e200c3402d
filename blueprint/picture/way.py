"""The way of one application: from its file in Git by Argo CD, its objects and its queue to machines and pods."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence

from blueprint.admission.decide import Decision, decide
from blueprint.admission.podsets import kinds
from blueprint.admission.world import World
from blueprint.check.graph import Graph, kind_of
from blueprint.check.shapes import mapping
from blueprint.errors import UsageError
from blueprint.objects import Manifest
from blueprint.picture.layers import Arrow, Box, draw, mermaid
from blueprint.picture.model import Picture, Table, many
from blueprint.picture.scene import MARGIN, Scene
from blueprint.sync import wave

_HEADS = {0: "Written", 1: "Delivered", 2: "Objects", 3: "Queue", 4: "Machines", 5: "Pods"}

#: Kinds of objects beside a workload, by what they are for.
_ROLES = {
    "Traffic": ("Service", "VirtualService", "DestinationRule", "Gateway", "HTTPRoute", "Ingress"),
    "Guard": ("NetworkPolicy", "AuthorizationPolicy", "PeerAuthentication", "PodDisruptionBudget", "ServiceAccount"),
    "Scaling": ("ScaledObject", "HorizontalPodAutoscaler"),
    "Watching": ("PodMonitor", "ServiceMonitor", "PrometheusRule", "AnalysisTemplate"),
    "Data": ("PersistentVolumeClaim", "ConfigMap", "Secret", "ResourceClaimTemplate"),
}


def workloads(graph: Graph) -> list[Manifest]:
    """The objects that Kueue queues, in the order of the tree."""
    known = set(kinds())
    return [manifest for manifest in graph.manifests if kind_of(manifest) in known]


def find(graph: Graph, name: str) -> Manifest:
    """The workload of a name (or `kind/name`). Raises UsageError where there is none, or more than one."""
    kind, slash, last = name.rpartition("/")
    every = workloads(graph)
    found = [m for m in every if m.ref.name == last and (not slash or m.kind.lower() == kind.lower())]
    if not found:
        close = difflib.get_close_matches(last, [m.ref.name for m in every], 1)
        some = ", ".join(sorted({m.ref.name for m in every})[:8])
        raise UsageError(
            f"no application is called {name}", hint=f"did you mean {close[0]}?" if close else f"here: {some}"
        )
    if len({m.ref for m in found}) > 1:
        raise UsageError(
            f"{name} is there {len(found)} times: {', '.join(str(m.ref) for m in found)}", hint="KIND/NAME"
        )
    return found[0]


def picture(
    graph: Graph, world: World, name: str, written: Mapping[str, str] | None = None, scene: str = "way", where: str = ""
) -> Picture:
    """The picture of one application on cluster `where`. `written` is name → file of its spec, where that is known."""
    workload = find(graph, name)
    decision = decide(world, workload)
    boxes, arrows = _left(graph, workload, (written or {}).get(workload.ref.name, ""))
    right, more = _right(world, _scaled(graph, workload), decision)
    boxes, arrows = [*boxes, *right], [*arrows, *more]
    title = f"The way of {workload.ref.name}" + (f" on {where}" if where else "")
    place = Scene(scene, title, _description(workload, decision))
    place.text(MARGIN, 34, title, size=18, bold=True)
    rows = tuple(
        (_HEADS[box.column], box.above, box.name, "; ".join(box.below))
        for box in sorted(boxes, key=lambda box: box.column)
    )
    table = Table(("Stage", "What", "Name", "More"), rows)
    return Picture(draw(place, boxes, arrows, _HEADS), mermaid(boxes, arrows, _HEADS), table)


def _description(workload: Manifest, decision: Decision) -> str:
    ref = workload.ref
    return f"{ref.kind} {ref.name} in namespace {ref.namespace or 'default'} {decision.words}."


def _left(graph: Graph, workload: Manifest, written: str) -> tuple[list[Box], list[Arrow]]:
    """From the file to the objects."""
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    start = "file"
    if written:
        boxes.append(Box("spec", 0, "Spec", workload.ref.name, (written,), "own"))
    boxes.append(Box("file", 0, "Rendered file" if written else "File", workload.source.file.rpartition("/")[2]))
    owners = graph.deliveries.owners.get(id(workload), [])
    beside = [m for m in graph.manifests if m.folder == workload.folder and m.ref != workload.ref]
    if owners:
        owner = owners[0]
        by = "by itself" if owner.automated is not None else "by hand"
        number = wave(owner.manifest.body)
        lines = (f"wave {number}, synced {by}", many(len(beside) + 1, "object"))
        boxes.append(Box("argo", 1, "Argo CD Application", owner.name, lines))
        arrows.append(Arrow("file", "argo"))
        start = "argo"
        if written:
            arrows.append(Arrow("spec", "argo", "rendered", dashed=True))
    elif written:
        arrows.append(Arrow("spec", "work", "rendered", dashed=True))
    boxes.append(Box("work", 2, workload.kind, workload.ref.name, (f"namespace {workload.ref.namespace}",), "own"))
    arrows.append(Arrow(start, "work"))
    for role, members in _ROLES.items():
        found = Counter(m.kind for m in beside if m.kind in members)
        if found:
            held = tuple(f"{number} {kind}" if number > 1 else kind for kind, number in sorted(found.items()))
            boxes.append(Box(role, 2, role, many(sum(found.values()), "object"), held))
            arrows.append(Arrow(start, role))
    return boxes, arrows


def _scaled(graph: Graph, workload: Manifest) -> str:
    """By what and how far the workload is scaled, "" where nothing does."""
    for manifest in graph.kind("ScaledObject.keda.sh", "HorizontalPodAutoscaler.autoscaling"):
        spec = mapping(manifest.body.get("spec"))
        if manifest.ref.namespace == workload.ref.namespace and workload.ref.name == mapping(
            spec.get("scaleTargetRef")
        ).get("name"):
            least, most = (
                spec.get("minReplicaCount", spec.get("minReplicas")),
                spec.get("maxReplicaCount", spec.get("maxReplicas")),
            )
            return f"{least} to {most} by {manifest.kind}"
    return ""


def _right(world: World, scaled: str, decision: Decision) -> tuple[list[Box], list[Arrow]]:
    """From the queue to the pods; without a queue what is known of the pods."""
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    way = decision.way
    before = "work"
    by = f"LocalQueue {way.local_queue.name}" if way.local_queue else "ClusterQueue"
    if way.cluster_queue:
        above = tuple(f"cohort {name}" for name in way.cohorts[:3])
        boxes.append(Box("queue", 3, by, way.cluster_queue.name, above))
    elif way.local_queue:
        boxes.append(Box("queue", 3, "LocalQueue", way.local_queue.name, ("leads to no ClusterQueue",), "bad"))
    if boxes:
        arrows.append(Arrow(before, "queue"))
        before = "queue"
    for podset in decision.podsets:
        pod = f"pods/{podset.name}"
        charge = [
            f"{value} {name.rpartition('/')[2]}" for name, value in podset.charge.items() if "/" in name and value
        ]
        count = podset.count * decision.copies
        lines = (*(f"{line} each" for line in charge), *([scaled] if scaled else []))
        boxes.append(Box(pod, 5, f"Pod set {podset.name}", many(count, "pod"), lines, "own"))
        flavors = sorted({flavor for resource, flavor in podset.flavors.items() if flavor})
        for flavor in flavors:
            key = f"flavor/{flavor}"
            if all(box.key != key for box in boxes):
                boxes.append(Box(key, 4, "ResourceFlavor", flavor, _machines(world, flavor), "good"))
                arrows.append(Arrow(before, key))
            arrows.append(Arrow(key, pod))
        if not flavors:
            arrows.append(Arrow(before, pod, kind="bad" if decision.admissible is False else "edge", dashed=True))
    return boxes, arrows


def _machines(world: World, flavor: str) -> tuple[str, ...]:
    found = world.flavors.get(flavor)
    if found is None or world.nodes is None:
        return ("machines unknown",)
    keys: Sequence[str] = world.topologies.get(found.topology, ()) if found.topology else ()
    mine = [node for node in world.nodes if node.carries(found.labels, keys)]
    return (many(len(mine), "node"), *((f"topology {found.topology}",) if found.topology else ()))
