"""Random worlds of queues, cohorts, flavors, nodes and workloads: the same seed gives the same objects.

Every name carries the world's own prefix, so that many worlds live in one cluster without touching each other.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]

API = "kueue.x-k8s.io/v1beta2"
WORLD = "world.example.com/id"
HOST = "kubernetes.io/hostname"
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
KEYS = ("zone.example.com/a", "zone.example.com/b", "zone.example.com/c")
TAINTS = (("gpu", "true"), ("spot", ""), ("team", "red"))


@dataclass(frozen=True)
class Made:
    """One world: objects in the order of creation, and the workloads, which come last and one after the other."""

    seed: int
    objects: list[Body]
    workloads: list[Body]


class Maker:
    """Makes one world; `rivals` gives it several workloads with priorities, `cycle` a cycle of cohorts, `fair` weights.

    A cycle keeps Kueue's controllers busy for ever and slows all other worlds down: such worlds come last.
    """

    def __init__(self, seed: int, *, rivals: bool = False, cycle: bool = False, fair: bool = False) -> None:
        self.random = random.Random(f"{seed}-{rivals}-{cycle}-{fair}" if fair else f"{seed}-{rivals}-{cycle}")
        self.fair = fair
        self.seed = seed
        self.rivals = rivals
        self.cycle = cycle
        self.name = f"w{seed}{'r' if rivals else ''}{'c' if cycle else ''}{'f' if fair else ''}"
        self.nodes = self.chance(0.25 if rivals else 0.45)
        self.flavors: list[Body] = []
        self.levels: list[str] = []

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def pick(self, *values: Any) -> Any:
        return self.random.choice(values)

    def some(self, values: Any, least: int = 0, most: int | None = None) -> list[Any]:
        values = list(values)
        count = self.random.randint(least, min(len(values), most if most is not None else len(values)))
        return self.random.sample(values, count)

    def make(self) -> Made:
        objects: list[Body] = [self.namespace()]
        if self.nodes:
            objects.append(self.topology())
        objects += self.make_flavors()
        if self.nodes:
            objects += self.make_nodes()
        if self.chance(0.15) and not self.rivals:
            objects.append(self.limit_range())
        objects += self.cohorts_and_queues()
        objects.append(self.local_queue("main"))
        count = self.random.randint(6, 10) if self.rivals else 1
        if self.rivals:
            objects += [self.local_queue(other) for other in self.others]
        workloads = [self.workload(index) for index in range(count)]
        return Made(self.seed, objects, workloads)

    def meta(self, name: str, namespaced: bool = False) -> Body:
        return {"name": f"{self.name}-{name}"} | ({"namespace": f"{self.name}-ns"} if namespaced else {})

    def namespace(self) -> Body:
        labels = {"team": "red"} if self.chance(0.5) else {}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{self.name}-ns", "labels": labels}}

    def topology(self) -> Body:
        self.levels = self.pick(
            ["example.com/block", "example.com/rack", HOST],
            ["example.com/rack", HOST],
            ["example.com/block", "example.com/rack", HOST],
            [HOST],
            ["example.com/block", "example.com/rack"],
        )
        levels = [{"nodeLabel": level} for level in self.levels]
        return {"apiVersion": API, "kind": "Topology", "metadata": self.meta("topology"), "spec": {"levels": levels}}

    def taint(self) -> Body:
        key, value = self.pick(*TAINTS)
        return {
            "key": key,
            **({"value": value} if value else {}),
            "effect": self.pick("NoSchedule", "NoExecute", "PreferNoSchedule"),
        }

    def toleration(self) -> Body:
        key, value = self.pick(*TAINTS)
        return self.pick(
            {"key": key, "operator": "Exists"},
            {"key": key, "operator": "Equal", "value": value},
            {"key": key, "value": value, "effect": "NoSchedule"},
            {"operator": "Exists"} if self.chance(0.3) else {"key": "other", "operator": "Exists"},
        )

    def make_flavors(self) -> list[Body]:
        plain = self.chance(0.2)
        for index in range(self.random.randint(1, 2 if self.rivals else 4)):
            spec: Body = {}
            topological = self.nodes and not (plain and index)
            labels = {key: self.pick("x", "y") for key in self.some(KEYS, 0, 2) if not self.rivals}
            if topological:
                labels = {WORLD: self.name, **({f"pool.example.com/{index}": "yes"} if self.chance(0.4) else {})}
                spec["topologyName"] = f"{self.name}-topology"
            if labels:
                spec["nodeLabels"] = labels
            if self.chance(0.2) and not self.rivals:
                spec["nodeTaints"] = [self.taint()]
            if self.chance(0.2):
                spec["tolerations"] = [self.toleration()]
            self.flavors.append(
                {"apiVersion": API, "kind": "ResourceFlavor", "metadata": self.meta(f"f{index}"), "spec": spec}
            )
        return self.flavors

    def make_nodes(self) -> list[Body]:
        nodes = []
        offered = self.pick({"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4"}, {"cpu": "4", "memory": "8Gi"})
        for index in range(self.random.randint(1, 9)):
            name = f"{self.name}-n{index}"
            labels = {
                WORLD: self.name,
                HOST: name,
                "example.com/block": f"b{self.random.randint(0, 1)}",
                "zone.example.com/a": self.pick("x", "y"),
            }
            labels["example.com/rack"] = f"{labels['example.com/block']}-r{self.random.randint(0, 2)}"
            if self.chance(0.05):
                labels.pop(self.pick("example.com/block", "example.com/rack", HOST))
            labels |= {f"pool.example.com/{n}": "yes" for n in range(4) if self.chance(0.7)}
            allocatable = {"pods": self.pick("110", "110", "3"), **offered}
            if self.chance(0.2):
                allocatable["cpu"] = "2"
            spec: Body = {}
            if self.chance(0.15):
                spec["taints"] = [self.taint()]
            if self.chance(0.05):
                spec["unschedulable"] = True
            ready = "False" if self.chance(0.05) else "True"
            nodes.append(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": labels},
                    "spec": spec,
                    "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]},
                }
            )
        return nodes

    def limit_range(self) -> Body:
        limits = []
        if self.chance(0.8):
            item: Body = {"type": "Container"}
            for field in self.some(("default", "defaultRequest", "max", "min"), 1, 2):
                low, high = field in ("min", "defaultRequest"), field in ("max", "default")
                item[field] = {"memory": "64Mi" if low else "64Gi" if high else "1Gi"}
                if self.chance(0.3) and field == "defaultRequest":
                    item[field]["ephemeral-storage"] = "1Gi"
            limits.append(item)
        if self.chance(0.4) or not limits:
            limits.append({"type": "Pod", "max": {"cpu": self.pick("2", "16")}})
        meta = self.meta("limits", namespaced=True)
        return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": limits}}

    def amount(self, resource: str) -> str:
        if self.rivals:  # so little that they are in each other's way
            return self.pick("0", "2", "3", "4", "6") + ("Gi" if resource == "memory" else "")
        match resource:
            case "cpu":
                return self.pick("0", "2500m", "4", "8", "16", "40")
            case "memory":
                return self.pick("0", "4Gi", "16Gi", "64Gi", "100Gi", "100Gi")
            case "pods":
                return self.pick("1", "3", "10")
        return self.pick("0", "4", "8", "16", "32")

    def groups(self, resources: list[list[str]], flavors: list[list[str]], *, limits: bool) -> list[Body]:
        return [
            {
                "coveredResources": covered,
                "flavors": [
                    {"name": flavor, "resources": [self.quota(resource, limits) for resource in covered]}
                    for flavor in names
                ],
            }
            for covered, names in zip(resources, flavors, strict=True)
        ]

    def quota(self, resource: str, limits: bool) -> Body:
        row: Body = {"name": resource, "nominalQuota": self.amount(resource)}
        if limits and self.chance(0.35):
            row["borrowingLimit"] = self.amount(resource)
        if limits and self.chance(0.25):
            # A queue may not lend more than it has; Kueue's webhook, which does not run here, refuses it.
            row["lendingLimit"] = self.pick(row["nominalQuota"], "0")
        return row

    def cohorts_and_queues(self) -> list[Body]:
        names = [flavor["metadata"]["name"] for flavor in self.flavors]
        covered = list(RESOURCES) if self.chance(0.7) else self.some(RESOURCES, 1)
        if self.rivals:
            covered = self.some(RESOURCES, 1, 2)
        if self.chance(0.1):
            covered.append("pods")
        self.covered = [name for name in covered if name in RESOURCES]
        if len(covered) > 1 and len(names) > 1 and self.chance(0.3):
            cut, split = self.random.randint(1, len(covered) - 1), self.random.randint(1, len(names) - 1)
            resources, flavors = [covered[:cut], covered[cut:]], [names[:split], names[split:]]
        else:
            resources, flavors = [covered], [names]
        objects: list[Body] = []
        tree = self.cohort_names()
        for cohort, parent in tree.items():
            if self.chance(0.3) and parent is None and len(tree) > 1 and not self.cycle:
                continue  # only named, never created
            spec: Body = {}
            if parent:
                spec["parentName"] = parent
            if self.chance(0.5):
                spec["resourceGroups"] = self.groups(resources, flavors, limits=parent is not None)
            spec |= self.weight()
            objects.append({"apiVersion": API, "kind": "Cohort", "metadata": {"name": cohort}, "spec": spec})
        mine = self.random.choice(list(tree)) if tree else None
        self.others = [f"q{index}" for index in range(self.random.randint(1 if self.rivals else 0, 3))] if tree else []
        self.spec = self.queue_spec(mine, resources, flavors)
        objects.append({"apiVersion": API, "kind": "ClusterQueue", "metadata": self.meta("main"), "spec": self.spec})
        for name in self.others:
            spec = self.queue_spec(self.random.choice(list(tree)), resources, flavors)
            objects.append({"apiVersion": API, "kind": "ClusterQueue", "metadata": self.meta(name), "spec": spec})
        return objects

    def cohort_names(self) -> dict[str, str | None]:
        if self.chance(0.25) and not self.rivals and not self.cycle:
            return {}
        root = f"{self.name}-root"
        tree: dict[str, str | None] = {root: None}
        for index in range(self.random.randint(0, 3)):
            tree[f"{self.name}-c{index}"] = self.random.choice(list(tree))
        if self.cycle:
            tree[root] = self.random.choice(list(tree))
        return tree

    def queue_spec(self, cohort: str | None, resources: list[list[str]], flavors: list[list[str]]) -> Body:
        spec: Body = {"resourceGroups": self.groups(resources, flavors, limits=cohort is not None)}
        if cohort:
            spec["cohortName"] = cohort
        spec["queueingStrategy"] = "StrictFIFO" if self.chance(0.1) and not self.rivals else "BestEffortFIFO"
        selector = self.pick(*[{}] * 8, {"matchLabels": {"team": "red"}}, None)
        if self.rivals:
            selector = {}
        if selector is not None:
            spec["namespaceSelector"] = selector
        fungibility: Body = {}
        if self.chance(0.4):
            fungibility["whenCanBorrow"] = self.pick("MayStopSearch", "TryNextFlavor")
        if self.chance(0.4):
            fungibility["whenCanPreempt"] = self.pick("MayStopSearch", "TryNextFlavor")
        if fungibility.get("whenCanBorrow") == fungibility.get("whenCanPreempt") == "TryNextFlavor":
            fungibility["preference"] = self.pick("BorrowingOverPreemption", "PreemptionOverBorrowing")
        if fungibility:
            spec["flavorFungibility"] = fungibility
        if self.chance(0.04) and not self.rivals:
            spec["stopPolicy"] = "Hold"
        if self.rivals:
            spec["preemption"] = self.preemption()
        return spec | self.weight()

    def weight(self) -> Body:
        return {"fairSharing": {"weight": self.pick("0", "1", "2", "500m")}} if self.fair and self.chance(0.5) else {}

    def preemption(self) -> Body:
        reclaim = self.pick("Never", "LowerPriority", "Any", "Any")
        policy: Body = {
            "withinClusterQueue": self.pick("Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority"),
            "reclaimWithinCohort": reclaim,
        }
        if reclaim != "Never" and self.chance(0.4):
            policy["borrowWithinCohort"] = {"policy": "LowerPriority"}
            if self.chance(0.4):
                policy["borrowWithinCohort"]["maxPriorityThreshold"] = self.pick(0, 50)
        return policy

    def local_queue(self, name: str) -> Body:
        meta = self.meta(name, namespaced=True)
        return {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": meta,
            "spec": {"clusterQueue": f"{self.name}-{name}"},
        }

    def workload(self, index: int) -> Body:
        queue = self.random.choice(["main", *self.others]) if self.rivals else "main"
        most = (1, 1, 1, 2) if self.rivals else (1, 1, 1, 2, 2, 3)
        sets = [self.pod_set(number) for number in range(self.random.choice(most))]
        if len(sets) == 2 and self.levels and not self.rivals and self.chance(0.3):
            self.tie(sets)
        spec: Body = {"queueName": f"{self.name}-{queue}", "podSets": sets}
        if self.rivals:
            spec["priority"] = self.pick(0, 10, 100) if index > 2 else self.pick(0, 0, 10)
        meta = self.meta(f"wl{index}", namespaced=True)
        return {"apiVersion": API, "kind": "Workload", "metadata": meta, "spec": spec}

    def tie(self, sets: list[Body]) -> None:
        """A leader and its workers that must stand together."""
        mode = self.pick("required", "preferred")
        level = self.random.choice(self.levels)
        sets[self.random.randint(0, 1)]["count"] = 1
        for each in sets:
            each["topologyRequest"] = {mode: level, "podSetGroupName": "together"}
            each.pop("minCount", None)

    def pod_set(self, number: int) -> Body:
        count = self.random.choice((1 if self.rivals else 0, *[1, 2, 3] * 4, 4, 5, 8))
        requests = {}
        known = self.covered if self.covered and (self.rivals or self.chance(0.9)) else RESOURCES
        for resource in self.some(known, 0 if self.chance(0.1) else 1):
            requests[resource] = {
                "cpu": self.pick("0", "500m", "1", "1", "2", "3"),
                "memory": self.pick("1Gi", "1Gi", "4Gi", "1.5"),
                "nvidia.com/gpu": self.pick("1", "1", "1", "2"),
            }[resource]
        resources: Body = {"requests": requests}
        if self.chance(0.2):
            resources = {"limits": requests}
        spec: Body = {"containers": [{"name": "c", "image": "registry.example.com/x", "resources": resources}]}
        if self.chance(0.1):
            init = {"name": "i", "image": "registry.example.com/x", "resources": {"requests": {"cpu": "2"}}}
            spec["initContainers"] = [init | ({"restartPolicy": "Always"} if self.chance(0.5) else {})]
        if self.rivals:
            return self.rival_pods(number, count, spec)
        if self.chance(0.3):
            spec["tolerations"] = [self.toleration() for _ in range(self.random.randint(1, 2))]
        if self.chance(0.2):
            key = self.random.choice((*KEYS, "unknown.example.com/key"))
            spec["nodeSelector"] = {key: self.pick("x", "y")}
        if self.chance(0.2):
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": self.affinity()}}
        pods: Body = {"name": f"p{number}", "count": count, "template": {"spec": spec}}
        if count > 1 and self.chance(0.15):
            pods["minCount"] = self.random.randint(1, count - 1)
        if self.levels and self.chance(0.7):
            pods["topologyRequest"] = self.topology_request(count)
        return pods

    def rival_pods(self, number: int, count: int, spec: Body) -> Body:
        """Pods that may run anywhere: what counts is who else is there."""
        pods: Body = {"name": f"p{number}", "count": min(count, 2), "template": {"spec": spec}}
        if self.levels and self.chance(0.5):
            pods["topologyRequest"] = {self.pick("required", "preferred"): self.random.choice(self.levels)}
        return pods

    def affinity(self) -> Body:
        def expression() -> Body:
            key = self.random.choice((*KEYS, "unknown.example.com/key"))
            operator = self.pick("In", "NotIn", "Exists", "DoesNotExist")
            values = {"values": self.some(("x", "y"), 1)} if operator in ("In", "NotIn") else {}
            return {"key": key, "operator": operator, **values}

        terms = [{"matchExpressions": [expression() for _ in range(self.random.randint(1, 2))]} for _ in range(2)]
        return {"nodeSelectorTerms": terms[: self.random.randint(1, 2)]}

    def topology_request(self, count: int) -> Body:
        request: Body = {}
        match self.random.randint(0, 4):
            case 0:
                request["required"] = self.random.choice([*self.levels, self.levels[0]])
            case 1 | 2:
                request["preferred"] = self.random.choice(self.levels)
            case 3:
                request["unconstrained"] = True
        if self.chance(0.05):
            request = {"required": "example.com/unknown"}
        divisors = [size for size in range(1, count + 1) if count % size == 0]
        if divisors and (self.chance(0.3) or not request):
            request["podSetSliceRequiredTopology"] = self.random.choice(self.levels)
            request["podSetSliceSize"] = self.random.choice(divisors)
        return request or {"unconstrained": True}
