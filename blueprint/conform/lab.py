"""Jobs submitted to the real Kueue and to our own engine, side by side."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from blueprint.admission.engine import Engine, submitted
from blueprint.admission.state import idle
from blueprint.admission.world import World, world
from blueprint.conform.client import Target
from blueprint.conform.stage import Stage, accepted, condition, holds
from blueprint.conform.tree import Tree
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.quantity import parse_quantity

Body = dict[str, Any]

API = "kueue.x-k8s.io/v1beta2"
QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Place:
    """A LocalQueue with GPUs of one flavor, and the numbers of its ClusterQueue; `lend` and `borrow` None: no limit."""

    namespace: str
    queue: str
    cluster_queue: str
    cohort: str
    flavor: str
    nominal: int
    borrow: int | None
    lend: int | None


def places(tree: Tree) -> list[Place]:
    """The queues of the tree that give GPUs of a flavor with topology, by namespace."""
    flavors = {body["metadata"]["name"]: body["spec"] for body in tree.of_kind("ResourceFlavor")}
    found = []
    for local in tree.of_kind("LocalQueue"):
        [spec] = [body["spec"] for body in tree.of_kind("ClusterQueue", local["spec"]["clusterQueue"])]
        for group in spec["resourceGroups"]:
            for flavor in group["flavors"]:
                rows = [row for row in flavor["resources"] if row["name"] == GPU]
                if rows and flavors.get(flavor["name"], {}).get("topologyName"):
                    numbers = {key: int(parse_quantity(rows[0][key])) for key in rows[0] if key != "name"}
                    found.append(
                        Place(
                            local["metadata"]["namespace"],
                            local["metadata"]["name"],
                            local["spec"]["clusterQueue"],
                            spec.get("cohortName", ""),
                            flavor["name"],
                            numbers["nominalQuota"],
                            numbers.get("borrowingLimit"),
                            numbers.get("lendingLimit"),
                        )
                    )
    return sorted(found, key=lambda place: place.namespace)


@dataclass(slots=True)
class Lab:
    """Jobs submitted to the real Kueue and to our engine, one after the other."""

    stage: Stage
    world: World
    engine: Engine
    jobs: dict[str, Body] = field(default_factory=dict)
    turn: int = 0

    @classmethod
    def of(cls, stage: Stage) -> Lab:
        """An idle cluster with the objects of the tree."""
        found = world(list(stage.tree.manifests))
        return cls(stage, found, Engine(idle(found)))

    def submit(self, place: Place, name: str, pods: int, gpus: int, *, priority: str = "", rack: str = "") -> Body:
        """Submit `pods` pods of `gpus` GPUs each, as one gang; `rack` is the topology level that holds all of them."""
        body = job(self.stage.tree, place, name, pods, gpus, priority=priority, rack=rack)
        made = accepted(self.stage.client.create(body), f"job {name}").body
        found = submitted(self.engine.state, Manifest(body, Source("job", self.turn)))
        if found is not None:
            self.engine.submit(*found, created=self.turn)
        self.engine.settle(self.turn)
        self.turn += 1
        self.jobs[f"{place.namespace}/{name}"] = made
        return made

    def agree(self) -> str:
        """Wait until exactly those jobs run of which the engine says so; returns them in words."""
        for key, made in self.jobs.items():
            runs = key in self.engine.running
            target = Target("batch/v1", "Job", made["metadata"]["namespace"], made["metadata"]["name"])
            body = self.stage.client.until(
                target,
                lambda b, runs=runs: bool(b) and b["spec"].get("suspend", False) is not runs,  # type: ignore[misc]
                self.stage.patience,
                f"{key} to be {'admitted' if runs else 'suspended'}, as predicted",
            )
            self.stage.saw(body)
            if not runs:
                self.workload(made, told)
        running = [key for key in self.jobs if key in self.engine.running]
        waiting = [key for key in self.jobs if key not in self.engine.running]
        return f"admitted {', '.join(running) or 'none'}; held {', '.join(waiting) or 'none'}"

    def workload(self, made: Body, wanted: Callable[[Body], bool]) -> Body:
        """The Workload of a job, once it holds what is wanted."""
        uid, name = made["metadata"]["uid"], made["metadata"]["name"]

        def its(body: Body) -> bool:
            owners = body["metadata"].get("ownerReferences") or ()
            return any(owner["uid"] == uid for owner in owners) and wanted(body)

        target = Target(API, "Workload", made["metadata"]["namespace"])
        return self.stage.saw(self.stage.client.until(target, its, self.stage.patience, f"the Workload of {name}"))

    def clear(self) -> None:
        """Delete the jobs, and wait until their quota is free."""
        remove(self.stage, self.jobs.values())


def told(workload: Body) -> bool:
    """Whether Kueue has said that it does not run."""
    return holds(workload, "QuotaReserved", "False") and bool(condition(workload, "QuotaReserved").get("message"))


def remove(stage: Stage, bodies: Iterable[Body]) -> None:
    """Delete jobs, and wait until their Workloads and pods are gone."""
    bodies = list(bodies)
    for body in bodies:
        stage.client.delete(Target.of(body))
    uids = {body["metadata"]["uid"] for body in bodies}
    spaces = {body["metadata"]["namespace"] for body in bodies}
    for kind, version in (("Workload", API), ("Pod", "v1")):
        for item in [item for space in spaces for item in stage.client.every(version, kind, space)]:
            if any(owner["uid"] in uids for owner in item["metadata"].get("ownerReferences") or ()):
                target = Target.of(item)
                stage.client.until(target, lambda b: not b, stage.patience, f"{kind} {target.name} to be gone")


def job(tree: Tree, place: Place, name: str, pods: int, gpus: int, *, priority: str = "", rack: str = "") -> Body:
    """A Job with the pods of a training job of the tree, which every policy lets in; its claims are left out."""
    [source, *_] = tree.of_kind("PyTorchJob")
    template = copy.deepcopy(next(iter(source["spec"]["pytorchReplicaSpecs"].values()))["template"])
    spec = template["spec"]
    keep = {volume["name"] for volume in spec.get("volumes", ()) if "persistentVolumeClaim" not in volume}
    spec["volumes"] = [volume for volume in spec.get("volumes", ()) if volume["name"] in keep]
    spec["restartPolicy"] = "Never"
    spec.pop("priorityClassName", None)
    [container] = spec["containers"]
    container["volumeMounts"] = [mount for mount in container.get("volumeMounts", ()) if mount["name"] in keep]
    container["resources"] = {key: {"cpu": "4", "memory": "16Gi", GPU: str(gpus)} for key in ("limits", "requests")}
    labels = {QUEUE: place.queue, **({PRIORITY: priority} if priority else {})}
    template["metadata"]["annotations"] = {REQUIRED: rack} if rack else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": place.namespace, "labels": labels},
        "spec": {"parallelism": pods, "completions": pods, "suspend": True, "template": template},
    }
