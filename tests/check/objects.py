"""Small valid objects, and a way to change one field."""

from __future__ import annotations

import copy
from typing import Any

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import Validator
from blueprint.finding import Finding, Source
from blueprint.objects import Manifest

VALIDATOR = Validator(SchemaPack.shipped(), rules=())


def manifest(body: dict[str, Any]) -> Manifest:
    return Manifest(body, Source("tree/object.yaml", 1, 1))


def create(body: dict[str, Any]) -> list[Finding]:
    return VALIDATOR.create(manifest(body))


def codes(body: dict[str, Any]) -> list[str]:
    return [finding.code for finding in create(body)]


def update(new: dict[str, Any], old: dict[str, Any]) -> list[Finding]:
    return VALIDATOR.update(manifest(new), manifest(old))


GONE = object()


def changed(body: dict[str, Any], *path_and_value: Any) -> dict[str, Any]:
    """A copy with the value, the last argument, at the path of the others; GONE takes the field away."""
    *path, last, value = path_and_value
    out = copy.deepcopy(body)
    node: Any = out
    for step in path:
        node = node[step]
    if value is GONE:
        del node[last]
    else:
        node[last] = value
    return out


DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat", "namespace": "chat", "labels": {"app": "chat"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "chat"}},
        "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
        "template": {
            "metadata": {"labels": {"app": "chat"}},
            "spec": {
                "containers": [
                    {
                        "name": "server",
                        "image": "registry.example.com/vllm",
                        "env": [{"name": "A", "value": "b"}],
                        "ports": [{"containerPort": 8000}],
                        "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "64Gi"}},
                    }
                ]
            },
        },
    },
}

CLUSTER_QUEUE: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "search-ai"},
    "spec": {
        "cohortName": "shared",
        "resourceGroups": [
            {
                "coveredResources": ["nvidia.com/gpu"],
                "flavors": [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 16}]}],
            }
        ],
    },
}

ROLLOUT: dict[str, Any] = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "chat-70b"},
    "spec": {
        "replicas": 2,
        "minReadySeconds": 10,
        "selector": {"matchLabels": {"app": "chat"}},
        "strategy": {"canary": {"steps": [{"setWeight": 5}]}},
        "template": {"metadata": {"labels": {"app": "chat"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
    },
}

VIRTUAL_SERVICE: dict[str, Any] = {
    "apiVersion": "networking.istio.io/v1",
    "kind": "VirtualService",
    "metadata": {"name": "chat"},
    "spec": {
        "hosts": ["chat"],
        "http": [
            {"timeout": "3s", "match": [{"uri": {"exact": "/x"}}], "route": [{"destination": {"host": "chat"}}]},
        ],
    },
}

WORKLOAD: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Workload",
    "metadata": {"name": "job"},
    "spec": {
        "queueName": "training",
        "podSets": [
            {
                "name": "main",
                "count": 2,
                "template": {"spec": {"containers": [{"name": "a", "image": "b", "env": [{"name": "A"}]}]}},
            }
        ],
    },
}


def toys(spec: dict[str, Any], **version: Any) -> dict[str, Any]:
    """A CRD whose `spec` has the given schema; further fields of its one version."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Toy", "plural": "toys"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                    **version,
                }
            ],
        },
    }
