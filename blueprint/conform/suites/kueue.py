"""Kueue: jobs of the tree are admitted, held, preempted, borrow and are placed as `blueprint.admission` says it."""

from __future__ import annotations

import copy
import re
from typing import Any

from blueprint.admission.decide import decide
from blueprint.admission.reasons import Verdict
from blueprint.admission.world import world
from blueprint.conform.client import Target
from blueprint.conform.components.kueue import KUEUE, TRAINING
from blueprint.conform.lab import QUEUE, Lab, Place, job, places, remove, told
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError, accepted, condition, holds, refused
from blueprint.conform.tree import Tree
from blueprint.finding import Source
from blueprint.objects import Manifest

Body = dict[str, Any]

#: What Kueue says (kueue v0.17.0 pkg/scheduler/flavorassigner, pkg/scheduler/scheduler.go), by our kinds of reasons.
_SAYS = {
    r"maximum capacity": "ExceedsMaxQuota",
    r"unavailable in ClusterQueue": "ResourceUnavailable",
    r"untolerated taint|node affinity|not found": "NoMatchingFlavor",
    r"topology|TopologyAware|TAS flavor|requested level": "TopologyPlacementFailed",
    r"is inactive": "ClusterQueueInactive",
    r"doesn't match ClusterQueue selector": "NamespaceMismatch",
    r"resources validation failed|LimitRange": "InvalidResources",
    r"insufficient unused quota": "WaitingForQuota",
}


def refusals(message: str) -> set[str]:
    """Our kinds of reasons that a message of Kueue's scheduler speaks of."""
    return {kind for words, kind in _SAYS.items() if re.search(words, message)}


def run(stage: Stage) -> None:
    """First the tree's own runs, then jobs made to meet each limit of its queues."""
    _own_runs(stage)
    found = places(stage.tree)
    shared = [place for place in found if place.cohort == found[0].cohort and place.flavor == found[0].flavor]
    _each_nominal(stage, shared)
    _never(stage, shared)
    _gang(stage, shared)
    _borrowed_and_reclaimed(stage, shared)
    _lending(stage, shared)
    _priority(stage, shared)
    _topology(stage, shared)
    _refusals(stage, shared)


def _own_runs(stage: Stage) -> None:
    with stage.case("the runs of the tree are decided as predicted") as case:
        found = world(list(stage.tree.manifests))
        words = []
        lab = Lab.of(stage)
        for manifest in stage.tree.manifests:
            if manifest.kind == "PyTorchJob":
                decision = decide(found, manifest)
                made = accepted(stage.client.get(Target.of(manifest.body)), str(manifest.ref)).body
                seen = lab.workload(made, lambda b: holds(b, "Admitted") or told(b))
                if holds(seen, "Admitted") is not bool(decision.admissible):
                    raise WrongAnswerError(
                        f"{manifest.ref}: predicted {decision.words}, {condition(seen, 'QuotaReserved')}"
                    )
                mine = {plan.name: dict(plan.flavors) for plan in decision.podsets}
                theirs = {p["name"]: p["flavors"] for p in seen["status"]["admission"]["podSetAssignments"]}
                if mine != theirs:
                    raise WrongAnswerError(f"{manifest.ref}: flavors {theirs} by Kueue, {mine} predicted")
                words.append(f"{manifest.ref.name} {theirs}")
        case.said = "; ".join(words)
    with stage.case("the pods of a run get the flavor's nodes, and run there") as case:
        for manifest in stage.tree.manifests:
            if manifest.kind == "PyTorchJob":
                target = Target("v1", "Pod", manifest.ref.namespace, f"{manifest.ref.name}-master-0")
                pod = stage.saw(stage.client.until(target, _runs, stage.patience, f"pod {target.name} to run"))
                case.said = f"{target.name} runs on {pod['spec']['nodeName']}"
    runs = [m for m in stage.tree.manifests if m.kind in ("PyTorchJob", "TrainJob")]
    remove(stage, [body for m in runs if (body := stage.client.get(Target.of(m.body)).body).get("spec")])


def _runs(pod: Body) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running"


def _each_nominal(stage: Stage, shared: list[Place]) -> None:
    lab = Lab.of(stage)
    with stage.case("each team may use what it was promised, at the same time") as case:
        for place in shared:
            lab.submit(place, f"full-{place.namespace}", place.nominal // 8, 8)
        case.said = lab.agree()
        if len(lab.engine.running) != len(shared):
            raise WrongAnswerError(f"not all are admitted: {case.said}")
    with stage.case("nobody may use more while the others use theirs", negative=True) as case:
        for place in shared:
            lab.submit(place, f"more-{place.namespace}", 1, 8)
        case.said = lab.agree()
        if len(lab.engine.running) != len(shared):
            raise WrongAnswerError(f"more is admitted: {case.said}")
    lab.clear()


def _never(stage: Stage, shared: list[Place]) -> None:
    for place in shared:
        if place.borrow is None:
            continue
        with stage.case(
            f"{place.cluster_queue} never gives more than nominal and borrowing limit", negative=True
        ) as case:
            pods = (place.nominal + place.borrow) // 8 + 1
            case.said = _held(stage, place, f"too-much-{place.namespace}", pods, 8, "ExceedsMaxQuota")


def _held(stage: Stage, place: Place, name: str, pods: int, gpus: int, kind: str, *, rack: str = "") -> str:
    """A job that must stay pending for the predicted reason, alone in the cluster."""
    lab = Lab.of(stage)
    body = job(stage.tree, place, name, pods, gpus, rack=rack)
    decision = decide(lab.world, Manifest(body, Source("job", 1)))
    predicted = {reason.kind.value for reason in decision.reasons if reason.verdict is Verdict.NEVER}
    if decision.admissible is not False or kind not in predicted:
        raise WrongAnswerError(f"predicted {decision.words} {predicted}, not {kind}")
    made = lab.submit(place, name, pods, gpus, rack=rack)
    try:
        seen = condition(lab.workload(made, told), "QuotaReserved")["message"]
    finally:
        lab.clear()
    if kind not in refusals(seen):
        raise WrongAnswerError(f"predicted {kind}, Kueue says {seen!r}")
    return f"predicted {kind}; Kueue: {seen}"


def _gang(stage: Stage, shared: list[Place]) -> None:
    lab = Lab.of(stage)
    place = shared[0]
    with stage.case("a gang of which one pod has no room starts none", negative=True) as case:
        for other in shared:
            lab.submit(other, f"fill-{other.namespace}", other.nominal // 8 - (other is place), 8)
        made = lab.submit(place, "gang", 2, 8)
        case.said = lab.agree()
        pods = [
            pod["metadata"]["name"] for pod in stage.client.every("v1", "Pod", place.namespace, labels="job-name=gang")
        ]
        if pods or f"{place.namespace}/gang" in lab.engine.running:
            raise WrongAnswerError(f"pods of a held gang: {pods}")
        case.said = f"no pod of {made['metadata']['name']}; {case.said}"
    lab.clear()


def _borrowed_and_reclaimed(stage: Stage, shared: list[Place]) -> None:
    """The one that may borrow takes what the others lend; an owner takes it back."""
    lab = Lab.of(stage)
    borrower = max(shared, key=lambda place: place.borrow or 0)
    lent = sum(p.nominal if p.lend is None else p.lend for p in shared if p is not borrower)
    extra = min(borrower.borrow if borrower.borrow is not None else lent, lent)
    # Of two that were admitted within one second Kueue evicts either: by priority it is sure which one.
    level = min(stage.tree.of_kind("WorkloadPriorityClass"), key=lambda body: int(body["value"]))["metadata"]["name"]
    with stage.case("idle quota is borrowed up to its limits") as case:
        lab.submit(borrower, "own", borrower.nominal // 8, 8, priority=level)
        lab.submit(borrower, "borrowed", extra // 8, 8)
        case.said = lab.agree()
        if len(lab.engine.running) != 2:
            raise WrongAnswerError(f"nothing is borrowed: {case.said}")
    with stage.case("an owner gets back what it lent, by preemption") as case:
        owner = max((place for place in shared if place is not borrower), key=lambda place: place.nominal)
        lab.submit(owner, "owner", owner.nominal // 8, 8)
        case.said = lab.agree()
        if (
            f"{owner.namespace}/owner" not in lab.engine.running
            or f"{borrower.namespace}/borrowed" in lab.engine.running
        ):
            raise WrongAnswerError(f"the owner does not get it back: {case.said}")
        seen = lab.workload(lab.jobs[f"{borrower.namespace}/borrowed"], lambda b: holds(b, "Evicted"))
        case.said += f"; Kueue: {condition(seen, 'Evicted').get('message', '')}"
    lab.clear()


def _lending(stage: Stage, shared: list[Place]) -> None:
    """Beyond a lending limit nobody gets anything, however idle the owner is."""
    lender = next(place for place in shared if place.lend is not None and place.lend < place.nominal)
    borrower = max((place for place in shared if place is not lender), key=lambda place: place.borrow or 0)
    lab = Lab.of(stage)
    with stage.case(f"beyond the lending limit of {lender.cluster_queue} nothing is lent", negative=True) as case:
        for place in shared:
            if place not in (lender, borrower):
                lab.submit(place, f"uses-{place.namespace}", place.nominal // 8, 8)
        lab.submit(borrower, "own", borrower.nominal // 8, 8)
        lab.submit(borrower, "all-but", (lender.lend or 0) // 8, 8)
        lab.submit(borrower, "beyond", 1, 8)
        case.said = lab.agree()
        running = lab.engine.running
        if f"{borrower.namespace}/all-but" not in running or f"{borrower.namespace}/beyond" in running:
            raise WrongAnswerError(f"the limit is not the border: {case.said}")
    lab.clear()


def _priority(stage: Stage, shared: list[Place]) -> None:
    levels = sorted(stage.tree.of_kind("WorkloadPriorityClass"), key=lambda body: int(body["value"]))
    low, high = levels[0]["metadata"]["name"], levels[-1]["metadata"]["name"]
    lab = Lab.of(stage)
    with stage.case("inside a queue a higher priority preempts a lower one, and not the other way round") as case:
        for place in shared:
            lab.submit(place, f"low-{place.namespace}", place.nominal // 8, 8, priority=low)
        lab.submit(shared[0], "urgent", 1, 8, priority=high)
        lab.submit(shared[0], "patient", 1, 8, priority=low)
        case.said = lab.agree()
        if f"{shared[0].namespace}/urgent" not in lab.engine.running:
            raise WrongAnswerError(f"the urgent one waits: {case.said}")
    lab.clear()


def _topology(stage: Stage, shared: list[Place]) -> None:
    level = stage.tree.of_kind("Topology")[0]["spec"]["levels"][-2]["nodeLabel"]
    nodes = {node["metadata"]["name"]: node["metadata"]["labels"] for node in stage.client.every("v1", "Node")}
    flavor = stage.tree.of_kind("ResourceFlavor", shared[0].flavor)[0]["spec"]["nodeLabels"]
    racks: dict[str, int] = {}
    for labels in nodes.values():
        if flavor.items() <= labels.items() and level in labels:
            racks[labels[level]] = racks.get(labels[level], 0) + 1
    size = max(racks.values(), default=0)
    place = max(shared, key=lambda place: place.nominal)
    lab = Lab.of(stage)
    with stage.case(f"a gang that asks for one {level} stands in one") as case:
        made = lab.submit(place, "close", size, 8, rack=level)
        lab.agree()
        target = Target("batch/v1", "Job", place.namespace, made["metadata"]["name"])
        stage.client.until(
            target, lambda b: b["status"].get("ready") == size, stage.patience, f"{size} pods of {target.name}"
        )
        stood = set()
        for pod in stage.client.every("v1", "Pod", place.namespace, labels="job-name=close"):
            stage.saw(pod)
            stood.add(nodes[pod["spec"]["nodeName"]][level])
        if len(stood) != 1:
            raise WrongAnswerError(f"it stands in {sorted(stood)}")
        case.said = f"{size} pods in {stood.pop()}"
    lab.clear()
    with stage.case(f"a gang larger than any {level} stays pending", negative=True) as case:
        case.said = _held(stage, place, "too-wide", size + 1, 8, "TopologyPlacementFailed", rack=level)


def _refusals(stage: Stage, shared: list[Place]) -> None:
    place = shared[0]
    with stage.case("Kueue's webhook refuses a queue whose resources are out of order", negative=True) as case:
        wrong = copy.deepcopy(stage.tree.of_kind("ClusterQueue", place.cluster_queue)[0])
        wrong["metadata"]["name"] = "out-of-order"
        wrong["spec"]["resourceGroups"][0]["coveredResources"].reverse()
        case.said = refused(stage.client.create(wrong, dry_run=True), "the queue", "must match the name").message[:200]
    with stage.case("a job cannot change its queue while it runs", negative=True) as case:
        lab = Lab.of(stage)
        made = lab.submit(place, "mover", 1, 8)
        lab.agree()
        change = {"metadata": {"labels": {QUEUE: "elsewhere"}}}
        case.said = refused(stage.client.patch(Target.of(made), change), "the change").message[:200]
        lab.clear()
    with stage.case("a job in a team's namespace without a queue is refused", negative=True) as case:
        loose = job(stage.tree, place, "loose", 1, 8)
        del loose["metadata"]["labels"]
        person = stage.client.acting_as("person@example.com")
        case.said = refused(person.create(loose, dry_run=True), "the job", "queue").message[:200]


def _mislabelled(tree: Tree) -> Tree:
    """A flavor for nodes that nobody has."""

    def put(body: Body) -> None:
        body["spec"]["nodeLabels"] = {"platform.blueprint/pool": "no-such-pool"}

    return tree.changed("ResourceFlavor", put, places(tree)[0].flavor)


SUITE = Suite(
    name="kueue",
    title="Kueue decides about jobs as predicted",
    run=run,
    needs=(KUEUE, TRAINING),
    faults=(Fault("a flavor whose label no node has", _mislabelled, "each team may use"),),
    elsewhere="its queues would share the quota of real ones, and its nodes are played",
)
