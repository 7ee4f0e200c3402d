"""Policies of queues that do not do what they say: preemption, borrowing, weights, usage.

Sources: kueue v0.17.0 pkg/scheduler/preemption/{classical,fairsharing}, pkg/cache/scheduler/fair_sharing.go,
apis/kueue/v1beta2/clusterqueue_types.go; issues kubernetes-sigs/kueue#4165, #3779, #10872.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from blueprint.admission.podsets import PRIORITY_LABEL
from blueprint.admission.quota import QuotaNode
from blueprint.check.graph import Graph
from blueprint.check.kueue import CLUSTER_QUEUE, COHORT, Kueue, kueue
from blueprint.check.rules.say import note, warn
from blueprint.check.shapes import mapping, text
from blueprint.finding import Finding
from blueprint.objects import Manifest

_NEVER = ("", "Never")


def borrowing_under_fair_sharing(graph: Graph) -> Iterator[Finding]:
    """KQ802: borrowWithinCohort, which has no effect under fair sharing."""
    found = kueue(graph)
    if found.world.settings.strategies is None:
        return
    for manifest in graph.kind(CLUSTER_QUEUE):
        preemption = mapping(mapping(manifest.body.get("spec")).get("preemption"))
        if text(mapping(preemption.get("borrowWithinCohort")).get("policy")) not in _NEVER:
            message = (
                "borrowWithinCohort is for classical preemption; the configuration has fair sharing on, under which it "
                "does not do what it says"
            )
            yield warn("KQ802", manifest, message, "spec.preemption.borrowWithinCohort", "remove it")


def reclaim_alone(graph: Graph) -> Iterator[Finding]:
    """KQ802: reclaimWithinCohort on a queue without a cohort."""
    found = kueue(graph)
    for manifest in graph.kind(CLUSTER_QUEUE):
        queue = found.world.queues[manifest.ref.name]
        if queue.policies.within_cohort not in _NEVER and not queue.cohort and manifest.ref not in found.open:
            if "cohort" in mapping(manifest.body.get("spec")):
                continue  # a field of v1beta1 is KQ701's
            message = f"reclaimWithinCohort {queue.policies.within_cohort} has no effect: the queue is in no cohort"
            yield note(
                "KQ802", manifest, message, "spec.preemption.reclaimWithinCohort", "set cohortName, or remove it"
            )


def nobody_preempted(graph: Graph) -> Iterator[Finding]:
    """KQ802: jobs of several priorities in a queue that never preempts."""
    found = kueue(graph)
    values: dict[str, dict[int, str]] = defaultdict(dict)
    for judged in found.judged:
        if PRIORITY_LABEL in judged.job.labels and judged.queue:
            values[judged.queue][judged.way.priority] = judged.manifest.ref.name
    for manifest in graph.kind(CLUSTER_QUEUE):
        queue = found.world.queues[manifest.ref.name]
        here = values.get(queue.name, {})
        fair = found.world.settings.strategies is not None
        if len(here) > 1 and queue.policies.within_queue in _NEVER and not fair:
            high, low = here[max(here)], here[min(here)]
            message = f"jobs of {len(here)} priorities come here, and the queue never preempts: {high} waits for {low}"
            yield note("KQ802", manifest, message, "spec.preemption", "withinClusterQueue: LowerPriority, if meant")


def weights_without_sharing(graph: Graph) -> Iterator[Finding]:
    """KQ806: weights of queues and cohorts, while the configuration has no fair sharing."""
    found = kueue(graph)
    settings = found.world.settings
    if not settings.given or settings.strategies is not None or not found.configurations:
        return
    for manifest in graph.kind(CLUSTER_QUEUE, COHORT):
        weight = _weight(found, manifest)
        if weight != 1:
            message = f"weight {weight:g} has no effect: the configuration of Kueue has no fairSharing"
            yield warn(
                "KQ806", manifest, message, "spec.fairSharing.weight", "configure fairSharing, or remove the weight"
            )


def _weight(found: Kueue, manifest: Manifest) -> float:
    if manifest.kind == "ClusterQueue":
        return found.world.queues[manifest.ref.name].weight
    return found.world.cohorts[manifest.ref.name].weight


def usage_without_sharing(graph: Graph) -> Iterator[Finding]:
    """KQ807: a queue orders by past use, and the configuration does not have that kept."""
    found = kueue(graph)
    bodies = [each.body for each in found.configurations if each.body]
    if not bodies or any("admissionFairSharing" in body for body in bodies):
        return
    for manifest in graph.kind(CLUSTER_QUEUE):
        scope = mapping(mapping(manifest.body.get("spec")).get("admissionScope"))
        if scope.get("admissionMode") == "UsageBasedAdmissionFairSharing":
            message = "ordering by past use has no effect: the configuration of Kueue has no admissionFairSharing"
            yield warn(
                "KQ807", manifest, message, "spec.admissionScope.admissionMode", "configure admissionFairSharing"
            )


def weights_on_the_wrong_level(graph: Graph) -> Iterator[Finding]:
    """KQ805: weights of queues below cohorts that have none: between cohorts each counts 1, whatever is below."""
    found = kueue(graph)
    if found.world.settings.strategies is None or found.open:
        return
    written = {m.ref.name for m in graph.kind(COHORT) if "fairSharing" in mapping(m.body.get("spec"))}
    roots = {node.root().name: node.root() for node in found.state.nodes.values() if not node.queue}
    for root in roots.values():
        for node in _inner(root):
            below = [child for child in node.children if not child.queue]
            unset = [child for child in below if child.name not in written]
            sums = {child.name: sum(each.weight for each in child.children if each.queue) for child in below}
            if len(below) < 2 or not unset or not _weighted(unset):
                continue
            manifest = next((m for m in graph.kind(COHORT) if m.ref.name == unset[0].name), None)
            manifest = manifest or next(m for m in graph.kind(CLUSTER_QUEUE) if _in(found, m, unset[0].name))
            whole = sum(child.weight for child in below)
            shares = ", ".join(f"{child.name} {100 * child.weight / whole:.3g} %" for child in below if whole)
            message = (
                f"weights do not add up the tree: cohort {unset[0].name} has none of its own and counts 1 beside its "
                f"sisters, whatever its queues weigh; of what is contested they get: {shares}"
            )
            yield warn("KQ805", manifest, message, "spec.fairSharing", f"weight: {sums[unset[0].name]:g}")


def _inner(root: QuotaNode) -> Iterator[QuotaNode]:
    stack = [root]
    while stack:
        node = stack.pop()
        if not node.queue:
            yield node
            stack += node.children


def _weighted(cohorts: list[QuotaNode]) -> bool:
    return any(each.queue and each.weight != 1 for cohort in cohorts for each in cohort.children)


def _in(found: Kueue, manifest: Manifest, cohort: str) -> bool:
    return found.world.queues[manifest.ref.name].cohort == cohort


RULES = (
    borrowing_under_fair_sharing,
    reclaim_alone,
    nobody_preempted,
    weights_without_sharing,
    usage_without_sharing,
    weights_on_the_wrong_level,
)
TREE = ()
