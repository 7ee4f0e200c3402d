"""Canonical quantities in whole objects."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.render.canonical import canonical

CONTAINER = {
    "name": "a",
    "resources": {
        "requests": {"cpu": 0.1, "memory": "1024Mi", "nvidia.com/gpu": 8},
        "limits": {"cpu": "1000m", "memory": "1.5Gi", "ephemeral-storage": "1e3"},
    },
    "env": [
        {"name": "limits", "value": "1024Mi"},
        {"name": "cpus", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}},
    ],
}
SETTLED = {
    "name": "a",
    "resources": {
        "requests": {"cpu": "100m", "memory": "1Gi", "nvidia.com/gpu": "8"},
        "limits": {"cpu": "1", "memory": "1536Mi", "ephemeral-storage": "1k"},
    },
    "env": [
        {"name": "limits", "value": "1024Mi"},
        {"name": "cpus", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}}},
    ],
}


@pytest.mark.parametrize("kind", ["Deployment", "Rollout", "PyTorchJob", "SomethingNew"])
def test_wherever_a_pod_is_embedded(kind):
    pod = {"containers": [CONTAINER], "volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "2048Mi"}}]}
    body = {"kind": kind, "spec": {"replicas": {"Worker": {"template": {"spec": pod}}}}}
    before = copy.deepcopy(body)
    settled = {"containers": [SETTLED], "volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "2Gi"}}]}
    assert canonical(body)["spec"]["replicas"]["Worker"]["template"]["spec"] == settled
    assert body == before


CASES = [
    ({"kind": "ResourceQuota", "spec": {"hard": {"pods": 1000, "requests.memory": "1024Gi"}}},
     {"hard": {"pods": "1k", "requests.memory": "1Ti"}}),
    ({"kind": "LimitRange", "spec": {"limits": [{"type": "Pod", "max": {"cpu": "8000m"}, "default": {"cpu": 1}}]}},
     {"limits": [{"type": "Pod", "max": {"cpu": "8"}, "default": {"cpu": "1"}}]}),
    ({"kind": "PersistentVolumeClaim", "spec": {"resources": {"requests": {"storage": "1024Gi"}}}},
     {"resources": {"requests": {"storage": "1Ti"}}}),
    ({"kind": "ClusterQueue", "spec": {"fairSharing": {"weight": 2}, "resourceGroups": [{"flavors": [{"name": "a",
      "resources": [{"name": "cpu", "nominalQuota": 16, "borrowingLimit": "4000m", "lendingLimit": 0}]}]}]}},
     {"fairSharing": {"weight": "2"}, "resourceGroups": [{"flavors": [{"name": "a",
      "resources": [{"name": "cpu", "nominalQuota": "16", "borrowingLimit": "4", "lendingLimit": "0"}]}]}]}),
    ({"kind": "HorizontalPodAutoscaler", "spec": {"metrics": [{"pods": {"target": {"averageValue": "1500m"}}}]}},
     {"metrics": [{"pods": {"target": {"averageValue": "1500m"}}}]}),
    ({"kind": "TrainJob", "spec": {"trainer": {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}}},
     {"trainer": {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": "8"}}}}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "spec"), CASES, ids=lambda v: v.get("kind", ""))
def test_by_kind(body, spec):
    assert canonical(body)["spec"] == spec


NEAR_MISSES = [
    {"kind": "ConfigMap", "data": {"sizeLimit": "1024Mi"}, "resources": {"limits": {"a": "1000m"}}},
    {"kind": "CustomResourceDefinition", "spec": {"default": {"resources": {"limits": {"cpu": "1000m"}}}}},
    {"kind": "Deployment", "metadata": {"annotations": {"x": "1000m"}, "resources": {"limits": {"cpu": "1000m"}}}},
    {"kind": "Rollout", "status": {"resources": {"limits": {"cpu": "1000m"}}}},
    {"kind": "Role", "rules": [{"resources": ["pods"], "verbs": ["get"]}]},
    {
        "kind": "ClusterPolicy",
        "spec": {"pattern": {"spec": {"containers": [{"resources": {"limits": {"memory": "?*"}}}]}}},
    },
    {"kind": "Deployment", "spec": {"limits": {"cpu": "1000m"}, "target": {"value": "1000m"}, "hard": {"a": "1000m"}}},
    {"kind": "Deployment", "spec": {"resources": {"limits": {"cpu": True, "memory": None, "x": "ten", "y": []}}}},
    {"kind": ["Deployment"]},
    {},
]


@pytest.mark.parametrize("body", NEAR_MISSES)
def test_near_misses_stay_as_they_are(body):
    assert canonical(body) == body


def test_an_object_in_order_is_shared():
    body = {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [SETTLED]}}}}
    assert canonical(body)["spec"] is body["spec"]


@given(st.recursive(
    st.one_of(st.text(max_size=5), st.integers(), st.none()),
    lambda tree: st.lists(tree, max_size=3)
    | st.dictionaries(st.sampled_from(["resources", "limits", "requests", "spec", "hard", "a"]), tree, max_size=3),
))  # fmt: skip
def test_twice_is_once(tree):
    once = canonical({"kind": "ResourceQuota", "spec": tree})
    assert canonical(once) == once
