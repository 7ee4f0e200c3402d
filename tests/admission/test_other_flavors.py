"""Pod sets of one workload on two flavors that have a node in common."""

from __future__ import annotations

import pytest
import yaml_rs

from blueprint.admission.decide import decide
from blueprint.admission.world import world
from blueprint.finding import Source
from blueprint.objects import Manifest

OBJECTS = """
{apiVersion: v1, kind: Namespace, metadata: {name: ml}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: hosts}, spec: {levels: [{nodeLabel: kubernetes.io/hostname}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: b-all}, spec: {nodeLabels: {pool: gpu}, topologyName: hosts}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: a-few}, spec: {nodeLabels: {pool: gpu, few: "yes"}, topologyName: hosts}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: main}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors:
        - {name: a-few, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}
        - {name: b-all, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: main, namespace: ml}, spec: {clusterQueue: main}}
---
apiVersion: v1
kind: Node
metadata: {name: n0, labels: {pool: gpu, few: "yes", kubernetes.io/hostname: n0}}
status: {allocatable: {nvidia.com/gpu: "4", pods: "9"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {pool: gpu, kubernetes.io/hostname: n1}}
status: {allocatable: {nvidia.com/gpu: "4", pods: "9"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: two, namespace: ml}
spec:
  queueName: main
  podSets:
    - {name: a, count: 2, topologyRequest: {unconstrained: true}, template: {spec: {containers: [{name: c, image: x, resources: {requests: {nvidia.com/gpu: "2"}}}]}}}
    - {name: b, count: 2, topologyRequest: {required: kubernetes.io/hostname}, template: {spec: {containers: [{name: c, image: x, resources: {requests: {nvidia.com/gpu: "1"}}}]}}}
"""  # noqa: E501


@pytest.mark.parametrize(("kueue", "node"), [("0.17.0", "n0"), ("0.19.2", "n1")])
def test_nodes_that_another_flavor_filled(kueue: str, node: str) -> None:
    """The first pod set fills n0 by the smaller flavor: since 0.18 the second, on the other, is not put there."""
    bodies = map(yaml_rs.loads, OBJECTS.split("---\n"))
    manifests = [Manifest(body, Source("world", n)) for n, body in enumerate(bodies)]
    decision = decide(world(manifests, kueue=kueue), manifests[-1])
    assert decision.admissible
    plans = {plan.name: plan for plan in decision.podsets}
    assert set(plans["a"].flavors.values()) == {"a-few"}
    assert plans["a"].spread == [(("n0",), 2)]
    assert set(plans["b"].flavors.values()) == {"b-all"}
    assert plans["b"].spread == [((node,), 2)]
