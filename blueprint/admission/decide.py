"""The decision about one job: may it be admitted on an idle cluster with this inventory, where, and why not.

The gates are those of Kueue in its order (kueue v0.17.0 pkg/controller/jobframework, pkg/cache/queue/manager.go,
pkg/scheduler/scheduler.go `nominate`). Of several refusals the first one is the one that Kueue would report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from blueprint.admission.amounts import Amounts
from blueprint.admission.attempt import Scheduler, running, unwritable
from blueprint.admission.demand import Demand, Workload, demands
from blueprint.admission.flavors import Assignment, PodSetChoice, Tried, pending
from blueprint.admission.gates import Way, queue_way
from blueprint.admission.modes import Mode
from blueprint.admission.podsets import Job, job
from blueprint.admission.reasons import Kind, Reason, Verdict, refusals, unique
from blueprint.admission.state import Queue, Running, State, idle
from blueprint.admission.topology import Spread
from blueprint.admission.world import World
from blueprint.finding import Ref
from blueprint.objects import Manifest

#: A pod set that is split into more copies than this is judged by these many.
_MOST_COPIES = 512


@dataclass(frozen=True, slots=True)
class PodSetPlan:
    """Where one pod set would go: its count, quota of one pod, flavor by resource, and pods by topology domain.

    `levels` name the values of the domains; `spread` is None where no topology is assigned.
    """

    name: str
    count: int
    charge: Amounts
    flavors: dict[str, str]
    levels: tuple[str, ...] = ()
    spread: Spread | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer. `admissible` is None where something that decides is not among the objects.

    `cohorts` lead from the queue's own to the root. `podsets` are the plan, or the demands where there is none.
    `copies` of the pod sets were asked for (pods of a Deployment, groups of a LeaderWorkerSet), of which `admitted`
    fit together. `attempts` counts how often the scheduler looks before it knows. `inventory`: it is said which nodes
    there are.
    """

    job: Ref
    kueue: str
    admissible: bool | None
    way: Way
    podsets: tuple[PodSetPlan, ...]
    reasons: tuple[Reason, ...]
    copies: int = 1
    admitted: int = 0
    attempts: int = 0
    inventory: bool = True

    @property
    def primary(self) -> Reason | None:
        """The first reason that keeps it out, or leaves it open."""
        kept = refusals(self.reasons) or tuple(r for r in self.reasons if r.verdict is Verdict.UNKNOWN)
        return kept[0] if kept else None

    @property
    def words(self) -> str:
        """The answer in one sentence."""
        if self.admissible is None:
            return "cannot be decided: something that decides is not among the objects"
        verb = "can" if self.admissible else "cannot"
        where = "with this inventory" if self.inventory else "by quota alone, for no inventory is given"
        return f"{verb} be admitted on an idle cluster {where} (Kueue {self.kueue})"


def decide(world: World, manifest: Manifest, state: State | None = None) -> Decision:
    """Decide about one job in an otherwise idle cluster; `state` is the idle one, for who asks about many jobs."""
    ref, version = manifest.ref, world.settings.version
    asked = job(manifest, world.find, world.manifests)
    if asked is None:
        reason = Reason("KQ105", Kind.NOT_QUEUED, f"Kueue does not queue objects of kind {ref.kind}")
        return Decision(ref, version, False, Way(), (), (reason,), inventory=world.nodes is not None)
    if isinstance(asked, Ref):
        message = f"{asked} is not among the objects; without it nobody knows the pods of this job"
        reason = Reason("KQ109", Kind.UNKNOWN, message, Verdict.UNKNOWN, object=asked)
        return Decision(ref, version, None, Way(), (), (reason,))
    return decide_job(world, manifest, asked, state)


def decide_job(world: World, manifest: Manifest, asked: Job, state: State | None = None) -> Decision:
    """Decide about the pod sets that a job was read as; a `state` is idle again afterwards."""
    ref = manifest.ref
    state = state or idle(world)
    way = queue_way(world, state, manifest, asked)
    namespace = ref.namespace or "default"
    found, problems = demands(world, namespace, asked.podsets)
    reasons = [*way.reasons, *problems]
    plans = tuple(PodSetPlan(d.podset.name, d.podset.count, d.charge, {}) for d in found)
    known = world.nodes is not None
    base = Decision(ref, world.settings.version, False, way, plans, (), copies=asked.copies, inventory=known)
    if way.queue is None:
        return _concluded(replace(base, reasons=unique(reasons)), world, fits=not refusals(reasons))
    workload = Workload(f"{namespace}/{ref.name}", namespace, found, way.priority, problems)
    return _admit(base, state, way.queue, workload, asked, reasons)


def _admit(
    base: Decision, state: State, queue: Queue, workload: Workload, asked: Job, reasons: list[Reason]
) -> Decision:
    """Admit copy after copy, until one does not fit."""
    admitted = attempts = 0
    started: list[Running] = []
    plan: tuple[PodSetPlan, ...] = ()
    copies = min(asked.copies, _MOST_COPIES)
    for number in range(copies):
        copy = replace(workload, key=f"{workload.key}-{number}")
        assignment, refused, looks = settle(state, queue, copy)
        attempts = max(attempts, looks)
        if assignment is None:
            reasons += refused
            if admitted:
                message = f"only {admitted} of {asked.copies} fit beside each other"
                reasons.append(Reason("KQ212", Kind.WAITING, message, object=queue.spec.ref))
            break
        plan = plan or planned(queue, assignment)
        reasons += after_admission(state, queue, assignment)
        started.append(running(copy, queue, assignment, created=0, reserved=number))
        state.start(started[-1])
        admitted += 1
    for each in started:
        state.stop(each)
    looked = replace(base, admitted=admitted, attempts=attempts, podsets=plan or base.podsets, reasons=unique(reasons))
    return _concluded(looked, state.world, fits=admitted == copies and not refusals(reasons))


def settle(state: State, queue: Queue, workload: Workload) -> tuple[Assignment | None, list[Reason], int]:
    """Look at a workload again and again, from the flavor after the last one, until it fits or nothing is left.

    Returns the assignment (None where it never fits), the reasons of all attempts, and their number.
    Source: kueue v0.17.0 pkg/cache/queue/cluster_queue.go `requeueIfNotPresent`.
    """
    scheduler = Scheduler(state)
    tried: Tried = ()
    seen: set[tuple[tuple[tuple[str, int], ...], ...]] = set()
    reasons: list[Reason] = []
    while True:
        found = scheduler.attempt(workload, queue, tried).assignment
        if found.mode is Mode.FIT:
            lost = unwritable(found)
            return (None, [_unwritable(lost)], len(seen) + 1) if lost else (found, [], len(seen) + 1)
        reasons += found.reasons
        tried = found.tried
        mark = tuple(tuple(sorted(each.items())) for each in tried)
        if not pending(tried) or mark in seen:
            return None, list(unique(reasons)), len(seen) + 1
        seen.add(mark)


def _unwritable(each: PodSetChoice) -> Reason:
    podset = each.demand.podset
    message = f"the placement of {podset.name} has no pods in a domain: the API server refuses it, Kueue tries for ever"
    return Reason("KQ307", Kind.TOPOLOGY, message, podset=podset.name)


def planned(queue: Queue, assignment: Assignment) -> tuple[PodSetPlan, ...]:
    """The plan of an assignment."""
    plans: list[PodSetPlan] = []
    for each in assignment.podsets:
        demand: Demand = each.demand
        flavors = {name: choice.flavor for name, choice in sorted(each.choices.items())}
        topology = next((queue.topologies[f] for f in flavors.values() if f in queue.topologies), None)
        levels = () if topology is None else topology.levels[-1:] if topology.by_host else topology.levels
        plans.append(PodSetPlan(demand.podset.name, each.count, demand.charge, flavors, levels, each.spread))
    return tuple(plans)


def after_admission(state: State, queue: Queue, assignment: Assignment) -> Iterator[Reason]:
    """What would keep admitted pods from starting, or is not known."""
    world = state.world
    for each in assignment.podsets:
        podset = each.demand.podset
        flavors = sorted({choice.flavor for choice in each.choices.values()})
        unknown = [name for name in flavors if name not in world.flavors]
        if unknown:
            message = f"ResourceFlavor {', '.join(unknown)} is not among the objects: its nodes and taints are unknown"
            yield Reason("KQ404", Kind.UNKNOWN, message, Verdict.UNKNOWN, podset=podset.name)
        if not flavors and each.count and podset.spec:
            message = "the pods ask for nothing that the queue counts: they get no flavor, and run anywhere"
            yield Reason("KQ207", Kind.AFTER, message, Verdict.NOTE, podset=podset.name)
        topological = [name for name in flavors if name in queue.topologies]
        if len(topological) > 1:
            message = f"flavors {' and '.join(topological)} both have a topology: the pods are placed by neither"
            yield Reason("KQ303", Kind.AFTER, message, Verdict.NOTE, podset=podset.name)
        if each.delayed:
            message = "nodes are chosen only after an admission check"
            yield Reason("KQ804", Kind.AFTER, message, Verdict.NOTE, podset=podset.name)
        size = podset.wish.slice_size if podset.wish.slice_level else None
        if each.spread is not None and size and each.count % size:
            message = f"{each.count} pods are no multiple of slices of {size}: the last {each.count % size} never start"
            yield Reason("KQ306", Kind.AFTER, message, Verdict.NOTE, podset=podset.name)
        seen: dict[str, tuple[str, str]] = {}
        for name in flavors:
            for key, value in world.flavors[name].labels.items() if name in world.flavors else ():
                other = seen.setdefault(key, (value, name))
                if other[0] != value:
                    message = f"flavors {other[1]} and {name} set {key} to {other[0]} and {value}: one of them loses"
                    yield Reason("KQ403", Kind.AFTER, message, Verdict.NOTE, podset=podset.name)
                own = each.demand.placement.selector.get(key)
                if own is not None and own != value:
                    message = f"the pods' own node selector {key}={own} contradicts flavor {name} ({value})"
                    yield Reason("KQ403", Kind.AFTER, message, podset=podset.name, flavor=name)


def _concluded(decision: Decision, world: World, *, fits: bool) -> Decision:
    """Work out the answer: a refusal stands whatever is unknown, an admission does not."""
    reasons = list(decision.reasons)
    if fits and world.nodes is None and _needs_nodes(decision, world):
        message = "the nodes are not among the objects: nobody knows whether the pods have a place"
        reasons.append(Reason("KQ404", Kind.UNKNOWN, message, Verdict.UNKNOWN))
    unknown = any(reason.verdict is Verdict.UNKNOWN for reason in reasons)
    return replace(decision, reasons=unique(reasons), admissible=None if fits and unknown else fits)


def _needs_nodes(decision: Decision, world: World) -> bool:
    flavors = {flavor for plan in decision.podsets for flavor in plan.flavors.values()}
    return any(flavor in world.flavors and world.flavors[flavor].topology for flavor in flavors)
