"""What KQ303 and KQ803 say beside their replayed examples, by Kueue's scheduler: what it admits, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from blueprint.check import tree_rules, validate
from tests.conformance.certain.replay import pack, reading
from tests.conformance.certain.worlds import world
from tests.conformance.kueue.oracle import Oracle
from tests.conformance.test_certain import decided

TOPOLOGY = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: dc}
spec: {levels: [{nodeLabel: kubernetes.io/hostname}]}
"""
POOL = """
apiVersion: platform.blueprint/v1alpha1
kind: NodePool
metadata: {name: POOL}
spec: {nodes: 1, labels: {example.com/pool: POOL, example.com/zone: ZONE}, allocatable: {cpu: 8, memory: 64Gi}}
"""
FLAVOR = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: NAME}
spec: {nodeLabels: {LABELS}, topologyName: dc}
"""
QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec: {namespaceSelector: {}, resourceGroups: [GROUPS]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: topology}
spec: {clusterQueue: research}
---
{apiVersion: v1, kind: Namespace, metadata: {name: topology}}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, namespace: topology, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "registry.example.com/c:1", resources: {requests: {REQUESTS}}}]
"""


def filled(template: str, **words: str) -> str:
    """A template with its words in capitals filled in."""
    for name, word in words.items():
        template = template.replace(name, word)
    return template


def group(resources: str, *flavors: str) -> str:
    """A resource group that has eight of each resource in each flavor."""
    rows = ", ".join(f"{{name: {each}, nominalQuota: 8}}" for each in resources.split(", "))
    shown = ", ".join(f"{{name: {flavor}, resources: [{rows}]}}" for flavor in flavors)
    return f"{{coveredResources: [{resources}], flavors: [{shown}]}}"


def said(text: str) -> set[str]:
    """The codes of what `check` says."""
    found = reading(text)
    outcome = validate([*found.manifests, *found.aside], pack(), tree_rules=tree_rules())
    return {finding.code for finding in (*found.findings, *outcome.findings) if finding.fails}


def answers(oracle: Oracle, text: str, mark: str) -> list[Any]:
    """What the scheduler says to the jobs."""
    found = reading(text)
    return decided(oracle, world([*found.manifests, *found.aside], mark))


def shared(apart: bool) -> Iterator[str]:
    """Two flavors of the one node there is, or of which the first selects others; two jobs of a whole node."""
    yield TOPOLOGY
    yield filled(POOL, POOL="h100", ZONE="z1")
    gold = "example.com/pool: h100, example.com/zone: z2" if apart else "example.com/pool: h100"
    yield filled(FLAVOR, NAME="gold", LABELS=gold)
    yield filled(FLAVOR, NAME="silver", LABELS="example.com/pool: h100, example.com/zone: z1")
    yield filled(QUEUE, GROUPS=group("cpu", "gold", "silver"))
    yield filled(JOB, NAME="one", REQUESTS="cpu: 8")
    yield filled(JOB, NAME="two", REQUESTS="cpu: 8")


@pytest.mark.parametrize(("apart", "admitted"), [(False, 2), (True, 1)])
def test_flavors_of_the_same_nodes_give_them_away_twice(apart: bool, admitted: int, oracle: Oracle) -> None:
    text = "---".join(shared(apart))
    assert ("KQ303" in said(text)) is (admitted == 2)
    assert sum(answer.admitted for answer in answers(oracle, text, f"twice{admitted}")) == admitted


def grouped(together: bool) -> Iterator[str]:
    """A pod of cpu and memory, whose flavors stand in one group or in two; a node that has too little of both."""
    yield TOPOLOGY
    yield filled(POOL, POOL="h100", ZONE="z1").replace("cpu: 8, memory: 64Gi", "cpu: 1, memory: 1")
    yield filled(FLAVOR, NAME="gold", LABELS="example.com/pool: h100")
    if together:
        yield filled(QUEUE, GROUPS=group("cpu, memory", "gold"))
    else:
        yield filled(FLAVOR, NAME="silver", LABELS="example.com/pool: h100, example.com/zone: z9")
        yield filled(QUEUE, GROUPS=f"{group('cpu', 'gold')}, {group('memory', 'silver')}")
    yield filled(JOB, NAME="one", REQUESTS="cpu: 4, memory: 4")


@pytest.mark.parametrize("together", [False, True])
def test_a_pod_of_two_groups_is_admitted_without_a_place(together: bool, oracle: Oracle) -> None:
    text = "---".join(grouped(together))
    assert ("KQ303" in said(text)) is not together
    (answer,) = answers(oracle, text, f"groups{together}".lower())
    assert answer.admitted is not together
    assert not any(answer.spreads.values())


CHECK = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: another}
spec: {controllerName: example.com/another}
"""


@pytest.mark.parametrize("there", [False, True])
def test_a_check_that_is_not_there_stops_its_queue(there: bool, oracle: Oracle) -> None:
    flavor = FLAVOR.replace(", topologyName: dc", "")
    queue = filled(QUEUE, GROUPS=group("cpu", "gold"))
    if not there:
        asked = "admissionChecksStrategy: {admissionChecks: [{name: gone}]}"
        queue = queue.replace("namespaceSelector: {}", f"namespaceSelector: {{}}, {asked}")
    job = filled(JOB, NAME="one", REQUESTS="cpu: 1")
    text = "---".join([filled(flavor, NAME="gold", LABELS="a: b"), queue, CHECK, job])
    assert ("KQ803" in said(text)) is not there
    (answer,) = answers(oracle, text, f"check{there}".lower())
    assert answer.admitted is there
