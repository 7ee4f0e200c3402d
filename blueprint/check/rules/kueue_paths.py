"""The way from a namespace to quota: LocalQueue, ClusterQueue, cohort, and what makes one of them admit nothing.

Sources: kueue v0.17.0 pkg/cache/scheduler/clusterqueue.go (`updateQueueStatus`, `inactiveReason`), snapshot.go;
pkg/cache/queue/manager.go; pkg/scheduler/scheduler.go `nominate`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from blueprint.admission.match import LabelSelector
from blueprint.admission.queues import GROUP
from blueprint.admission.state import MULTIKUEUE, PROVISIONING, controller
from blueprint.check.graph import Graph
from blueprint.check.kueue import CHECK, CLUSTER_QUEUE, COHORT, FLAVOR, LOCAL_QUEUE, TOPOLOGY, Kueue, kueue
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import known, mapping, maps, placeholder, text, texts
from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.objects import Manifest

_NAME = "kubernetes.io/metadata.name"


def closest(name: str, names: Sequence[str]) -> str:
    """A hint at the name that may have been meant, "" without one."""
    near = get_close_matches(name, names, 1, cutoff=0.75)
    return f"did you mean {near[0]}?" if near else ""


def unknown_cluster_queues(graph: Graph) -> Iterator[Finding]:
    """KQ101: a LocalQueue names no ClusterQueue, or one that is not there."""
    found = kueue(graph)
    for manifest in graph.kind(LOCAL_QUEUE):
        name = mapping(manifest.body.get("spec")).get("clusterQueue")
        if placeholder(name):
            continue
        if not name:
            message = "the LocalQueue names no ClusterQueue; it is accepted, and nothing in it is ever admitted"
            yield say("KQ101", manifest, message, "spec.clusterQueue", "name a ClusterQueue")
        elif text(name) not in found.world.queues and graph.closed(CLUSTER_QUEUE):
            message = f"there is no ClusterQueue {name}: nothing in this LocalQueue is ever admitted"
            yield say("KQ101", manifest, message, "spec.clusterQueue", closest(text(name), [*found.world.queues]))


def inactive(graph: Graph) -> Iterator[Finding]:
    """KQ102: a ClusterQueue that admits nothing, because something that it names is missing or not allowed."""
    found = kueue(graph)
    behind: dict[str, list[str]] = defaultdict(list)
    for (namespace, name), local in found.world.local_queues.items():
        behind[local.cluster_queue].append(f"{namespace}/{name}")
    for manifest in graph.kind(CLUSTER_QUEUE):
        if manifest.ref in found.open:
            continue
        why = [*_missing(found, manifest), *(message for _, message in check_problems(found, manifest))]
        if why:
            dead = behind.get(manifest.ref.name, [])
            also = f"; behind it: LocalQueue {', '.join(dead[:5])}" if dead else ""
            message = f"the queue is inactive and admits nothing: {'; '.join(why)}{also}"
            names = [*found.world.flavors]
            lost = [name for name in found.world.queues[manifest.ref.name].flavors if name not in found.world.flavors]
            fix = closest(lost[0], names) if lost and names else ""
            yield say("KQ102", manifest, message, "spec", fix or "bring what is missing")


def _missing(found: Kueue, manifest: Manifest) -> Iterator[str]:
    """Flavors and topologies that are not there; more than one MultiKueue check forgives the latter."""
    world, graph = found.world, found.graph
    queue = world.queues[manifest.ref.name]
    flavors = [name for name in queue.flavors if name not in world.flavors]
    if flavors and graph.closed(FLAVOR):
        yield f"there is no ResourceFlavor {', '.join(flavors)} (FlavorNotFound)"
    remote = any(controller(world, check) == MULTIKUEUE for check in queue.checks)
    for name in queue.flavors:
        topology = world.flavors[name].topology if name in world.flavors else ""
        if topology and topology not in world.topologies and not remote and graph.closed(TOPOLOGY):
            yield f"flavor {name} names Topology {topology}, which is not there (TopologyNotFound)"


def check_problems(found: Kueue, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """What is wrong with the admission checks of a queue, as (check, words)."""
    world, graph = found.world, found.graph
    checks = world.queues[manifest.ref.name].checks
    flavors = frozenset(world.queues[manifest.ref.name].flavors)
    for check in checks:
        if placeholder(check):
            return
        if check not in world.checks and graph.closed(CHECK):
            yield check, f"there is no AdmissionCheck {check} (AdmissionCheckNotFound)"
        elif (kind := dead_parameters(found, check)) is not None:
            yield check, f"AdmissionCheck {check} is not active: its {kind} does not exist (AdmissionCheckInactive)"
    remote = [check for check in checks if controller(world, check) == MULTIKUEUE]
    if len(remote) > 1:
        yield remote[1], f"{' and '.join(remote)} are both for MultiKueue (MultipleMultiKueueAdmissionChecks)"
    for check in remote:
        if checks[check] != flavors:
            yield check, f"{check} is for MultiKueue and not on all flavors (MultiKueueAdmissionCheckAppliedPerFlavor)"
    local = [check for check in checks if controller(world, check) == PROVISIONING]
    if remote and local:
        yield remote[0], f"{remote[0]} and {local[0]} exclude each other (MultiKueueWithProvisioningRequest)"


def dead_parameters(found: Kueue, check: str) -> str | None:
    """The kind of parameters that an AdmissionCheck of Kueue's own controllers names in vain, None where all is well.

    A MultiKueueConfig may be brought by the one who runs the worker clusters: it is missed only among its peers.
    """
    kind = {PROVISIONING: "ProvisioningRequestConfig", MULTIKUEUE: "MultiKueueConfig"}.get(
        controller(found.world, check)
    )
    if kind is None or check not in found.world.checks:
        return None
    parameters = mapping(mapping(found.world.checks[check].body.get("spec")).get("parameters"))
    name = parameters.get("name")
    if placeholder(name) or (name and found.world.find(kind, "", text(name)) is not None):
        return None
    peers = f"{kind}.{GROUP}"
    if name and not found.graph.closed(peers) and (kind == "MultiKueueConfig" or found.graph.generated(peers)):
        return None
    return f"{kind} {name}" if name else kind


def cycles(graph: Graph) -> Iterator[Finding]:
    """KQ102: cohorts whose parents lead back to themselves: every queue below them is left out of scheduling."""
    found = kueue(graph)
    parents = {name: cohort.parent for name, cohort in found.world.cohorts.items() if not placeholder(cohort.parent)}
    told: set[str] = set()
    for manifest in graph.kind(COHORT):
        walk = {manifest.ref.name: None}
        parent = parents.get(manifest.ref.name)
        while parent and parent not in walk and parent not in told:
            walk[parent] = None
            parent = parents.get(parent)
        told.update(walk)
        if not parent or parent not in walk:
            continue
        names = [*walk]
        cycle = names[names.index(parent) :]
        queues = sorted(
            name
            for name, why in found.state.inactive.items()
            if any(kind == "CohortCycle" and any(f" {each} " in f" {words} " for each in cycle) for kind, words in why)
        )
        first = graph.get(Ref(GROUP, "Cohort", "", parent)) or manifest
        lost = f"; ClusterQueue {', '.join(queues[:5])} admit nothing, and no status says so" if queues else ""
        message = f"the parents go round in a circle: {' → '.join([*cycle, parent])}{lost}"
        yield say("KQ102", first, message, "spec.parentName", "let one of them have no parentName")


def namespaces(graph: Graph) -> Iterator[Finding]:
    """KQ103: a queue without namespaceSelector serves nobody; another does not serve a namespace that relies on it."""
    found = kueue(graph)
    for manifest in graph.kind(CLUSTER_QUEUE):
        spec = mapping(manifest.body.get("spec"))
        if spec.get("namespaceSelector") is None:
            message = "there is no namespaceSelector, and that matches no namespace: the queue serves nobody"
            yield say("KQ103", manifest, message, "spec.namespaceSelector", "write {} for all, or a selector")
    for manifest in graph.kind(LOCAL_QUEUE):
        queue = found.world.queues.get(text(mapping(manifest.body.get("spec")).get("clusterQueue")))
        if queue is None or queue.selector is None or queue.ref in found.open or placeholder(manifest.ref.namespace):
            continue
        namespace = manifest.ref.namespace or "default"
        labels = found.world.namespaces.get(namespace)
        if _may_serve(queue.selector, namespace, labels):
            continue
        message = (
            f"ClusterQueue {queue.name} does not serve namespace {namespace}: it wants {queue.selector}, "
            f"the namespace has {_shown(labels or {_NAME: namespace})}"
        )
        yield say(
            "KQ103", manifest, message, "spec.clusterQueue", "label the namespace, or widen the namespaceSelector"
        )


def _shown(labels: Mapping[str, str]) -> str:
    """The labels of a namespace, that of its name only where there is no other."""
    own = {key: value for key, value in labels.items() if key != _NAME} or labels
    return ", ".join(f"{key}={value}" for key, value in sorted(own.items())[:6])


def _may_serve(selector: LabelSelector, namespace: str, labels: Mapping[str, str] | None) -> bool:
    """Whether the namespace may be served; of one that is not in the tree only the name is known."""
    if labels is not None:
        return selector.matches(labels)
    return all(each.matches({_NAME: namespace}) for each in selector.requirements if each.key == _NAME)


def stopped(graph: Graph) -> Iterator[Finding]:
    """KQ107: jobs of the tree wait behind a queue that is stopped."""
    found = kueue(graph)
    waiting: dict[Ref, list[str]] = defaultdict(list)
    for each in found.judged:
        for reason in each.reasons:
            if reason.code == "KQ107" and reason.object is not None:
                waiting[reason.object].append(str(each.manifest.ref))
    for ref, jobs in waiting.items():
        manifest = graph.get(ref)
        if manifest is not None:
            policy = mapping(manifest.body.get("spec")).get("stopPolicy")
            message = f"stopPolicy {policy}: {', '.join(jobs[:5])} {'wait' if len(jobs) > 1 else 'waits'} without end"
            yield warn("KQ107", manifest, message, "spec.stopPolicy", "None, once the work is to go on")


def checks(graph: Graph) -> Iterator[Finding]:
    """KQ803: admission checks that are missing, inactive, or do not go together; onFlavors that names none of them."""
    found = kueue(graph)
    for manifest in graph.kind(CLUSTER_QUEUE):
        rows = maps(mapping(mapping(manifest.body.get("spec")).get("admissionChecksStrategy")).get("admissionChecks"))
        places = {
            text(row.get("name")): f"spec.admissionChecksStrategy.admissionChecks[{i}]" for i, row in enumerate(rows)
        }
        for check, message in check_problems(found, manifest):
            fix = closest(check, [*found.world.checks]) if check not in found.world.checks else ""
            yield say("KQ803", manifest, message, places.get(check, "spec.admissionChecks"), fix)
        flavors = found.world.queues[manifest.ref.name].flavors
        for index, row in enumerate(rows):
            for place, flavor in enumerate(texts(row.get("onFlavors"))):
                if known(flavor) and flavor not in flavors and not any(map(placeholder, flavors)):
                    path = f"spec.admissionChecksStrategy.admissionChecks[{index}].onFlavors[{place}]"
                    message = f"check {row.get('name')} is for flavor {flavor}, which the queue does not have"
                    alone = not set(texts(row.get("onFlavors"))) & set(flavors)
                    message += ": the check is never asked for" if alone else ""
                    fix = closest(flavor, list(flavors)) or "name a flavor of the queue"
                    sure = None if alone or not found.before("0.17.1") else Confidence.LIKELY
                    yield say("KQ803", manifest, message, path, fix, Severity.ERROR, sure)


RULES = (unknown_cluster_queues, inactive, cycles, namespaces, stopped, checks)
TREE = ()
