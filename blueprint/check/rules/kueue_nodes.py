"""Quota and jobs against the nodes that there are: an inventory or Node objects in the tree. Without them: silence.

Sources: kubernetes v1.35.4 pkg/scheduler/framework/plugins/{noderesources,nodeaffinity,tainttoleration}; kueue v0.17.0
pkg/podset/podset.go (what a flavor puts on pods); issues kubernetes-sigs/kueue#4329, #4782, #2796, #485.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from blueprint.admission.amounts import FlavorResource, shown
from blueprint.admission.demand import Demand
from blueprint.admission.match import HOSTNAME, Taint, untolerated
from blueprint.admission.nodes import Node
from blueprint.admission.queues import ClusterQueue, Flavor
from blueprint.admission.state import MULTIKUEUE, PROVISIONING, controller
from blueprint.check.graph import Graph
from blueprint.check.kueue import CLUSTER_QUEUE, COHORT, FLAVOR, Judged, Kueue, kueue
from blueprint.check.machines import GPU, MIG
from blueprint.check.rules.kueue_queues import rows
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import text
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

_PLENTY = 10**15
"""What an inventory leaves out of a node counts as more than this."""
_ROUGH = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})


def _local(found: Kueue, flavor: str) -> bool:
    """Whether pods of a flavor run on the nodes of the tree: not on another cluster, nor on nodes made for them."""
    return flavor not in found.graph.derived(_elsewhere)


def _elsewhere(graph: Graph) -> frozenset[str]:
    found = kueue(graph)
    away: set[str] = set()
    for queue in found.world.queues.values():
        for check, flavors in queue.checks.items():
            kind = controller(found.world, check)
            if kind == MULTIKUEUE:
                away.update(queue.flavors)
            elif kind == PROVISIONING:
                away.update(flavors)
    return frozenset(away)


def _offered(nodes: Sequence[tuple[Node, int]], resource: str) -> int | None:
    """What nodes offer together, None where it is not known."""
    if any(node.allocatable.get(resource, 0) >= _PLENTY for node, _ in nodes):
        return None
    return sum(node.allocatable.get(resource, 0) * count for node, count in nodes)


def quota_above_nodes(graph: Graph) -> Iterator[Finding]:
    """KQ401: the quotas of a flavor together are more than its nodes offer: admitted pods stay Pending."""
    found = kueue(graph)
    if found.world.nodes is None or found.open:
        return
    promised: dict[FlavorResource, int] = defaultdict(int)
    places: dict[FlavorResource, tuple[int, Manifest, str]] = {}
    settings = found.world.settings
    made = {*settings.devices.values(), *(n for each in settings.transformations.values() for n in each.outputs)}
    for manifest in graph.kind(CLUSTER_QUEUE, COHORT):
        quotas = (found.world.queues if manifest.kind == "ClusterQueue" else found.world.cohorts)[
            manifest.ref.name
        ].quotas
        for path, flavor, row in rows(manifest):
            pair = FlavorResource(flavor, text(row.get("name")))
            nominal = quotas[pair].nominal if pair in quotas else 0
            promised[pair] += nominal
            if nominal > places.get(pair, (0,))[0]:
                places[pair] = (nominal, manifest, path)
    for pair, total in promised.items():
        nodes = found.nodes_of(pair.flavor)
        offered = _offered(nodes, pair.resource)
        if not nodes or offered is None or total <= offered or not _local(found, pair.flavor) or pair.resource in made:
            continue
        if not offered and _advertised_elsewhere(nodes, pair.resource):
            continue  # the wrong resource for these nodes is KQ601's
        _, manifest, path = places[pair]
        known = found.world.flavors.get(pair.flavor)
        gentle = pair.resource in _ROUGH or bool(known and known.topology) or _waits(found)
        message = (
            f"flavor {pair.flavor} has {shown(pair.resource, total)} {pair.resource} of quota, and its "
            f"{sum(count for _, count in nodes)} nodes offer {shown(pair.resource, offered)}: what is admitted above "
            "that stays Pending, and gangs may wait for each other without end"
        )
        fix = f"lower the quotas to {shown(pair.resource, offered)} together"
        severity = Severity.WARNING if gentle else Severity.ERROR
        yield say("KQ401", manifest, message, f"{path}.nominalQuota", fix, severity)


def _waits(found: Kueue) -> bool:
    """Whether Kueue takes a gang back whose pods do not come up in time."""
    return any(each.body and "waitForPodsReady" in each.body for each in found.configurations)


def _advertised_elsewhere(nodes: Sequence[tuple[Node, int]], resource: str) -> bool:
    return resource.startswith("nvidia.com/") and any(
        value for node, _ in nodes for name, value in node.allocatable.items() if name.startswith("nvidia.com/")
    )


def idle_devices(graph: Graph) -> Iterator[Finding]:
    """KQ407: most GPUs of a flavor's nodes are in no quota: nobody can get them through Kueue."""
    found = kueue(graph)
    if found.world.nodes is None or not found.world.queues or found.open or not graph.closed(CLUSTER_QUEUE):
        return
    promised: dict[FlavorResource, int] = defaultdict(int)
    quotas = [each.quotas for each in found.world.queues.values()]
    for each in (*quotas, *(cohort.quotas for cohort in found.world.cohorts.values())):
        for pair, quota in each.items():
            promised[pair] += quota.nominal
    used = {pair.flavor for pair in promised}
    sliced = {pair.flavor for pair, total in promised.items() if pair.resource.startswith(MIG) and total}
    for manifest in graph.kind(FLAVOR):
        flavor = found.world.flavors[manifest.ref.name]
        if flavor.name not in used - sliced or not flavor.labels:
            continue
        offered = _offered(found.nodes_of(flavor.name), GPU)
        given = promised.get(FlavorResource(flavor.name, GPU), 0)
        if offered and 2 * given < offered:
            message = f"its nodes offer {offered} {GPU}, and the quotas count {given}: the rest is given to nobody"
            yield note("KQ407", manifest, message, "spec.nodeLabels", "give the rest to a queue or a cohort")


def without_nodes(graph: Graph) -> Iterator[Finding]:
    """KQ404: no node of the inventory has the labels of a flavor."""
    found = kueue(graph)
    if found.world.nodes is None:
        return
    used = {name for queue in found.world.queues.values() for name in queue.flavors}
    for manifest in graph.kind(FLAVOR):
        flavor = found.world.flavors[manifest.ref.name]
        if manifest.ref in found.open or found.nodes_of(flavor.name) or not _local(found, flavor.name):
            continue
        if found.world.queues and flavor.name not in used:
            continue
        if any(
            key in _OF_KUBELET and not any(key in node.labels for node, _ in found.machines) for key in flavor.labels
        ):
            continue
        labels = ", ".join(f"{key}={value}" for key, value in flavor.labels.items())
        near = _nearest(found, flavor)
        message = f"no node has the labels {labels}: what is admitted to this flavor never runs{near}"
        yield say("KQ404", manifest, message, "spec.nodeLabels", "take labels that the nodes have")


_OF_KUBELET = ("kubernetes.io/os", "kubernetes.io/arch")
"""Labels that every kubelet gives its node, so that inventories leave them out."""


def _nearest(found: Kueue, flavor: Flavor) -> str:
    """What the closest nodes have instead."""
    best, shared = None, 0
    for node, _ in found.machines:
        same = sum(node.labels.get(key) == value for key, value in flavor.labels.items())
        if same > shared:
            best, shared = node, same
    if best is None:
        return ""
    others = [f"{k}={best.labels.get(k, '(absent)')}" for k, v in flavor.labels.items() if best.labels.get(k) != v]
    return f"; node {best.name} has {', '.join(others)}"


def unknown_taints(graph: Graph) -> Iterator[Finding]:
    """KQ405: all nodes of a flavor have a taint that the flavor neither names nor tolerates."""
    found = kueue(graph)
    told: set[str] = set()
    for judged, demand, flavor in _placed(found):
        nodes = found.nodes_of(flavor.name)
        tolerations = (*demand.placement.tolerations, *flavor.tolerations)
        taints = [untolerated(node.taints, tolerations) for node, _ in nodes]
        if not nodes or not all(taints):
            continue
        taint = next(each for each in taints if each)
        told.add(flavor.name)
        message = (
            f"pod set {demand.podset.name} is admitted to flavor {flavor.name}, and all nodes of it have the taint "
            f"{taint}, which neither the pods nor the flavor tolerate: they stay Pending"
        )
        fix = f"add a toleration for {taint} to the flavor, and the taint to its nodeTaints"
        if taint.key in demand.pod:
            message += " (unless the cluster adds tolerations for devices, ExtendedResourceToleration)"
            yield warn("KQ405", judged.manifest, message, "spec", fix)
        else:
            yield say("KQ405", judged.manifest, message, "spec", fix)
    for manifest in graph.kind(FLAVOR):
        flavor = found.world.flavors[manifest.ref.name]
        nodes = found.nodes_of(flavor.name) if flavor.labels and flavor.name not in told else []
        common = [taint for taint in nodes[0][0].taints if taint.blocks] if nodes else []
        hidden = [taint for taint in common if all(taint in node.taints for node, _ in nodes)]
        unsaid = [taint for taint in hidden if not _said(taint, flavor)]
        if unsaid:
            message = (
                f"its nodes have the taint {unsaid[0]}, which the flavor neither names in nodeTaints nor tolerates: "
                "jobs without a toleration of their own are admitted and stay Pending"
            )
            yield warn("KQ405", manifest, message, "spec", "add the taint to nodeTaints, or a toleration for it")


def _said(taint: Taint, flavor: Flavor) -> bool:
    return taint in flavor.taints or untolerated((taint,), flavor.tolerations) is None


def _placed(found: Kueue) -> Iterator[tuple[Judged, Demand, Flavor]]:
    """Every pod set with each flavor that it gets in an idle cluster, where its nodes are known and it has no topology.

    Where hosts are the lowest level of a topology the decision itself looks at nodes.
    """
    if found.world.nodes is None:
        return
    for judged in found.judged:
        for each in judged.assignment.podsets if judged.assignment and not judged.assumed else ():
            for name in sorted({choice.flavor for choice in each.choices.values()}):
                flavor = found.world.flavors.get(name)
                if flavor is None or not each.count or not _local(found, name):
                    continue
                levels = found.world.topologies.get(flavor.topology, ())
                if not levels or levels[-1] != HOSTNAME:
                    yield judged, each.demand, flavor


def labels_of_a_sister(graph: Graph) -> Iterator[Finding]:
    """KQ204: since 0.17.6 a flavor takes pods that select by a label which only its sister flavors promise.

    Whether one of its nodes has that label, only an inventory tells; with one, `pod_above_node` looks.
    """
    found = kueue(graph)
    if found.world.nodes is not None or not found.world.settings.behaves("flavor-own-keys"):
        return
    for judged in found.judged:
        queue = found.world.queues.get(judged.queue)
        if queue is None or judged.assignment is None:
            continue
        for each in judged.assignment.podsets:
            for choice in each.choices.values():
                flavors = {name for group in queue.groups if choice.flavor in group.flavors for name in group.flavors}
                known = {name: found.world.flavors[name].labels for name in flavors & found.world.flavors.keys()}
                own = known.pop(choice.flavor, None)
                wanted = each.demand.placement.selector
                keys = sorted(key for key in wanted if own is not None and key not in own)
                if key := next((key for key in keys if any(key in labels for labels in known.values())), ""):
                    yield _unpromised(judged, each.demand.podset.name, choice.flavor, f"{key}={wanted[key]}")
                    break


def _unpromised(judged: Judged, podset: str, flavor: str, label: str) -> Finding:
    message = (
        f"{podset} selects nodes with {label}, and gets flavor {flavor}, which promises no such label while others of "
        "the queue do: admitted, its pods stay Pending unless nodes of that flavor have it"
    )
    fix = f"put the label into the nodeLabels of {flavor}, or select what it has"
    return say("KQ204", judged.manifest, message, "spec", fix, Severity.WARNING, Confidence.LIKELY)


def pod_above_node(graph: Graph) -> Iterator[Finding]:
    """KQ402: a pod larger than every node of the flavor that it is admitted to."""
    found = kueue(graph)
    for judged, demand, flavor in _placed(found):
        nodes = [node for node, _ in found.nodes_of(flavor.name)]
        fitting = [node for node in nodes if _selected(demand, node)]
        if not nodes or any(_holds(node, demand) for node in fitting):
            continue
        if not fitting:
            message = f"no node of flavor {flavor.name} has the labels that pod set {demand.podset.name} insists on"
            yield say("KQ404", judged.manifest, f"{message}: admitted, its pods stay Pending", "spec", "ask for others")
            continue
        lacks = _lacking(demand, fitting)
        message = (
            f"a pod of {demand.podset.name} asks for {lacks}: quota has room for it, and it stays Pending without end"
        )
        yield say("KQ402", judged.manifest, message, "spec", "ask for less in one pod, and for more pods")


def _selected(demand: Demand, node: Node) -> bool:
    return demand.placement.selects(node.labels) and demand.placement.attracts(node.labels, node.name)


def _holds(node: Node, demand: Demand) -> bool:
    return all(_has(node, name) >= value for name, value in demand.pod.items() if value)


def _has(node: Node, resource: str) -> int:
    """What a node offers; of what every node has, nothing said is enough."""
    return node.allocatable.get(resource, _PLENTY if resource in _ROUGH else 0)


def _lacking(demand: Demand, nodes: Sequence[Node]) -> str:
    """The resource of which the largest node has too little, or the mixture."""
    for name, value in sorted(demand.pod.items()):
        most = max(_has(node, name) for node in nodes)
        if value > most:
            return f"{shown(name, value)} {name}, and the largest node of the flavor has {shown(name, most)}"
    return "more than any single node of the flavor has of everything at once"


def not_pinned(graph: Graph) -> Iterator[Finding]:
    """KQ406: a flavor tolerates a taint and selects no nodes: quota is counted, and pods run anywhere."""
    found = kueue(graph)
    for manifest in graph.kind(FLAVOR):
        flavor = found.world.flavors[manifest.ref.name]
        if flavor.labels or manifest.ref in found.open or not _local(found, flavor.name):
            continue
        sisters = [queue for queue in found.world.queues.values() if _beside(queue, flavor.name)]
        if flavor.tolerations or flavor.taints:
            message = (
                "the flavor has tolerations or taints and no nodeLabels: its quota is counted, and the pods may run on "
                "any node"
            )
            yield warn("KQ406", manifest, message, "spec.nodeLabels", "select the nodes by the label that they have")
        elif pinned := [name for queue in sisters for name in _beside(queue, flavor.name) if _labels(found, name)]:
            others = ", ".join(dict.fromkeys(pinned))
            message = f"the flavor selects no nodes, and its sisters do ({others}): its pods may take theirs"
            yield note("KQ406", manifest, message, "spec.nodeLabels", "select nodes that are not theirs")


def _labels(found: Kueue, flavor: str) -> bool:
    return flavor in found.world.flavors and bool(found.world.flavors[flavor].labels)


def _beside(queue: ClusterQueue, flavor: str) -> list[str]:
    return [n for group in queue.groups if flavor in group.flavors for n in group.flavors if n != flavor]


def collisions(graph: Graph) -> Iterator[Finding]:
    """KQ403: flavors of two resource groups give one pod different values of the same node label."""
    found = kueue(graph)
    for manifest in graph.kind(CLUSTER_QUEUE):
        queue = found.world.queues[manifest.ref.name]
        if manifest.ref in found.open:
            continue
        seen: dict[str, tuple[int, str, str]] = {}
        told = False
        for index, group in enumerate(queue.groups):
            for name in group.flavors:
                flavor = found.world.flavors.get(name)
                for key, value in flavor.labels.items() if flavor else ():
                    at, other, before = seen.setdefault(key, (index, value, name))
                    if at != index and other != value and not told and not _agrees(found, queue, at, key, value):
                        told = True
                        message = (
                            f"flavor {before} sets {key}={other} and flavor {name} of another group {key}={value}: "
                            "a pod that asks for resources of both gets one of them, and may wait for the wrong nodes"
                        )
                        fix = "put the resources into one group"
                        yield say("KQ403", manifest, message, f"spec.resourceGroups[{index}]", fix)


def _agrees(found: Kueue, queue: ClusterQueue, index: int, key: str, value: str) -> bool:
    """Whether some flavor of a group sets the label to the same value."""
    return any(
        found.world.flavors[name].labels.get(key) == value
        for name in queue.groups[index].flavors
        if name in found.world.flavors
    )


RULES = (
    quota_above_nodes,
    idle_devices,
    without_nodes,
    unknown_taints,
    labels_of_a_sister,
    pod_above_node,
    not_pinned,
    collisions,
)
TREE = ()
