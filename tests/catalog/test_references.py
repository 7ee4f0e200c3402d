"""References: which field of which object names another one."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.catalog.references import references, walk
from blueprint.finding import Ref, Source
from blueprint.objects import Manifest


def named(body: dict[str, Any]) -> dict[str, Ref]:
    return {found.path: found.target for found in references(Manifest(body, Source("x.yaml", 1)))}


def test_the_queue_label_names_a_local_queue() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "training", "kueue.x-k8s.io/priority-class": "high"}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "alpha", "labels": labels},
    }
    assert named(body) == {
        "metadata.namespace": Ref("", "Namespace", "", "alpha"),
        "metadata.labels.kueue.x-k8s.io/queue-name": Ref("kueue.x-k8s.io", "LocalQueue", "alpha", "training"),
        "metadata.labels.kueue.x-k8s.io/priority-class": Ref("kueue.x-k8s.io", "WorkloadPriorityClass", "", "high"),
    }


@pytest.mark.parametrize(
    ("api_version", "kind", "wrap"),
    [
        ("v1", "Pod", lambda spec: {"spec": spec}),
        ("apps/v1", "Deployment", lambda spec: {"spec": {"template": {"spec": spec}}}),
        ("batch/v1", "CronJob", lambda spec: {"spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}),
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            lambda spec: {"spec": {"pytorchReplicaSpecs": {"Master": {"template": {"spec": spec}}}}},
        ),
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            lambda spec: {"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": spec}}}},
        ),
    ],
)
def test_pods_are_found_wherever_they_are(api_version: str, kind: str, wrap: Any) -> None:
    spec = {
        "serviceAccountName": "runner",
        "volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "b", "emptyDir": {}}],
        "containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "settings"}}]}],
    }
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "n"}, **wrap(spec)}
    assert set(named(body).values()) == {
        Ref("", "Namespace", "", "n"),
        Ref("", "ServiceAccount", "n", "runner"),
        Ref("", "PersistentVolumeClaim", "n", "data"),
        Ref("", "ConfigMap", "n", "settings"),
    }


def test_a_kind_beside_the_name_decides() -> None:
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "b", "namespace": "n"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [
            {"kind": "ServiceAccount", "name": "bot", "namespace": "other"},
            {"kind": "Group", "name": "people"},
        ],
    }
    targets = set(named(body).values())
    assert Ref("rbac.authorization.k8s.io", "ClusterRole", "", "view") in targets
    assert Ref("", "ServiceAccount", "other", "bot") in targets
    assert not any(ref.name == "people" for ref in targets)


@pytest.mark.parametrize("body", [{}, {"kind": 3}, {"apiVersion": "v1", "kind": "Pod", "spec": [1], "metadata": 7}])
def test_odd_objects_name_nothing(body: dict[str, Any]) -> None:
    assert named(body) == {}


def test_walk_says_where_it_was() -> None:
    body = {"a": [{"b": {"x": 1, "y": 2}}, {"c": 3}, "odd"]}
    found = {path: value for path, value, _ in walk(body, ("a", "[]", "b", "{}"))}
    assert found == {"a[0].b.x": 1, "a[0].b.y": 2}
