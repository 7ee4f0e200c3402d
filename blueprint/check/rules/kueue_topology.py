"""Topology-aware scheduling: levels and the labels of nodes, flavors that share nodes, and wishes that are refused.

Sources: kueue v0.17.0 pkg/controller/jobframework/tas_validation.go, pkg/cache/scheduler/tas_flavor_snapshot.go,
tas_nodes_cache.go, pkg/scheduler/flavorassigner/tas_flavorassigner.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations

from blueprint.admission.match import HOSTNAME
from blueprint.admission.podsets import PREFIX, Job, PodSet, job
from blueprint.admission.queues import GROUP, Flavor
from blueprint.check.graph import Graph, annotations_of
from blueprint.check.kueue import CLUSTER_QUEUE, FLAVOR, JOBS, TOPOLOGY, Kueue, kueue
from blueprint.check.pods import pod_templates
from blueprint.check.rules.say import say
from blueprint.check.shapes import mapping, maps, number, placeholder, text
from blueprint.finding import Finding, Ref, Severity
from blueprint.objects import Manifest

_REQUIRED, _PREFERRED, _FREE = (f"{PREFIX}/podset-{how}-topology" for how in ("required", "preferred", "unconstrained"))
_SLICE, _SIZE = f"{PREFIX}/podset-slice-required-topology", f"{PREFIX}/podset-slice-size"
_LAYERS, _GROUP = f"{_SLICE}-constraints", f"{PREFIX}/podset-group-name"
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_GROUPED = ("JobSet", "LeaderWorkerSet")
_MOST_PAIRS = 20_000


def _aware(found: Kueue) -> list[Flavor]:
    """Flavors with a topology; where queues are in the tree, those that some queue uses."""
    used = {name for queue in found.world.queues.values() for name in queue.flavors}
    known = found.world.flavors.values()
    return [each for each in known if each.topology and (each.name in used or not found.world.queues)]


def shared_nodes(graph: Graph) -> Iterator[Finding]:
    """KQ303: two topology-aware flavors select the same nodes, and each counts them for itself."""
    found = kueue(graph)
    flavors = [each for each in _aware(found) if Ref(GROUP, "ResourceFlavor", "", each.name) not in found.open]
    nodes = {each.name: {node.name for node, _ in found.nodes_of(each.name)} for each in flavors}
    for done, (one, other) in enumerate(combinations(flavors, 2)):
        if done > _MOST_PAIRS:
            return
        common = nodes[one.name] & nodes[other.name]
        inside = one.labels.items() <= other.labels.items() or other.labels.items() <= one.labels.items()
        if not (common if found.world.nodes is not None else inside and one.labels):
            continue
        manifest = graph.get(Ref(GROUP, "ResourceFlavor", "", other.name))
        if manifest is not None:
            where = f" (such as {min(common)})" if common else ""
            message = (
                f"flavors {one.name} and {other.name} both have a topology and select the same nodes{where}: each "
                "counts them as its own, and they are given away twice"
            )
            yield say("KQ303", manifest, message, "spec.nodeLabels", "give each flavor nodes of its own")


def two_groups(graph: Graph) -> Iterator[Finding]:
    """KQ303: topology-aware flavors in two resource groups: a pod that needs both is placed by neither."""
    found = kueue(graph)
    for manifest in graph.kind(CLUSTER_QUEUE):
        groups = found.world.queues[manifest.ref.name].groups
        aware = [
            next(
                (name for name in group.flavors if name in found.world.flavors and found.world.flavors[name].topology),
                "",
            )
            for group in groups
        ]
        both = [name for name in aware if name]
        if len(both) > 1 and manifest.ref not in found.open:
            message = (
                f"flavors {' and '.join(both)} have a topology and stand in different resource groups: a pod that asks "
                "for resources of both is admitted without any place, and room on nodes is not looked at"
            )
            fix = "put cpu, memory and devices into one resource group"
            yield say("KQ303", manifest, message, "spec.resourceGroups", fix)


def level_labels(graph: Graph) -> Iterator[Finding]:
    """KQ304: nodes of a flavor lack the label of a level: they are silently left out."""
    found = kueue(graph)
    for manifest in graph.kind(FLAVOR):
        flavor = found.world.flavors[manifest.ref.name]
        levels = found.world.topologies.get(flavor.topology)
        nodes = found.nodes_of(flavor.name) if levels else []
        if not levels or not nodes:
            continue
        lost = {level: sum(count for node, count in nodes if level not in node.labels) for level in levels}
        total = sum(count for _, count in nodes)
        out = sum(count for node, count in nodes if any(level not in node.labels for level in levels))
        if out:
            missing = ", ".join(f"{level} on {count}" for level, count in lost.items() if count)
            some = [node.name for node, _ in nodes if any(level not in node.labels for level in levels)]
            message = (
                f"of {total} nodes that flavor {flavor.name} selects {out} have no label for a level of Topology "
                f"{flavor.topology}: {missing} ({', '.join(some[:3])}{', …' if len(some) > 3 else ''}); "
                f"they count for nothing"
            )
            message += ", so no pod ever finds a place" if out == total else ""
            severity = Severity.ERROR if out == total else Severity.WARNING
            fix = f"label the nodes, or take the level out of {flavor.topology}"
            yield say("KQ304", manifest, message, "spec.topologyName", fix, severity)


def lowest_level(graph: Graph) -> Iterator[Finding]:
    """KQ305: the lowest level is not the host, so taints, selectors and the room on single nodes are not looked at."""
    found = kueue(graph)
    for manifest in graph.kind(TOPOLOGY):
        levels = found.world.topologies[manifest.ref.name]
        if not levels or levels[-1] == HOSTNAME or placeholder(levels[-1]):
            continue
        used = [each for each in found.world.flavors.values() if each.topology == manifest.ref.name]
        nodes = [node for each in used for node, _ in found.nodes_of(each.name)]
        if not used:
            nodes = [node for node, _ in found.machines if node.carries({}, levels)]
        tainted = next((node for node in nodes if any(taint.blocks for taint in node.taints)), None)
        message = (
            f"the lowest level is {levels[-1]}: the nodes of a domain count as one, a pod larger than each of them is "
            "placed and stays Pending, and taints and selectors of nodes are not looked at"
        )
        if tainted is not None:
            taint = next(each for each in tainted.taints if each.blocks)
            message += f"; node {tainted.name} has the taint {taint}"
        severity = Severity.ERROR if tainted is not None else Severity.WARNING
        yield say("KQ305", manifest, message, "spec.levels", f"add {HOSTNAME} as the last level", severity)


def wishes(graph: Graph) -> Iterator[Finding]:
    """KQ308: annotations about topology that the webhook refuses, or that no flavor can ever satisfy."""
    for manifest in graph.kind(*sorted(JOBS - {f"Workload.{GROUP}"})):
        asked: Job | None = None
        for pod in pod_templates(manifest):
            annotations = annotations_of({"metadata": pod.metadata})
            mine = {key: value for key, value in annotations.items() if key.startswith(f"{PREFIX}/podset-")}
            if not mine or any(map(placeholder, mine.values())):
                continue
            if asked is None and isinstance(read := job(manifest, lambda *_: None), Job):
                asked = read
            podset = next((each for each in asked.podsets if each.spec is pod.spec), None) if asked else None
            base = f"{pod.path}.metadata.annotations" if pod.path else "metadata.annotations"
            for key, message, fix in _refused(mine, podset):
                yield say("KQ308", manifest, message, f"{base}[{key}]", fix)
        if asked is not None and manifest.kind in _GROUPED:
            for message in _bad_groups(asked):
                yield say("KQ308", manifest, message, "spec", "two pod sets, one of a single pod, with the same wish")


def _refused(mine: Mapping[str, str], podset: PodSet | None) -> Iterator[tuple[str, str, str]]:
    """Annotations of one pod template: (key, words, what to do)."""
    modes = [key for key in (_REQUIRED, _PREFERRED, _FREE) if key in mine]
    if len(modes) > 1:
        names = ", ".join(key.rpartition("/")[2] for key in modes)
        yield modes[1], f"{names} exclude each other: the webhook refuses the job", "keep one of them"
    if _FREE in mine and mine[_FREE] not in _TRUE:
        if mine[_FREE] in _FALSE:
            message = "false does not switch topology off: it is a wish without a level, and no flavor can satisfy it"
            yield _FREE, message, "remove the annotation"
        else:
            yield _FREE, f"{mine[_FREE]!r} is neither true nor false: the webhook refuses the job", '"true"'
    if (_SLICE in mine) != (_SIZE in mine):
        have, lack = (_SLICE, _SIZE) if _SLICE in mine else (_SIZE, _SLICE)
        yield have, f"{have} needs {lack}: the webhook refuses the job", f"set {lack}"
    if _SIZE in mine:
        size = int(mine[_SIZE]) if re.fullmatch(r"[+-]?[0-9]+", mine[_SIZE]) else None
        if size is None or size < 1:
            yield (
                _SIZE,
                f"slice size {mine[_SIZE]!r} is no whole number above 0: the webhook refuses the job",
                "1 or more",
            )
        elif podset is not None and size > podset.count:
            message = (
                f"slices of {size} pods are more than the {podset.count} of the pod set: the webhook refuses the job"
            )
            yield _SIZE, message, f"at most {podset.count}"
    if _GROUP in mine:
        if mine[_GROUP].isascii() and mine[_GROUP].isdigit():
            yield _GROUP, "the name of a pod set group may not be a number: the webhook refuses the job", "a word"
        if _SLICE in mine or _SIZE in mine or _LAYERS in mine:
            yield _GROUP, "a pod set group excludes slices: the webhook refuses the job", "keep one of them"
        if _REQUIRED not in mine and _PREFERRED not in mine:
            yield _GROUP, "a pod set group needs a required or preferred level: the webhook refuses the job", "set one"
    if _LAYERS in mine and (_SLICE in mine or _SIZE in mine):
        yield _LAYERS, "constraints of several levels exclude a slice and its size: the webhook refuses the job", ""


def _bad_groups(asked: Job) -> Iterator[str]:
    groups: dict[str, list[PodSet]] = {}
    for podset in asked.podsets:
        if podset.wish.group is not None:
            groups.setdefault(podset.wish.group, []).append(podset)
    for name, members in groups.items():
        if len(members) != 2:
            yield f"pod set group {name} has {len(members)} pod sets: the webhook wants exactly 2"
            continue
        one, other = members
        if 1 not in (one.count, other.count):
            yield f"pod set group {name} has {one.count} and {other.count} pods: one of the two must be a single pod"
        if (one.wish.required, one.wish.preferred) != (other.wish.required, other.wish.preferred):
            yield f"the pod sets of group {name} wish for different levels: the webhook refuses the job"


def slices_of_nothing(graph: Graph) -> Iterator[Finding]:
    """KQ308: a Workload with slices of 0 pods, on which the scheduler divides by zero and ends."""
    for manifest in graph.kind(f"Workload.{GROUP}"):
        for index, row in enumerate(_pod_sets(manifest)):
            request = mapping(row.get("topologyRequest"))
            if number(request.get("podSetSliceSize")) == 0 and text(request.get("podSetSliceRequiredTopology")):
                message = "slices of 0 pods pass the API server, and the scheduler of Kueue ends on a division by zero"
                yield say(
                    "KQ308", manifest, message, f"spec.podSets[{index}].topologyRequest.podSetSliceSize", "1 or more"
                )


def _pod_sets(manifest: Manifest) -> list[dict[str, object]]:
    return maps(mapping(manifest.body.get("spec")).get("podSets"))


RULES = (shared_nodes, two_groups, level_labels, lowest_level, wishes, slices_of_nothing)
TREE = ()
