from __future__ import annotations

import datetime
from typing import Any

import pytest

from blueprint.finding import Confidence, Severity
from tests.check.objects import (
    CLUSTER_QUEUE,
    DEPLOYMENT,
    GONE,
    ROLLOUT,
    VIRTUAL_SERVICE,
    WORKLOAD,
    changed,
    codes,
    create,
    toys,
)

CONTAINER = ("spec", "template", "spec", "containers", 0)
FLAVOR = ("spec", "resourceGroups", 0, "flavors", 0)
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "YQ=="}}
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "a"},
    "spec": {"renewTime": "2026-11-30T10:00:00.000000Z"},
}


@pytest.mark.parametrize("body", [DEPLOYMENT, CLUSTER_QUEUE, ROLLOUT, VIRTUAL_SERVICE, WORKLOAD, SECRET, LEASE])
def test_good_objects_are_silent(body: dict[str, Any]) -> None:
    assert create(body) == []


# Each row: the code, a bad object, the same fixed, and a near miss that must stay silent.
CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        "SCH101",
        {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "a"}},
        CLUSTER_QUEUE,
        changed(CLUSTER_QUEUE, "apiVersion", "kueue.x-k8s.io/v1beta2"),
    ),
    (
        "SCH102",
        changed(CLUSTER_QUEUE, "apiVersion", "kueue.x-k8s.io/v1alpha9"),
        CLUSTER_QUEUE,
        {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"},
            "spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "a"}},
        },
    ),
    (
        "SCH104",
        changed(DEPLOYMENT, "spec", "replica", 3),
        DEPLOYMENT,
        changed(DEPLOYMENT, "metadata", "labels", "replica", "3"),
    ),
    (
        "SCH104",
        changed(CLUSTER_QUEUE, "spec", "cohort", "x"),
        CLUSTER_QUEUE,
        changed(CLUSTER_QUEUE, "metadata", "annotations", {"cohort": "x"}),
    ),
    (
        "SCH105",
        changed(DEPLOYMENT, "spec", "selector", GONE),
        DEPLOYMENT,
        changed(DEPLOYMENT, "spec", "replicas", GONE),
    ),
    (
        "SCH105",
        changed(CLUSTER_QUEUE, *FLAVOR, "resources", 0, "nominalQuota", None),
        CLUSTER_QUEUE,
        changed(CLUSTER_QUEUE, *FLAVOR, "resources", 0, "borrowingLimit", None),
    ),
    ("SCH106", changed(DEPLOYMENT, "spec", "replicas", "2"), DEPLOYMENT, changed(DEPLOYMENT, "spec", "replicas", None)),
    ("SCH106", changed(DEPLOYMENT, "spec", "replicas", 2.0), DEPLOYMENT, changed(DEPLOYMENT, "spec", "replicas", 2)),
    ("SCH106", changed(ROLLOUT, "spec", "replicas", 2.0), ROLLOUT, changed(ROLLOUT, "spec", "replicas", 0)),
    (
        "SCH106",
        changed(WORKLOAD, "spec", "podSets", 0, "count", 2.0),
        WORKLOAD,
        changed(WORKLOAD, "spec", "podSets", 0, "count", 3),
    ),
    (
        "SCH106",
        changed(DEPLOYMENT, "metadata", "labels", "app", 1),
        DEPLOYMENT,
        changed(DEPLOYMENT, "metadata", "labels", "tier", None),
    ),
    (
        "SCH106",
        changed(DEPLOYMENT, "spec", "strategy", "rollingUpdate", "maxSurge", 1.0),
        DEPLOYMENT,
        changed(DEPLOYMENT, "spec", "strategy", "rollingUpdate", "maxSurge", 1),
    ),
    (
        "SCH107",
        changed(DEPLOYMENT, "spec", "replicas", 2**31),
        DEPLOYMENT,
        changed(DEPLOYMENT, "spec", "replicas", 2**31 - 1),
    ),
    (
        "SCH107",
        changed(DEPLOYMENT, *CONTAINER, "resources", "limits", "memory", "64GB"),
        DEPLOYMENT,
        changed(DEPLOYMENT, *CONTAINER, "resources", "limits", "memory", " 6.4e10 "),
    ),
    (
        "SCH107",
        changed(CLUSTER_QUEUE, *FLAVOR, "resources", 0, "nominalQuota", "Gi"),
        CLUSTER_QUEUE,
        changed(CLUSTER_QUEUE, *FLAVOR, "resources", 0, "nominalQuota", "16"),
    ),
    ("SCH107", changed(ROLLOUT, "spec", "replicas", -1), ROLLOUT, changed(ROLLOUT, "spec", "minReadySeconds", 2**31)),
    ("SCH107", changed(SECRET, "data", "a", "not base64"), SECRET, changed(SECRET, "data", "a", "YQ\n==")),
    (
        "SCH107",
        changed(LEASE, "spec", "renewTime", "yesterday"),
        LEASE,
        changed(LEASE, "spec", "renewTime", "2026-11-30T10:00:00.1+01:00"),
    ),
    (
        "SCH108",
        changed(VIRTUAL_SERVICE, "spec", "http", 0, "match", 0, "uri", "prefix", "/"),
        VIRTUAL_SERVICE,
        changed(VIRTUAL_SERVICE, "spec", "http", 0, "match", 0, "uri", {}),
    ),
    (
        "SCH109",
        changed(
            WORKLOAD, "spec", "podSets", 0, "template", "spec", "containers", 0, "env", [{"name": "A"}, {"name": "A"}]
        ),
        WORKLOAD,
        changed(
            WORKLOAD, "spec", "podSets", 0, "template", "spec", "containers", 0, "env", [{"name": "A"}, {"name": "a"}]
        ),
    ),
    (
        "SCH110",
        changed(DEPLOYMENT, *CONTAINER, "ports", [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]),
        DEPLOYMENT,
        changed(DEPLOYMENT, *CONTAINER, "ports", [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]),
    ),
    (
        "SCH111",
        changed(ROLLOUT, "spec", "minReadySeconds", 10.0),
        ROLLOUT,
        changed(ROLLOUT, "spec", "minReadySeconds", 0),
    ),
    (
        "SCH112",
        changed(WORKLOAD, "status", {"conditions": [{"type": "x"}]}),
        WORKLOAD,
        changed(WORKLOAD, "metadata", "annotations", {"status": "x"}),
    ),
    (
        "SCH113",
        changed(DEPLOYMENT, "kind", "Deploymnt"),
        DEPLOYMENT,
        changed(DEPLOYMENT, "metadata", "name", "deploymnt"),
    ),
    (
        "SCH113",
        changed(WORKLOAD, "kind", "workloads"),
        WORKLOAD,
        changed(WORKLOAD, "metadata", "name", "workloads"),
    ),
    (
        "SCH114",
        changed(DEPLOYMENT, "metadata", "annotations", {"at": datetime.date(2026, 11, 30)}),
        DEPLOYMENT,
        changed(DEPLOYMENT, "metadata", "annotations", {"at": "2026-11-30"}),
    ),
]


@pytest.mark.parametrize(("code", "bad", "fixed", "near"), CASES)
def test_each_code(code: str, bad: dict[str, Any], fixed: dict[str, Any], near: dict[str, Any]) -> None:
    assert codes(bad) == [code]
    assert codes(fixed) == []
    assert codes(near) == []


def test_deprecated_versions_warn() -> None:
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "a"}}
    (found,) = create(endpoints)
    assert (found.code, found.severity) == ("SCH103", Severity.WARNING)
    old = changed(CLUSTER_QUEUE, "apiVersion", "kueue.x-k8s.io/v1beta1")
    assert "SCH103" in codes(changed(old, "spec", {}))


def test_kinds_that_moved_say_where() -> None:
    (ingress,) = create({"apiVersion": "extensions/v1beta1", "kind": "Ingress", "metadata": {"name": "a"}})
    assert (ingress.code, ingress.fix) == ("SCH102", "use apiVersion networking.k8s.io/v1")
    (gone,) = create({"apiVersion": "policy/v1beta1", "kind": "PodSecurityPolicy", "metadata": {"name": "a"}})
    assert (gone.code, gone.fix) == ("SCH102", "")
    (unserved,) = create(
        {
            "apiVersion": "snapshot.storage.k8s.io/v1beta1",
            "kind": "VolumeSnapshotClass",
            "metadata": {"name": "a"},
            "driver": "a.b",
            "deletionPolicy": "Delete",
        }
    )
    assert unserved.code == "SCH102"


def test_unknown_is_a_note_and_not_a_pass() -> None:
    (found,) = create({"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "a"}})
    assert found.severity is Severity.NOTE and "not validated" in found.message and not found.fails


def test_suggestions() -> None:
    (field,) = create(changed(DEPLOYMENT, "spec", "replica", 3))
    assert (field.path, field.fix) == ("spec.replica", "did you mean `replicas`?")
    (kind,) = create(changed(DEPLOYMENT, "kind", "deployment"))
    assert kind.fix == "did you mean `Deployment`?" and kind.confidence is Confidence.LIKELY
    (value,) = create(changed(CLUSTER_QUEUE, "spec", "preemption", {"withinClusterQueue": "lowerpriority"}))
    assert (value.code, value.fix) == ("SCH107", "did you mean `LowerPriority`?")


def test_every_unknown_field_of_a_map_is_named_with_its_path() -> None:
    bad = changed(changed(DEPLOYMENT, *CONTAINER, "imagePolicy", "x"), *CONTAINER, "x y", 1)
    assert {finding.path for finding in create(bad)} == {
        'spec.template.spec.containers[0]["x y"]',
        "spec.template.spec.containers[0].imagePolicy",
    }


def test_a_map_that_may_hold_nothing_names_what_it_holds() -> None:
    crd = toys({"type": "object"}, subresources={"status": {}})
    assert codes(crd) == []
    (found,) = create(changed(crd, "spec", "versions", 0, "subresources", "status", {"phase": 1}))
    assert (found.code, found.path) == ("SCH104", "spec.versions[0].subresources.status.phase")


def test_secrets_are_never_repeated() -> None:
    for value in ("s3cr3t!", 12345678):
        for finding in create(changed(SECRET, "data", "a", value)):
            assert "s3cr3t" not in finding.message and "12345678" not in finding.message


def test_defaults_come_before_the_judgement() -> None:
    # nominalQuota is required; policy and whenCanBorrow are filled in, and required fields with a default may be absent
    assert codes(changed(CLUSTER_QUEUE, "spec", "flavorFungibility", {})) == []
    assert codes(changed(CLUSTER_QUEUE, "spec", None)) == []


def test_status_is_judged_where_it_is_kept() -> None:
    schedule = {
        "apiVersion": "velero.io/v1",
        "kind": "Schedule",
        "metadata": {"name": "a"},
        "spec": {"schedule": "@daily", "template": {}},
        "status": {"phase": "New"},
    }
    dropped = changed(WORKLOAD, "status", {"conditions": 7})
    assert codes(dropped) == ["SCH112"]
    assert codes(changed(WORKLOAD, "status", {"unknown": 1})) == ["SCH112", "SCH104"]
    assert "SCH107" in codes(changed(schedule, "status", "phase", "Nope"))


def test_long_values_are_cut() -> None:
    (found,) = create(changed(DEPLOYMENT, "spec", "replicas", "x" * 500))
    assert len(found.message) < 120


def test_what_a_server_serves_when_told_to_is_a_warning() -> None:
    bodies = [
        {"apiVersion": f"resource.k8s.io/{version}", "kind": "DeviceClass", "metadata": {"name": "a"}, "spec": {}}
        for version in ("v1beta2", "v1alpha9")
    ]
    found = [create(body) for body in bodies]
    assert [[(f.code, f.fails) for f in each] for each in found] == [[("SCH102", False)], [("SCH102", True)]]


def test_what_another_channel_has_is_no_certain_fault() -> None:
    rules = [{"retry": {"attempts": 2}, "filters": [{"type": "ExternalAuth"}, {"type": "Extern"}], "retri": 1}]
    route = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "a"}}
    found = {finding.path: finding for finding in create({**route, "spec": {"rules": rules}})}
    for path, sure in (("retry", False), ("filters[0].type", False), ("filters[1].type", True), ("retri", True)):
        finding = found[f"spec.rules[0].{path}"]
        assert (finding.confidence is Confidence.CERTAIN) is sure
        assert ("experimental channel" in finding.message) is not sure
