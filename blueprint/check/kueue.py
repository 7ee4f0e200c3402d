"""Kueue as a tree sets it up: read once, with the decision about every queued job, for all rules of its families."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import orjson
import yaml_rs

from blueprint.admission.decide import after_admission, settle
from blueprint.admission.demand import Demand, Workload, demands
from blueprint.admission.flavors import Assignment
from blueprint.admission.gates import Way, queue_way
from blueprint.admission.match import HOSTNAME
from blueprint.admission.nodes import INVENTORY_LABEL, Node
from blueprint.admission.podsets import QUEUE_LABEL, Job, PodSet, Wish, job, kinds
from blueprint.admission.queues import GROUP, ClusterQueue
from blueprint.admission.reasons import Reason
from blueprint.admission.settings import DEFAULT_VERSION
from blueprint.admission.settings import GROUP as CONFIGURATION_GROUP
from blueprint.admission.state import State, idle, too_deep
from blueprint.admission.world import World, world
from blueprint.catalog.tables import table
from blueprint.catalog.versions import version
from blueprint.check import machines
from blueprint.check.graph import Graph, kind_of, labels_of
from blueprint.check.images import image
from blueprint.check.pods import containers
from blueprint.check.shapes import Body, mapping, maps, placeholder, text
from blueprint.finding import Ref
from blueprint.objects import Manifest

CLUSTER_QUEUE = f"ClusterQueue.{GROUP}"
LOCAL_QUEUE = f"LocalQueue.{GROUP}"
COHORT = f"Cohort.{GROUP}"
FLAVOR = f"ResourceFlavor.{GROUP}"
TOPOLOGY = f"Topology.{GROUP}"
CHECK = f"AdmissionCheck.{GROUP}"

JOBS = frozenset({*kinds(), "CronJob.batch"})
"""Kinds (`Job.batch`) that Kueue can queue, themselves or their pods."""

BATCH = JOBS - {
    "Pod",
    "Deployment.apps",
    "StatefulSet.apps",
    "Rollout.argoproj.io",
    "LeaderWorkerSet.leaderworkerset.x-k8s.io",
    "RayCluster.ray.io",
    "RayService.ray.io",
    "Workload.kueue.x-k8s.io",
}
"""Those that run to an end, and that Kueue suspends themselves."""


@dataclass(frozen=True, slots=True)
class Configured:
    """A configuration of Kueue and where it stands: in a file of its own, or below a key of a ConfigMap.

    `body` is None where the text is no YAML.
    """

    manifest: Manifest
    body: Body | None
    key: str = ""

    def at(self, path: str) -> str:
        """The path of a field for a finding."""
        return f"data[{self.key}]" if self.key else path


@dataclass(frozen=True, slots=True)
class Judged:
    """What Kueue makes of one job in an idle cluster.

    `assignment` is None where it never gets one, or where it does not come to that. `assumed` tells that the way to the
    queue is not in the tree, and the only ClusterQueue is taken for it.
    """

    manifest: Manifest
    job: Job
    way: Way
    demands: tuple[Demand, ...]
    reasons: tuple[Reason, ...]
    assignment: Assignment | None
    assumed: bool = False

    @property
    def queue(self) -> str:
        """The ClusterQueue that it comes to, "" for none."""
        return self.way.cluster_queue.name if self.way.cluster_queue else ""


@dataclass(frozen=True)
class Kueue:
    """One cluster's Kueue. `world.nodes` is None where nothing says which nodes there are.

    `said` tells that the tree or the user names the version; otherwise it is the one that the rules were read from.
    """

    graph: Graph
    world: World
    said: bool = False

    @cached_property
    def state(self) -> State:
        """The scheduler with nothing running."""
        return idle(self.world)

    @property
    def version(self) -> str:
        """The version of Kueue that is judged."""
        return self.world.settings.version

    def before(self, release: str) -> bool:
        """Whether this version is older than a release; one that is no number is not."""
        mine, other = version(self.version), version(release)
        return mine is not None and other is not None and mine < other

    def gate(self, name: str, *, default: bool = False) -> bool:
        """Whether the configuration opens a feature gate; the default where it does not name it."""
        return self.world.settings.gates.get(name, default)

    @cached_property
    def configurations(self) -> Sequence[Configured]:
        """Every configuration in the tree."""
        found = [
            Configured(manifest, manifest.body)
            for manifest in self.graph.aside
            if manifest.kind == "Configuration" and manifest.api_version.startswith(f"{CONFIGURATION_GROUP}/")
        ]
        for manifest in self.graph.kind("ConfigMap"):
            for key, content in mapping(manifest.body.get("data")).items():
                if isinstance(content, str) and CONFIGURATION_GROUP in content:
                    found += _configured(manifest, str(key), content)
        return found

    @property
    def here(self) -> bool:
        """Whether anything in the tree shows that this cluster runs Kueue."""
        return bool(self.configurations or self.graph.group(GROUP))

    @cached_property
    def open(self) -> frozenset[Ref]:
        """Objects of Kueue of which nothing is known: a placeholder decides, they stand twice, or far too deep."""
        mine = self.graph.group(GROUP)
        counts = Counter(m.ref for m in mine)
        deep = {Ref(GROUP, "Cohort", "", name) for name in too_deep(self.world)}
        return frozenset(m.ref for m in mine if counts[m.ref] > 1 or m.ref in deep or undecided(m))

    @cached_property
    def machines(self) -> Sequence[tuple[Node, int]]:
        """One node of each kind with the number of its like; nodes that differ in their name alone are alike."""
        found: dict[object, list[Node]] = {}
        for node in self.world.nodes or ():
            labels = frozenset(pair for pair in node.labels.items() if pair[0] != HOSTNAME)
            key = (labels, node.taints, frozenset(node.allocatable.items()))
            found.setdefault(key, []).append(node)
        return [(alike[0], len(alike)) for alike in found.values()]

    def nodes_of(self, flavor: str) -> list[tuple[Node, int]]:
        """The kinds of nodes that a flavor selects, each with its number.

        Where the tree has no ResourceFlavor at all, those of the pool that is called like the flavor.
        """
        found = self.world.flavors.get(flavor)
        if found is not None:
            return [(node, count) for node, count in self.machines if node.carries(found.labels, ())]
        if self.world.flavors:
            return []
        return [(n, c) for n, c in self.machines if n.name.rpartition("-")[0] == flavor]

    @cached_property
    def judged(self) -> Sequence[Judged]:
        """Every queued job of the tree with the decision about it."""
        pods = self.graph.kind("Pod")
        found: list[Judged] = []
        for manifest in self.graph.kind(*JOBS):
            asked = job(manifest, self.world.find, pods)
            if isinstance(asked, Job) and self._queued(manifest, asked) and not undecided(manifest):
                found.append(self._judge(manifest, asked))
        return found

    def _queued(self, manifest: Manifest, asked: Job) -> bool:
        if mapping(manifest.body.get("metadata")).get("ownerReferences"):
            return False
        if QUEUE_LABEL in asked.labels:
            name = asked.labels[QUEUE_LABEL]
            queues = self.world.local_queues
            if not manifest.ref.namespace and ("default", name) not in queues and queues:
                return False  # whoever applies the job says in which namespace
            return not placeholder(name)
        where = (manifest.ref.namespace or "default", "default")
        return kind_of(manifest) in BATCH and where in self.world.local_queues

    def _judge(self, manifest: Manifest, asked: Job) -> Judged:
        namespace = manifest.ref.namespace or "default"
        way = queue_way(self.world, self.state, manifest, asked)
        shape = (self._scope(namespace, asked), *map(_shape, asked.podsets))
        if shape not in self._demands:
            self._demands[shape] = demands(self.world, namespace, asked.podsets)
        found, problems = self._demands[shape]
        queue, assumed = way.queue, False
        if queue is None and not self.world.local_queues and len(self.state.queues) == 1 == len(self.world.queues):
            queue, assumed = next(iter(self.state.queues.values())), True
        if queue is None or self._unknown(queue.spec) or way.local_queue in self.open:
            return Judged(manifest, asked, way, found, (*way.reasons, *problems), None)
        if (queue.name, shape) not in self._settled:
            workload = Workload(f"{namespace}/{manifest.ref.name}", namespace, found, way.priority, problems)
            assignment, refused, _ = settle(self.state, queue, workload)
            after = list(after_admission(self.state, queue, assignment)) if assignment else []
            self._settled[queue.name, shape] = assignment, (*refused, *after)
        assignment, reasons = self._settled[queue.name, shape]
        return Judged(manifest, asked, way, found, (*way.reasons, *problems, *reasons), assignment, assumed)

    @cached_property
    def _demands(self) -> dict[object, tuple[tuple[Demand, ...], tuple[Reason, ...]]]:
        """What jobs of one shape ask for."""
        return {}

    @cached_property
    def _settled(self) -> dict[object, tuple[Assignment | None, tuple[Reason, ...]]]:
        """What a queue answers to jobs of one shape."""
        return {}

    def _scope(self, namespace: str, asked: Job) -> str:
        """The namespace where it changes what pods ask for, else ""."""
        claims = any(podset.spec.get("resourceClaims") for podset in asked.podsets)
        return namespace if claims or namespace in self.world.limit_ranges else ""

    def _unknown(self, queue: ClusterQueue) -> bool:
        """Whether something that decides is open: the queue, its flavors, or anything that it could borrow from."""
        mine = {queue.ref, *(Ref(GROUP, "ResourceFlavor", "", name) for name in queue.flavors)}
        lenders = any(ref.kind in ("ClusterQueue", "Cohort") for ref in self.open)
        return bool(mine & self.open) or (bool(queue.cohort) and lenders)


def kueue(graph: Graph) -> Kueue:
    """The Kueue of a cluster."""
    return graph.derived(_kueue)


def _kueue(graph: Graph) -> Kueue:
    """Nodes come from pools, and from Node objects that say what they offer; without any, nothing is known of them."""
    inventory = [machines.Pool.document(pool) for pool in machines.pools(graph)]
    real = machines.nodes(graph)
    seen = [m for m in graph.manifests if m.kind != "Node" and labels_of(m.body).get(INVENTORY_LABEL) != "true"]
    aside = [m for m in graph.aside if m.kind == "Configuration"]
    if inventory:
        source = machines.pools(graph)[0].manifest.source
        aside.append(Manifest({"kind": "Inventory", "pools": inventory}, source))
    release = _version(graph)
    found = Kueue(graph, world([*seen, *real], aside, release or DEFAULT_VERSION), bool(release))
    gates = set(found.world.settings.gates)
    if not release and gates - set(table("kueue_rules")["gates"]["names"]) and gates & set(_NEWER_GATES):
        return replace(found, world=world([*seen, *real], aside, NEWER))
    return found


NEWER = "newer than 0.17"
"""What stands for the version where only the names of feature gates tell of it."""
_NEWER_GATES = ("KueueDRAIntegration", "KueueDRAIntegrationPartitionableDevices", "ConcurrentAdmission")


def _version(graph: Graph) -> str:
    """The version that is said, that of the inventory, or of the controller's image; "" where nothing tells."""
    said = graph.versions.get("kueue") or machines.release(graph)
    if said:
        return said.removeprefix("v")
    for manifest, pod in graph.pods:
        if manifest.kind == "Deployment":
            for _, container in containers(pod.spec):
                found = image(text(container.get("image")))
                if found.repository.endswith("/kueue") and found.tag and version(found.tag):
                    return found.tag.removeprefix("v")
    return ""


def _configured(manifest: Manifest, key: str, content: str) -> Iterator[Configured]:
    try:
        loaded = yaml_rs.loads(content, parse_datetime=False)
    except ValueError:
        if not placeholder(content):
            yield Configured(manifest, None, key)
        return
    body = mapping(loaded)
    if body.get("kind") == "Configuration" and text(body.get("apiVersion")).startswith(f"{CONFIGURATION_GROUP}/"):
        yield Configured(manifest, body, key)


_FREE = frozenset({"args", "command", "env", "annotations", "description", "image", "data"})
"""Fields in which a placeholder says nothing about quota, queue or place."""


def undecided(manifest: Manifest) -> bool:
    """Whether another tool will fill in a field that decides about admission."""
    return manifest.draft or any(not _FREE & set(map(str, steps)) for steps in manifest.unknown)


def _shape(podset: PodSet) -> bytes:
    """What of a pod set decides: jobs that differ in their commands alone get the same answer."""
    lists = ("initContainers", "containers")
    parts = [[(each.get("resources"), each.get("restartPolicy")) for each in maps(podset.spec.get(k))] for k in lists]
    rest = [podset.spec.get(key) for key in _DECIDES]
    wish = repr(podset.wish) if podset.wish != Wish() else ""
    return orjson.dumps([podset.name, podset.count, podset.min_count, wish, parts, rest], default=str, option=_KEYS)


_KEYS = orjson.OPT_NON_STR_KEYS
_DECIDES = ("nodeSelector", "affinity", "tolerations", "resourceClaims", "runtimeClassName", "overhead", "resources")
