"""Kueue's own scheduler as a process beside an API server: what it decides about Workload objects."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from blueprint.conform import programs
from blueprint.conform.client import Target
from blueprint.conform.controlplane import ControlPlane
from blueprint.conform.daemon import Daemon, NotReady

Body = dict[str, Any]
Spread = list[tuple[tuple[str, ...], int]]

#: Without a node controller a new node would keep the taint not-ready for ever.
FLAGS = ("--disable-admission-plugins=TaintNodesByCondition,ServiceAccount",)
API = "kueue.x-k8s.io/v1beta2"
HOST = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Answer:
    """What became of a Workload; flavors and pods by domain of each pod set where it was admitted."""

    admitted: bool
    reason: str
    message: str
    counts: dict[str, int]
    flavors: dict[str, dict[str, str]]
    spreads: dict[str, Spread | None]


class Oracle:
    """A running minimalkueue."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.client = plane.client
        self._marks = 0

    def create(self, bodies: Iterable[Body]) -> None:
        """Create objects, several at a time; a refusal is an error of the world."""
        with ThreadPoolExecutor(4) as pool:
            for body, answer in zip(bodies := list(bodies), pool.map(self.client.create, bodies), strict=True):
                if not answer.ok:
                    raise AssertionError(f"{body['kind']} {body['metadata']['name']}: {answer.message}")

    def ready(self) -> None:
        """Wait until the scheduler has seen all that was created: it admits a workload of the last cohort and node."""
        self._marks += 1
        name = f"mark-{self._marks}"
        rows = [{"name": "cpu", "nominalQuota": "1"}]
        group = {"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": rows}]}
        none = {
            "coveredResources": ["cpu"],
            "flavors": [{"name": name, "resources": [{**rows[0], "nominalQuota": "0"}]}],
        }
        container = {"name": "c", "image": "registry.example.com/x", "resources": {"requests": {"cpu": "1"}}}
        pods = {"name": "p", "count": 1, "template": {"spec": {"containers": [container]}}}
        place = {"name": name, "namespace": "default"}
        spec = {"cohortName": name, "namespaceSelector": {}, "resourceGroups": [none]}
        labels = {HOST: name}
        offered = {"allocatable": {"cpu": "1", "pods": "1"}, "conditions": [{"type": "Ready", "status": "True"}]}
        flavor = {"nodeLabels": labels, "topologyName": name}
        bodies = [
            {"kind": "Topology", "metadata": {"name": name}, "spec": {"levels": [{"nodeLabel": HOST}]}},
            {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": flavor},
            {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}, "status": offered},
            {"kind": "Cohort", "metadata": {"name": name}, "spec": {"resourceGroups": [group]}},
            {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec},
            {"kind": "LocalQueue", "metadata": place, "spec": {"clusterQueue": name}},
            {"kind": "Workload", "metadata": place, "spec": {"queueName": name, "podSets": [pods]}},
        ]
        for body in bodies:
            self.create([{"apiVersion": API, **body}])
        deadline = time.monotonic() + 60
        while not ((found := answer(self.workloads()[name])) and found.admitted):
            if time.monotonic() > deadline:
                raise NotReady("the scheduler does not admit what it could")
            time.sleep(0.1)

    def delete(self, bodies: Iterable[Body]) -> None:
        """Delete objects."""
        for body in bodies:
            self.client.delete(Target.of(body))

    def workloads(self) -> dict[str, Body]:
        """All Workloads by name."""
        listed = self.client.request("GET", f"/apis/{API}/workloads").body
        return {item["metadata"]["name"]: item for item in listed.get("items", ())}

    def settle(self, names: Iterable[str], *, quiet: float = 2.0, patience: float = 8.0) -> dict[str, Answer]:
        """Wait until each Workload has an answer and none got another one for `quiet` seconds.

        One that has none after `patience` seconds of silence counts as refused without a word: its status is never
        written, since the API server does not take it.
        """
        wanted = set(names)
        since, before = time.monotonic(), (-1, -1)
        while True:
            found = {name: answer(item) for name, item in self.workloads().items() if name in wanted}
            known = {name: each for name, each in found.items() if each is not None}
            now = (len(known), sum(each.admitted for each in known.values()))
            if now != before:
                since, before = time.monotonic(), now
            if time.monotonic() - since > (quiet if len(known) == len(wanted) else patience):
                silent = Answer(False, "", "", {}, {}, {})
                return {name: known.get(name, silent) for name in wanted}
            time.sleep(0.25)

    def rest(self, names: Iterable[str], *, quiet: float = 2.5, patience: float = 6.0) -> dict[str, Answer]:
        """Like `settle` with rivals: complete evictions as a job's controller does, until nothing changes any more."""
        wanted = set(names)
        before: tuple[tuple[str, bool], ...] = ()
        since, deadline = time.monotonic(), time.monotonic() + 60
        while True:
            items = {name: item for name, item in self.workloads().items() if name in wanted}
            for item in items.values():
                self._complete(item)
            found = {name: answer(item) for name, item in items.items()}
            known = {name: each for name, each in found.items() if each is not None}
            now = tuple(sorted((name, each.admitted) for name, each in known.items()))
            if now != before:
                since, before = time.monotonic(), now
            calm = quiet if len(known) == len(wanted) else patience
            if time.monotonic() - since > calm or time.monotonic() > deadline:
                return known
            time.sleep(0.3)

    def _complete(self, item: Body) -> None:
        """End an eviction: no quota, and back into the queue (kueue pkg/controller/jobframework/reconciler.go)."""
        conditions = {c["type"]: c for c in item.get("status", {}).get("conditions", ())}
        if not all(conditions.get(kind, {}).get("status") == "True" for kind in ("Evicted", "QuotaReserved")):
            return
        ended = {"QuotaReserved": "False", "Admitted": "False", "Requeued": "True"}
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for kind, status in ended.items():
            condition = {"reason": "Pending", "message": "evicted", "lastTransitionTime": stamp}
            conditions[kind] = {"type": kind, "status": status, **condition}
        status = {**item["status"], "conditions": list(conditions.values())}
        status.pop("admission", None)
        meta = item["metadata"]
        path = f"/apis/{API}/namespaces/{meta['namespace']}/workloads/{meta['name']}/status"
        self.client.request("PUT", path, json.dumps({**item, "status": status}).encode())


def answer(item: Body) -> Answer | None:
    """The answer in a Workload's status, None as long as there is none."""
    conditions = {c["type"]: c for c in item.get("status", {}).get("conditions", ())}
    reserved = conditions.get("QuotaReserved")
    if reserved is None:
        return None
    assigned = item["status"].get("admission", {}).get("podSetAssignments", ())
    return Answer(
        reserved["status"] == "True",
        reserved.get("reason", ""),
        reserved.get("message", ""),
        {each["name"]: each.get("count", 0) for each in assigned},
        {each["name"]: each.get("flavors", {}) for each in assigned},
        {each["name"]: spread(each.get("topologyAssignment")) for each in assigned},
    )


def spread(assignment: Body | None) -> Spread | None:
    """Pods by domain, out of Kueue's packed form (apis/kueue/v1beta2/workload_types.go)."""
    if assignment is None:
        return None
    result: Spread = []
    for part in assignment.get("slices", ()):
        count = part["domainCount"]
        levels = [_values(level, count) for level in part["valuesPerLevel"]]
        pods = part["podCounts"]
        numbers = pods.get("individual") or [pods["universal"]] * count
        result += list(zip(zip(*levels, strict=True), numbers, strict=True))
    return result


def _values(level: Body, count: int) -> list[str]:
    if "universal" in level:
        return [level["universal"]] * count
    single = level["individual"]
    return [f"{single.get('prefix', '')}{root}{single.get('suffix', '')}" for root in single["roots"]]


@contextmanager
def running(crds: list[Body], configuration: Body | None = None, name: str = "kueue-scheduler") -> Iterator[Oracle]:
    """An API server with Kueue's CRDs, and its scheduler with topology-aware scheduling.

    Without a configuration this is minimalkueue; with one it is our own main around Kueue's packages, which takes one
    (tools/kueue/scheduler, or the program of that name).
    """
    with ControlPlane(flags=FLAGS) as plane:
        plane.load_crds(crd for crd in crds if crd["spec"]["group"] == "kueue.x-k8s.io")
        program = programs.find("minimalkueue" if configuration is None else name)
        options = ["--enableTAS"]
        if configuration is not None:
            file = plane.folder / "configuration.json"
            file.write_text(json.dumps(configuration))
            options = [f"--config={file}"]
        environment = {"KUBECONFIG": str(plane.kubeconfig)}
        daemon = Daemon("kueue", [program.path, *options], plane.folder, environment=environment)
        try:
            oracle = Oracle(plane)
            oracle.ready()  # what is there before it watches is queued behind everything that comes later
            yield oracle
        finally:
            daemon.stop()
