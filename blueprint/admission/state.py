"""The state of the scheduler: the tree of quotas, what runs, and what of it uses which nodes.

Source: kueue v0.17.0 pkg/cache/scheduler/{snapshot,cohort,clusterqueue_snapshot}.go, pkg/cache/hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from blueprint.admission.amounts import Amounts, FlavorResource, Usage
from blueprint.admission.placement import Gates, gates_of
from blueprint.admission.queues import ClusterQueue
from blueprint.admission.quota import QuotaNode
from blueprint.admission.topology import Ledger, Spread, Topology, Used, Values
from blueprint.admission.world import World

Mark = tuple[tuple[FlavorResource, int], ...]


@dataclass(frozen=True, slots=True)
class OnNodes:
    """Pods of one shape on the nodes of a flavor: `pod` is what Kueue counts for one of them."""

    flavor: str
    pod: Amounts
    spread: Spread


@dataclass(slots=True, eq=False)
class Running:
    """A workload with quota: `created` orders the queue, `reserved` is when it got its quota (both only compared)."""

    key: str
    queue: str
    priority: int
    created: float
    reserved: float
    usage: Usage
    nodes: tuple[OnNodes, ...] = ()
    _mark: Mark | None = None

    @property
    def mark(self) -> Mark:
        """What it uses of quota, to tell those that use the same."""
        if self._mark is None:
            self._mark = tuple(sorted(self.usage.items()))
        return self._mark


@dataclass(slots=True, eq=False)
class Queue:
    """An active ClusterQueue with what runs in it, and the topologies of its flavors.

    `delayed` flavors get their topology only after an admission check. With `counts_requests` what counts on nodes is
    what pods ask for, not what is charged.
    """

    spec: ClusterQueue
    node: QuotaNode
    topologies: Mapping[str, Topology]
    topology_only: bool
    delayed: frozenset[str]
    counts_requests: bool = False
    running: dict[str, Running] = field(default_factory=dict)
    _ranked: list[Running] | None = None

    @property
    def ranked(self) -> list[Running]:
        """What runs in it, in the order in which it would be preempted: lower priority, then later admitted."""
        if self._ranked is None:
            self._ranked = sorted(self.running.values(), key=lambda w: (w.priority, -w.reserved, w.key))
        return self._ranked

    def add(self, workload: Running) -> None:
        """Let a workload be among what runs in it."""
        self.running[workload.key] = workload
        self._ranked = None

    def drop(self, workload: Running) -> None:
        """Let it be so no more."""
        if self.running.pop(workload.key, None) is not None:
            self._ranked = None

    @property
    def name(self) -> str:
        """The name of the ClusterQueue."""
        return self.spec.name


@dataclass(slots=True, eq=False)
class State:
    """All active queues. `inactive` says of the others why, as (Kueue's reason, words)."""

    world: World
    queues: dict[str, Queue]
    inactive: dict[str, list[tuple[str, str]]]
    nodes: dict[str, QuotaNode]
    gates: Gates

    def start(self, workload: Running) -> None:
        """Count a workload as running."""
        queue = self.queues[workload.queue]
        queue.add(workload)
        self.use(queue, workload.usage, workload.nodes)

    def stop(self, workload: Running) -> None:
        """Count it no more."""
        queue = self.queues[workload.queue]
        queue.drop(workload)
        self.use(queue, workload.usage, workload.nodes, sign=-1)

    def set_aside(self, workload: Running, sign: int = -1) -> None:
        """Count what it uses no more, or with sign 1 again; it is still listed as running."""
        self.use(self.queues[workload.queue], workload.usage, workload.nodes, sign)

    def use(self, queue: Queue, usage: Usage, nodes: Iterable[OnNodes] = (), sign: int = 1) -> None:
        """Count quota and nodes as used, or with sign -1 no more."""
        for key, amount in usage.items():
            if sign > 0:
                queue.node.take(key, amount)
            else:
                queue.node.give_back(key, amount)
        for each in nodes:
            topology = queue.topologies.get(each.flavor)
            if topology is not None:
                topology.take(each.spread, each.pod, sign)

    @contextmanager
    def without(self, workloads: Iterable[Running]) -> Iterator[None]:
        """A state in which the workloads use nothing (they are still listed as running)."""
        gone = list(workloads)
        for each in gone:
            self.use(self.queues[each.queue], each.usage, each.nodes, sign=-1)
        try:
            yield
        finally:
            for each in gone:
                self.use(self.queues[each.queue], each.usage, each.nodes)


TOO_DEEP = "CohortTooDeep"
_DEEPEST = 200
"""Cohorts above one another that are worked out: more than anybody has, and fewer than the stack of calls holds."""


def idle(world: World) -> State:
    """The state in which nothing runs."""
    inactive = {name: reasons for name, queue in world.queues.items() if (reasons := list(_inactive(world, queue)))}
    cohorts = {
        name: QuotaNode(name, found.quotas if (found := world.cohorts.get(name)) else {})
        for name in _cohort_names(world)
    }
    for name, found in world.cohorts.items():
        if name in cohorts:  # one without a name is no cohort
            cohorts[name].weight = found.weight
    above = _levels(world, cohorts)
    cyclic = {name for name, levels in above.items() if levels is None}
    lost = cyclic | too_deep(world, above)
    for name, node in cohorts.items():
        parent = world.cohorts[name].parent if name in world.cohorts else ""
        if parent and name not in lost:
            cohorts[parent].adopt(node)
    topologies = _topologies(world)
    queues: dict[str, Queue] = {}
    leaves: dict[str, QuotaNode] = {}
    for name, spec in world.queues.items():
        if spec.cohort in cyclic:
            cycle = f"cohort {spec.cohort} is in or below a cycle: {' → '.join(_walk(world, spec.cohort))}"
            inactive.setdefault(name, []).append(("CohortCycle", cycle))
        elif spec.cohort in lost:
            deep = f"more than {_DEEPEST} cohorts stand above cohort {spec.cohort}: this is not worked out"
            inactive.setdefault(name, []).append((TOO_DEEP, deep))
        node = QuotaNode(name, spec.quotas, queue=True, active=name not in inactive, weight=spec.weight)
        leaves[name] = node
        if spec.cohort and spec.cohort not in lost:
            cohorts[spec.cohort].adopt(node)
        if name not in inactive:
            mine = {flavor: topologies[flavor] for flavor in spec.flavors if flavor in topologies}
            requests = world.settings.behaves("tas-counts-requests")
            queues[name] = Queue(spec, node, mine, _topology_only(world, spec), _delayed(world, spec), requests)
    for node in (*cohorts.values(), *leaves.values()):
        if node.parent is None:
            node.settle()
    nodes = {**{f"Cohort {name}": node for name, node in cohorts.items()}, **leaves}
    return State(world, queues, inactive, nodes, gates_of(world.settings))


def _cohort_names(world: World) -> set[str]:
    named = {queue.cohort for queue in world.queues.values()} | {each.parent for each in world.cohorts.values()}
    return {name for name in (*named, *world.cohorts) if name}


def _walk(world: World, name: str) -> list[str]:
    """The cohorts from one upwards, until the root or until one comes again."""
    path = {name: None}
    above = _parent(world, name)
    while above and above not in path:
        path[above] = None
        above = _parent(world, above)
    return [*path, above] if above else [*path]


def _parent(world: World, name: str) -> str:
    return found.parent if (found := world.cohorts.get(name)) else ""


def _levels(world: World, names: Iterable[str]) -> dict[str, int | None]:
    """How many cohorts stand above each, None for one in or below a cycle; each one is walked over once."""
    levels: dict[str, int | None] = {}
    for name in names:
        path: dict[str, None] = {}
        above = name
        while above and above not in levels and above not in path:
            path[above] = None
            above = _parent(world, above)
        known = None if above in path else levels[above] if above else -1
        for number, each in enumerate(reversed(path), 1):
            levels[each] = None if known is None else known + number
    return levels


def too_deep(world: World, levels: Mapping[str, int | None] | None = None) -> set[str]:
    """The cohorts with more above them than are worked out here."""
    found = _levels(world, _cohort_names(world)) if levels is None else levels
    return {name for name, number in found.items() if number is not None and number > _DEEPEST}


def _topologies(world: World) -> dict[str, Topology]:
    """The domains of each topology-aware flavor, shared by all queues that use it."""
    found = {
        name: Topology(
            flavor.topology, world.topologies[flavor.topology], world.nodes or (), flavor.labels, flavor.tolerations
        )
        for name, flavor in world.flavors.items()
        if world.topologies.get(flavor.topology)  # the server takes none without levels: nothing can be placed on it
    }
    if world.settings.behaves("tas-shared-nodes"):
        used: dict[tuple[str, Values], Used] = {}
        ledgers: dict[str, Ledger] = {}
        for topology in found.values():
            topology.ledger = ledgers.setdefault(topology.name, topology.ledger)
            for key, leaf in topology.leaves.items() if topology.by_host else ():
                leaf.used = used.setdefault((topology.name, key), leaf.used)
    return found


def _topology_only(world: World, spec: ClusterQueue) -> bool:
    return all(name in world.flavors and world.flavors[name].topology for name in spec.flavors)


PROVISIONING = "kueue.x-k8s.io/provisioning-request"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"


def controller(world: World, check: str) -> str:
    """The controller of an AdmissionCheck, "" where the check is not there."""
    found = world.checks.get(check)
    spec = found.body.get("spec") if found else None
    name = spec.get("controllerName") if isinstance(spec, dict) else None
    return name if isinstance(name, str) else ""


def _delayed(world: World, spec: ClusterQueue) -> frozenset[str]:
    kinds = {check: controller(world, check) for check in spec.checks}
    if MULTIKUEUE in kinds.values():
        return frozenset(spec.flavors)
    return frozenset(f for check, kind in kinds.items() if kind == PROVISIONING for f in spec.checks[check])


def _inactive(world: World, spec: ClusterQueue) -> Iterator[tuple[str, str]]:
    """Why a queue admits nothing, as (reason of its condition Active, words)."""
    if spec.stopped:
        yield "Stopped", f"it is stopped (stopPolicy {spec.stopped})"
    missing = [name for name in spec.flavors if name not in world.flavors]
    if missing and world.flavors:
        yield "FlavorNotFound", f"there is no ResourceFlavor {', '.join(missing)}"
    absent = [check for check in spec.checks if check not in world.checks]
    if absent:
        yield "AdmissionCheckNotFound", f"there is no AdmissionCheck {', '.join(absent)}"
    dead = [check for check in spec.checks if check in world.checks and _dead(world, check)]
    if dead:
        yield "AdmissionCheckInactive", f"AdmissionCheck {', '.join(dead)} names parameters that do not exist"
    many = [check for check in spec.checks if controller(world, check) == MULTIKUEUE]
    if len(many) > 1:
        yield "MultipleMultiKueueAdmissionChecks", f"it has several MultiKueue checks: {', '.join(many)}"
    if any(spec.checks[check] != frozenset(spec.flavors) for check in many):
        yield "MultiKueueAdmissionCheckAppliedPerFlavor", f"MultiKueue check {', '.join(many)} is not on all flavors"
    if many and any(controller(world, check) == PROVISIONING for check in spec.checks):
        yield "MultiKueueWithProvisioningRequest", "MultiKueue and ProvisioningRequest checks exclude each other"
    for name in spec.flavors:
        topology = world.flavors[name].topology if name in world.flavors else ""
        if topology and topology not in world.topologies and not many:
            yield "TopologyNotFound", f"there is no Topology {topology}, which ResourceFlavor {name} names"


def _dead(world: World, check: str) -> bool:
    """Whether a check can never be active: its controller is one of Kueue's and its parameters are not there.

    The condition `Active` of an object that was read from a cluster has the last word.
    """
    body = world.checks[check].body
    status = body.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and condition.get("type") == "Active":
            return condition.get("status") != "True"
    kind = {PROVISIONING: "ProvisioningRequestConfig", MULTIKUEUE: "MultiKueueConfig"}.get(controller(world, check))
    spec = body.get("spec")
    parameters = spec.get("parameters") if isinstance(spec, dict) else None
    name = parameters.get("name") if isinstance(parameters, dict) else None
    return kind is not None and world.find(kind, "", name if isinstance(name, str) else "") is None
