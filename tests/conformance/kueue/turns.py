"""Changes that decide about a job, one for each reason that Kueue knows: before it the job is admitted, then no more.

Every change starts from the same small world: a job of four pods in a queue that has four accelerators of its own, may
borrow two from a neighbour under the same cohort, and stands on four nodes in two racks where it asks for a place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.kueue.worlds import API, HOST, WORLD, Body, Made

GPU = "nvidia.com/gpu"
RACK = "example.com/rack"


class Ground:
    """The objects of the world, by what they are; `made` gives them in the order of creation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.space = _body("v1", "Namespace", f"{name}-ns", labels={"team": "red"})
        self.flavor = _body(API, "ResourceFlavor", f"{name}-f0", spec={})
        self.other_flavor = _body(API, "ResourceFlavor", f"{name}-f1", spec={})
        self.root = _body(API, "Cohort", f"{name}-root", spec={})
        self.cohort = _body(API, "Cohort", f"{name}-c0", spec={"parentName": f"{name}-root"})
        self.queue = _body(API, "ClusterQueue", f"{name}-main", spec=self._queue(4, 4))
        self.lender = _body(API, "ClusterQueue", f"{name}-lender", spec=self._queue(8, 8))
        self.local = _body(API, "LocalQueue", "main", f"{name}-ns", spec={"clusterQueue": f"{name}-main"})
        container = {"name": "c", "image": "registry.example.com/x", "resources": {"requests": {"cpu": "1", GPU: "1"}}}
        pods = {"name": "main", "count": 4, "template": {"spec": {"containers": [container]}}}
        spec = {"queueName": "main", "podSets": [pods]}
        self.job = _body(API, "Workload", f"{name}-job", f"{name}-ns", spec=spec)
        self.more: list[Body] = []

    def _queue(self, cpu: int, gpus: int) -> Body:
        rows = [{"name": "cpu", "nominalQuota": f"{cpu}"}, {"name": GPU, "nominalQuota": f"{gpus}"}]
        flavors = [{"name": f"{self.name}-f0", "resources": rows}]
        group = {"coveredResources": ["cpu", GPU], "flavors": flavors}
        return {"cohortName": f"{self.name}-c0", "namespaceSelector": {}, "resourceGroups": [group]}

    @property
    def pods(self) -> Body:
        """The one pod set of the job."""
        found: Body = self.job["spec"]["podSets"][0]
        return found

    @property
    def pod(self) -> Body:
        """The pod of the job."""
        found: Body = self.pods["template"]["spec"]
        return found

    def row(self, queue: Body, resource: str = GPU, flavor: int = 0) -> Body:
        """The quota of one resource."""
        rows = queue["spec"]["resourceGroups"][0]["flavors"][flavor]["resources"]
        found: Body = next(each for each in rows if each["name"] == resource)
        return found

    def borrows(self) -> None:
        """Six pods, two of them on what the neighbour lends."""
        self.pods["count"] = 6

    def stands(self, gpus: int = 2, level: str = RACK) -> None:
        """Four nodes in two racks, and a job that must stand within one."""
        self.flavor["spec"] |= {"nodeLabels": {WORLD: self.name}, "topologyName": f"{self.name}-topology"}
        levels = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
        self.more.append(_body(API, "Topology", f"{self.name}-topology", spec={"levels": levels}))
        self.more += [self.node(number, gpus) for number in range(4)]
        self.pods["topologyRequest"] = {"required": level}

    def node(self, number: int, gpus: int) -> Body:
        """A node; two of them are a rack."""
        name = f"{self.name}-n{number}"
        labels = {WORLD: self.name, HOST: name, RACK: f"r{number // 2}"}
        node = _body("v1", "Node", name, labels=labels, spec={})
        ready = [{"type": "Ready", "status": "True"}]
        return node | {"status": {"allocatable": {"cpu": "8", GPU: f"{gpus}", "pods": "110"}, "conditions": ready}}

    def nodes(self) -> list[Body]:
        """The nodes."""
        return [body for body in self.more if body["kind"] == "Node"]

    def made(self) -> Made:
        """The world as it is now."""
        queues = [self.root, self.cohort, self.queue, self.lender]
        first = [self.space, *(each for each in self.more if each["kind"] == "Topology")]
        rest = [each for each in self.more if each["kind"] != "Topology"]
        flavors = [self.flavor, self.other_flavor]
        objects = [body for body in (*first, *flavors, *rest, *queues, self.local) if body]
        return Made(0, objects, [self.job])


def _body(version: str, kind: str, name: str, namespace: str = "", labels: Body | None = None, **more: Any) -> Body:
    meta: Body = (
        {"name": name} | ({"namespace": namespace} if namespace else {}) | ({"labels": labels} if labels else {})
    )
    return {"apiVersion": version, "kind": kind, "metadata": meta, **more}


Step = Callable[[Ground], object]


def _set(where: Callable[[Ground], Body], **values: Any) -> Step:
    return lambda ground: where(ground).update(values)


def _drop(where: Callable[[Ground], Body], *names: str) -> Step:
    return lambda ground: [where(ground).pop(name) for name in names]


def _spec(name: str) -> Callable[[Ground], Body]:
    return lambda ground: getattr(ground, name)["spec"]


def _both(*steps: Step) -> Step:
    return lambda ground: [step(ground) for step in steps]


_TAINT = {"key": "only", "value": "training", "effect": "NoSchedule"}
_TOLERATED = {"key": "only", "operator": "Equal", "value": "training", "effect": "NoSchedule"}


def _borrows(ground: Ground) -> None:
    ground.borrows()


def _stands(ground: Ground) -> None:
    ground.stands()


def _alone(ground: Ground) -> None:
    """Nobody to borrow from."""
    ground.queue["spec"].pop("cohortName")
    ground.lender["spec"].pop("cohortName")


def _two_flavors(ground: Ground) -> None:
    """The first flavor has nothing, the second enough."""
    _alone(ground)
    flavors = ground.queue["spec"]["resourceGroups"][0]["flavors"]
    flavors.append({"name": f"{ground.name}-f1", "resources": [dict(row) for row in flavors[0]["resources"]]})
    ground.row(ground.queue)["nominalQuota"] = "0"


def _split(ground: Ground) -> None:
    for flavor in (0, 1):
        ground.row(ground.queue, flavor=flavor)["nominalQuota"] = "2"


def _without_flavor(ground: Ground) -> None:
    ground.queue["spec"]["resourceGroups"][0]["flavors"].pop()


def _uncovered(ground: Ground) -> None:
    group = ground.queue["spec"]["resourceGroups"][0]
    group["coveredResources"] = ["cpu"]
    group["flavors"][0]["resources"] = [ground.row(ground.queue, "cpu")]


def _own_cohort(ground: Ground) -> None:
    """What is borrowed is the cohort's own, not the neighbour's."""
    ground.borrows()
    ground.lender["spec"].pop("cohortName")
    rows = [{"name": "cpu", "nominalQuota": "4"}, {"name": GPU, "nominalQuota": "2"}]
    group = {"coveredResources": ["cpu", GPU], "flavors": [{"name": f"{ground.name}-f0", "resources": rows}]}
    ground.cohort["spec"]["resourceGroups"] = [group]


def _from_the_root(ground: Ground) -> None:
    """What is borrowed comes from a queue right under the root."""
    ground.borrows()
    ground.lender["spec"]["cohortName"] = f"{ground.name}-root"


def _cohort_limit(ground: Ground) -> None:
    rows = [{"name": "cpu", "nominalQuota": "0"}, {"name": GPU, "nominalQuota": "0", "borrowingLimit": "1"}]
    group = {"coveredResources": ["cpu", GPU], "flavors": [{"name": f"{ground.name}-f0", "resources": rows}]}
    ground.cohort["spec"]["resourceGroups"] = [group]


def _limits(ground: Ground) -> None:
    limits = [{"type": "Container", "max": {"cpu": "500m"}}]
    ground.more.append(_body("v1", "LimitRange", "limits", f"{ground.name}-ns", spec={"limits": limits}))


def _check(ground: Ground) -> None:
    ground.queue["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": f"{ground.name}-nowhere"}]}


#: Reason → how the world is before, and what changes.
TURNS: dict[str, tuple[Step, Step]] = {
    "quota too small": (_alone, _set(lambda g: g.row(g.queue), nominalQuota="3")),
    "quota of nothing": (_alone, _set(lambda g: g.row(g.queue), nominalQuota="0")),
    "quota of another resource": (_alone, _set(lambda g: g.row(g.queue, "cpu"), nominalQuota="3500m")),
    "more pods": (_alone, _set(lambda g: g.pods, count=5)),
    "more for each pod": (
        _alone,
        _set(lambda g: g.pod["containers"][0]["resources"]["requests"], **{GPU: "2"}),
    ),
    "an overhead": (_alone, _set(lambda g: g.pod, overhead={"cpu": "100m"})),
    "borrowing limit": (_borrows, _set(lambda g: g.row(g.queue), borrowingLimit="1")),
    "borrowing forbidden": (_borrows, _set(lambda g: g.row(g.queue), borrowingLimit="0")),
    "lending limit": (_borrows, _set(lambda g: g.row(g.lender), lendingLimit="1")),
    "lending forbidden": (_borrows, _set(lambda g: g.row(g.lender), lendingLimit="0")),
    "the neighbour has less": (_borrows, _set(lambda g: g.row(g.lender), nominalQuota="1")),
    "the neighbour goes": (_borrows, lambda g: g.lender.clear()),
    "the queue leaves its cohort": (_borrows, _drop(_spec("queue"), "cohortName")),
    "the neighbour leaves the cohort": (_borrows, _drop(_spec("lender"), "cohortName")),
    "the neighbour joins another cohort": (_borrows, _set(_spec("lender"), cohortName="elsewhere")),
    "the cohort's own quota": (_own_cohort, _drop(_spec("cohort"), "resourceGroups")),
    "the cohort leaves its parent": (_from_the_root, _drop(_spec("cohort"), "parentName")),
    "the cohort's borrowing limit": (_from_the_root, _cohort_limit),
    "a taint of the flavor": (_alone, _set(_spec("flavor"), nodeTaints=[_TAINT])),
    "the job tolerates no more": (
        _both(_alone, _set(_spec("flavor"), nodeTaints=[_TAINT]), _set(lambda g: g.pod, tolerations=[_TOLERATED])),
        _drop(lambda g: g.pod, "tolerations"),
    ),
    "the job tolerates another value": (
        _both(_alone, _set(_spec("flavor"), nodeTaints=[_TAINT]), _set(lambda g: g.pod, tolerations=[_TOLERATED])),
        _set(lambda g: g.pod, tolerations=[{**_TOLERATED, "value": "serving"}]),
    ),
    "the flavor tolerates no more": (
        _both(_alone, _set(_spec("flavor"), nodeTaints=[_TAINT], tolerations=[_TOLERATED])),
        _drop(_spec("flavor"), "tolerations"),
    ),
    "a label of the flavor": (
        _both(
            _alone,
            _set(_spec("flavor"), nodeLabels={"zone": "a"}),
            _set(lambda g: g.pod, nodeSelector={"zone": "a"}),
        ),
        _set(_spec("flavor"), nodeLabels={"zone": "b"}),
    ),
    "a node selector": (
        _both(_alone, _set(_spec("flavor"), nodeLabels={"zone": "a"})),
        _set(lambda g: g.pod, nodeSelector={"zone": "b"}),
    ),
    "a node affinity": (
        _both(_alone, _set(_spec("flavor"), nodeLabels={"zone": "a"})),
        _set(
            lambda g: g.pod,
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}
                        ]
                    }
                }
            },
        ),
    ),
    "a namespace selector": (_alone, _set(_spec("queue"), namespaceSelector={"matchLabels": {"team": "blue"}})),
    "no namespace selector": (_alone, _drop(_spec("queue"), "namespaceSelector")),
    "a label of the namespace": (
        _both(_alone, _set(_spec("queue"), namespaceSelector={"matchLabels": {"team": "red"}})),
        _drop(lambda g: g.space["metadata"], "labels"),
    ),
    "the queue is held": (_alone, _set(_spec("queue"), stopPolicy="Hold")),
    "the queue is drained": (_alone, _set(_spec("queue"), stopPolicy="HoldAndDrain")),
    "the local queue is held": (_alone, _set(_spec("local"), stopPolicy="Hold")),
    "a resource that is not covered": (_alone, _uncovered),
    "the job wants what is not covered": (
        _alone,
        _set(lambda g: g.pod["containers"][0]["resources"]["requests"], **{"example.com/nic": "1"}),
    ),
    "the flavor with room goes": (_two_flavors, _without_flavor),
    "enough only over two flavors": (_two_flavors, _split),
    "a flavor that is not there": (_alone, lambda g: g.flavor.clear()),
    "a queue that is not there": (_alone, lambda g: g.queue.clear()),
    "a local queue that is not there": (_alone, lambda g: g.local.clear()),
    "another queue by name": (_alone, _set(_spec("job"), queueName="nowhere")),
    "an admission check that is not there": (_alone, _check),
    "a limit of the namespace": (_alone, _limits),
    "a node less": (_both(_alone, _stands), lambda g: [g.more.remove(n) for n in g.nodes()[::2]]),
    "a narrower place": (_both(_alone, _stands), _set(lambda g: g.pods, topologyRequest={"required": HOST})),
    "a node that takes no pods": (
        _both(_alone, _stands),
        lambda g: [node["spec"].update(unschedulable=True) for node in g.nodes()[1:3]],
    ),
    "a taint of nodes": (
        _both(_alone, _stands),
        lambda g: [node["spec"].update(taints=[_TAINT]) for node in g.nodes()[1:3]],
    ),
    "nodes with less": (
        _both(_alone, _stands),
        lambda g: [node["status"]["allocatable"].update({GPU: "1"}) for node in g.nodes()],
    ),
    "racks of one node": (
        _both(_alone, _stands),
        lambda g: [node["metadata"]["labels"].update({RACK: node["metadata"]["name"]}) for node in g.nodes()],
    ),
    "nodes without the label of the flavor": (
        _both(_alone, _stands),
        lambda g: [node["metadata"]["labels"].pop(WORLD) for node in g.nodes()[1:3]],
    ),
    "pods larger than a node": (
        _both(_alone, lambda g: g.stands(4), _set(lambda g: g.row(g.queue, "cpu"), nominalQuota="64")),
        _set(lambda g: g.pod["containers"][0]["resources"]["requests"], cpu="9"),
    ),
}

#: Changes that look as if they decided, and do not: on an idle cluster the job is admitted before and after.
QUIET: dict[str, tuple[Step, Step]] = {
    "a lower priority": (_alone, _set(_spec("job"), priority=-10)),
    "a weight": (_borrows, _set(_spec("queue"), fairSharing={"weight": "500m"})),
    "the order of flavors": (_two_flavors, lambda g: g.queue["spec"]["resourceGroups"][0]["flavors"].reverse()),
    "the strategy of the queue": (_alone, _set(_spec("queue"), queueingStrategy="StrictFIFO")),
    "no preemption": (_borrows, _set(_spec("queue"), preemption={"reclaimWithinCohort": "Never"})),
    "which flavor is tried next": (
        _two_flavors,
        _set(_spec("queue"), flavorFungibility={"whenCanBorrow": "TryNextFlavor"}),
    ),
    "a quota that is just enough": (
        _both(_alone, _set(lambda g: g.row(g.queue), nominalQuota="9")),
        _set(lambda g: g.row(g.queue), nominalQuota="4"),
    ),
    "a limit that is just enough": (_borrows, _set(lambda g: g.row(g.queue), borrowingLimit="2")),
    "a taint that only prefers": (_alone, _set(_spec("flavor"), nodeTaints=[{**_TAINT, "effect": "PreferNoSchedule"}])),
    "a place that is only preferred": (
        _both(_alone, _stands),
        _set(lambda g: g.pods, topologyRequest={"preferred": HOST}),
    ),
}


def turned(number: int, steps: tuple[Step, Step]) -> tuple[Made, Made]:
    """The world before and after a change."""
    old, new = Ground(f"t{number}"), Ground(f"t{number}")
    steps[0](old)
    steps[0](new)
    steps[1](new)
    return old.made(), new.made()
