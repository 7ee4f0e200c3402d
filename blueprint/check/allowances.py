"""How many accelerators a workload may have at the most, by the quota of its namespace and by its queue.

Sources: k8s.io/kubernetes@v1.35.4 pkg/quota/v1/evaluator/core/pods.go; kueue v0.17.0 pkg/cache/scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from blueprint.check.graph import Graph, labels_of
from blueprint.check.native.resources import amount
from blueprint.check.pods import PodTemplate, containers
from blueprint.check.shapes import mapping, maps, text
from blueprint.finding import Ref
from blueprint.objects import Manifest


def accelerators(pods: Sequence[PodTemplate]) -> Mapping[str, int]:
    """How many of each accelerator one replica asks for, by the first of its pod templates."""
    found: dict[str, int] = {}
    for pod in pods[:1]:
        for _, container in containers(pod.spec):
            resources = mapping(container.get("resources"))
            asked = {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}
            for key, value in asked.items():
                name = str(key)
                if name.endswith(("/gpu", "/gpu.shared")) or "/mig-" in name:
                    found[name] = found.get(name, 0) + int(amount(value) or 0)
    return {name: count for name, count in found.items() if count}


def limits(
    graph: Graph, workload: Manifest, pods: Sequence[PodTemplate], resource: str
) -> Iterator[tuple[Fraction, str]]:
    """Each bound on the amount of a resource that all replicas of a workload may have together, and what sets it."""
    for quota in graph.within(workload.ref.namespace, "ResourceQuota"):
        if not mapping(quota.body.get("spec")).get("scopeSelector"):
            limit = amount(mapping(mapping(quota.body.get("spec")).get("hard")).get(f"requests.{resource}"))
            if limit is not None:
                yield limit, f"ResourceQuota {quota.ref.name}"
    labels = {**labels_of(workload.body), **(labels_of({"metadata": pods[0].metadata}) if pods else {})}
    name = labels.get("kueue.x-k8s.io/queue-name", "")
    queue = graph.get(Ref("kueue.x-k8s.io", "LocalQueue", workload.ref.namespace, name)) if name else None
    cluster = (
        graph.get(Ref("kueue.x-k8s.io", "ClusterQueue", "", text(mapping(queue.body.get("spec")).get("clusterQueue"))))
        if queue
        else None
    )
    if cluster is not None:
        limit = _quota(mapping(cluster.body.get("spec")), resource)
        if limit is not None:
            yield limit, f"ClusterQueue {cluster.ref.name}"


def plain(amount: Fraction) -> str:
    """An amount as a person writes it: `12`, `1.5`."""
    return str(amount) if amount.denominator == 1 else f"{float(amount):g}"


def _quota(spec: dict[str, object], resource: str) -> Fraction | None:
    """What a ClusterQueue can have at the most over all flavors, None where it may borrow without limit."""
    cohort = spec.get("cohortName") or spec.get("cohort")
    total: Fraction | None = None
    for group in maps(spec.get("resourceGroups")):
        for flavor in maps(group.get("flavors")):
            for row in maps(flavor.get("resources")):
                if row.get("name") != resource:
                    continue
                nominal, borrowed = amount(row.get("nominalQuota")), amount(row.get("borrowingLimit"))
                if nominal is None or (cohort and borrowed is None):
                    return None
                total = (total or Fraction(0)) + nominal + (borrowed or 0 if cohort else 0)
    return total
