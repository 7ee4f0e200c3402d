"""ClusterQueues and Cohorts by themselves: what Kueue's webhooks refuse, and numbers that never have an effect.

Sources: kueue v0.17.0 pkg/webhooks/clusterqueue_webhook.go, cohort_webhook.go; pkg/cache/scheduler/resource_node.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from blueprint.admission.amounts import FlavorResource, quantity, shown
from blueprint.admission.quota import QuotaNode
from blueprint.check.graph import Graph
from blueprint.check.kueue import CLUSTER_QUEUE, COHORT, Kueue, kueue
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import Body, mapping, maps, placeholder, text, texts
from blueprint.finding import Finding
from blueprint.objects import Manifest

_MOST_FLAVORS = _MOST_RESOURCES = 256
_MOST_PAIRS = 512


def groups(manifest: Manifest) -> list[Body]:
    """The resource groups of a ClusterQueue or Cohort."""
    return maps(mapping(manifest.body.get("spec")).get("resourceGroups"))


def rows(manifest: Manifest) -> Iterator[tuple[str, str, Body]]:
    """Every row of quota: its path, its flavor, the row."""
    for g, group in enumerate(groups(manifest)):
        for f, flavor in enumerate(maps(group.get("flavors"))):
            for r, row in enumerate(maps(flavor.get("resources"))):
                yield f"spec.resourceGroups[{g}].flavors[{f}].resources[{r}]", text(flavor.get("name")), row


def resource_order(graph: Graph) -> Iterator[Finding]:
    """KQ121: the resources of a flavor stand in another order than coveredResources."""
    for manifest in graph.kind(CLUSTER_QUEUE, COHORT):
        for g, group in enumerate(groups(manifest)):
            covered = texts(group.get("coveredResources"))
            for f, flavor in enumerate(maps(group.get("flavors"))):
                named = [text(row.get("name")) for row in maps(flavor.get("resources"))]
                wrong = [i for i, (name, want) in enumerate(zip(named, covered, strict=False)) if name != want]
                if wrong and not any(map(placeholder, (*named, *covered))):
                    path = f"spec.resourceGroups[{g}].flavors[{f}].resources"
                    message = (
                        f"flavor {flavor.get('name')} lists {', '.join(named)}, coveredResources {', '.join(covered)}: "
                        f"the webhook wants the same names in the same order (they differ at {wrong})"
                    )
                    yield say("KQ121", manifest, message, path, f"order the rows: {', '.join(covered)}")


def repeated(graph: Graph) -> Iterator[Finding]:
    """KQ122: a resource or a flavor stands in two groups, or twice in one."""
    for manifest in graph.kind(CLUSTER_QUEUE, COHORT):
        resources: dict[str, str] = {}
        flavors: dict[str, str] = {}
        for g, group in enumerate(groups(manifest)):
            for i, name in enumerate(texts(group.get("coveredResources"))):
                path = f"spec.resourceGroups[{g}].coveredResources[{i}]"
                if resources.setdefault(name, path) != path:
                    message = f"{name} is covered twice, here and at {resources[name]}"
                    yield say("KQ122", manifest, message, path, "cover each resource in one group")
            for i, flavor in enumerate(maps(group.get("flavors"))):
                name, path = text(flavor.get("name")), f"spec.resourceGroups[{g}].flavors[{i}].name"
                if flavors.setdefault(name, path) != path:
                    message = f"flavor {name} stands here and at {flavors[name]}; a flavor belongs to one group"
                    yield say("KQ122", manifest, message, path, "put the resources of a flavor into one group")


def limits(graph: Graph) -> Iterator[Finding]:
    """KQ123: amounts that the webhooks refuse: below zero, a limit without anybody to borrow from, lending too much."""
    for manifest in graph.kind(CLUSTER_QUEUE, COHORT):
        spec = mapping(manifest.body.get("spec"))
        queue = manifest.kind == "ClusterQueue"
        parent = spec.get("cohortName") or spec.get("cohort") if queue else spec.get("parentName") or spec.get("parent")
        for path, _, row in rows(manifest):
            for field in ("nominalQuota", "borrowingLimit", "lendingLimit"):
                amount = quantity(row.get(field))
                if amount is None:
                    continue
                if amount < 0:
                    yield say("KQ123", manifest, f"{field} is below zero", f"{path}.{field}", "0 or more")
                elif field != "nominalQuota" and not parent:
                    whose = "cohortName" if queue else "parentName"
                    message = f"{field} needs {whose}: there is nobody to borrow from or lend to"
                    yield say("KQ123", manifest, message, f"{path}.{field}", f"set {whose}, or leave the limit out")
            lending, nominal = quantity(row.get("lendingLimit")), quantity(row.get("nominalQuota")) or 0
            if queue and parent and lending is not None and lending > nominal >= 0 and not _open(row):
                message = f"lendingLimit {row['lendingLimit']} is more than the nominalQuota {row.get('nominalQuota')}"
                yield say("KQ123", manifest, message, f"{path}.lendingLimit", "lend at most what there is")


def weights(graph: Graph) -> Iterator[Finding]:
    """KQ123: a weight below zero."""
    for manifest in graph.kind(CLUSTER_QUEUE, COHORT):
        weight = quantity(mapping(mapping(manifest.body.get("spec")).get("fairSharing")).get("weight"))
        if weight is not None and weight < 0:
            yield say("KQ123", manifest, "the weight is below zero", "spec.fairSharing.weight", "0 or more")


def _open(row: Body) -> bool:
    return any(map(placeholder, row.values()))


def too_many(graph: Graph) -> Iterator[Finding]:
    """KQ124: more flavors, resources or rows than the webhook of ClusterQueues takes."""
    for manifest in graph.kind(CLUSTER_QUEUE):
        found = groups(manifest)
        flavors = sum(len(maps(group.get("flavors"))) for group in found)
        resources = sum(len(texts(group.get("coveredResources"))) for group in found)
        for count, most, what in (
            (flavors, _MOST_FLAVORS, "flavors"),
            (resources, _MOST_RESOURCES, "covered resources"),
        ):
            if count > most:
                yield say("KQ124", manifest, f"{count} {what} are more than {most}", "spec.resourceGroups", "split it")
        for g, group in enumerate(found):
            pairs = sum(len(maps(flavor.get("resources"))) for flavor in maps(group.get("flavors")))
            if pairs > _MOST_PAIRS:
                message = f"{pairs} rows of flavors and resources in one group are more than {_MOST_PAIRS}"
                yield say("KQ124", manifest, message, f"spec.resourceGroups[{g}]", "split the group")


def _node(found: Kueue, manifest: Manifest) -> QuotaNode | None:
    """The queue in the tree of quotas, None where something that counts is not known."""
    if manifest.ref in found.open or "cohort" in mapping(manifest.body.get("spec")):
        return None  # a field of v1beta1 is KQ701's
    cohort = found.world.queues[manifest.ref.name].cohort
    lenders = any(ref.kind in ("ClusterQueue", "Cohort") for ref in found.open)
    if cohort and (lenders or not found.graph.closed(CLUSTER_QUEUE) or _lonely(found, cohort)):
        return None
    return found.state.nodes.get(manifest.ref.name)


def _lonely(found: Kueue, cohort: str) -> bool:
    """Whether nobody else in the tree is of this cohort, so that its other members may stand elsewhere."""
    node = found.state.nodes.get(f"Cohort {cohort}")
    if node is None or node.quotas:
        return False
    root = node.root()
    return not root.quotas and len(list(islice(_leaves(root), 2))) < 2


def _leaves(node: QuotaNode) -> Iterator[QuotaNode]:
    """The queues below a node, as far as they are asked for: a cohort may have thousands."""
    levels = [iter((node,))]
    while levels:
        each = next(levels[-1], None)
        if each is None:
            levels.pop()
            continue
        levels.append(iter(each.children))
        if each.queue:
            yield each


def nothing_to_give(graph: Graph) -> Iterator[Finding]:
    """KQ125: a covered resource of which no flavor can ever give anything, not even by borrowing."""
    found = kueue(graph)
    for manifest in graph.kind(CLUSTER_QUEUE):
        node = _node(found, manifest)
        if node is None or node.name != manifest.ref.name:
            continue
        for g, group in enumerate(found.world.queues[manifest.ref.name].groups):
            for i, resource in enumerate(group.covered):
                pairs = [FlavorResource(flavor, resource) for flavor in group.flavors]
                if pairs and all(node.capacity(pair) <= 0 <= node.quota(pair).nominal for pair in pairs):
                    message = (
                        f"no flavor can ever give {resource}: the quota is 0 and nobody lends any; "
                        "a job that asks for it is never admitted"
                    )
                    fix = "give it quota, a cohort with quota, or leave the resource out of coveredResources"
                    yield warn("KQ125", manifest, message, f"spec.resourceGroups[{g}].coveredResources[{i}]", fix)


def dead_limits(graph: Graph) -> Iterator[Finding]:
    """KQ126: a borrowing limit above all that the others could ever lend, so that it limits nothing."""
    found = kueue(graph)
    for manifest in graph.kind(CLUSTER_QUEUE):
        node = _node(found, manifest)
        if node is None or node.parent is None or not manifest.ref.name:
            continue
        for path, flavor, row in rows(manifest):
            pair = FlavorResource(flavor, text(row.get("name")))
            limit = node.quota(pair).borrowing
            if not limit or pair.resource in ("cpu", "memory"):
                continue
            lendable = node.kept(pair) + node.parent.capacity(pair) - node.subtree.get(pair, 0)
            if 0 < lendable < limit and not _replicated(node, pair):
                message = (
                    f"borrowingLimit {row['borrowingLimit']} never binds: the rest of the cohort can lend "
                    f"{shown(pair.resource, lendable)} {pair.resource} on {flavor}"
                )
                yield note("KQ126", manifest, message, f"{path}.borrowingLimit", "lower it, or leave it out")


def _replicated(node: QuotaNode, pair: FlavorResource) -> bool:
    """Whether a limit further up binds first: then this one is only meant as a second line."""
    return any(above.quota(pair).borrowing is not None for above in node.ancestors())


def alone_in_cohort(graph: Graph) -> Iterator[Finding]:
    """KQ127: a queue names a cohort that nothing else in the tree belongs to, while other cohorts have members."""
    found = kueue(graph)
    if not graph.closed(CLUSTER_QUEUE):
        return
    members: dict[str, int] = {}
    for queue in found.world.queues.values():
        members[queue.cohort] = members.get(queue.cohort, 0) + 1
    shared = [name for name, count in members.items() if name and (count > 1 or name in found.world.cohorts)]
    for manifest in graph.kind(CLUSTER_QUEUE):
        queue_spec = found.world.queues[manifest.ref.name]
        cohort = queue_spec.cohort
        if not cohort or placeholder(cohort) or members[cohort] > 1 or cohort in found.world.cohorts:
            continue
        near = [name for name in shared if _near(name, cohort)]
        if near:
            message = f"no other queue is in cohort {cohort}, and none is called so; cohort {near[0]} has members"
            yield warn("KQ127", manifest, message, "spec.cohortName", f"did you mean {near[0]}?")


def _near(name: str, other: str) -> bool:
    """Whether two names differ as a slip of the pen does; `team-1` and `team-2`, `a` and `b` do not."""
    if len(name) < len(other):
        name, other = other, name
    if name == other or len(other) < _SHORT:
        return False
    if name.replace("-", "") == other.replace("-", ""):
        return True
    at = next((i for i, letter in enumerate(other) if name[i] != letter), len(other))
    if len(name) == len(other):
        swapped = name[:at] + name[at : at + 2][::-1] + name[at + 2 :]
        return swapped == other
    return name[:at] + name[at + 1 :] == other and name[at].isalpha()


_SHORT = 4

RULES = (resource_order, repeated, limits, weights, too_many, nothing_to_give, dead_limits, alone_in_cohort)
TREE = ()
