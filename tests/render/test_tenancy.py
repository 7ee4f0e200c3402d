"""Tenancy: what a team may do, what it may not, and what stands before its first workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blueprint.render.tenancy import DEVELOPER, LEAD, ROLES, VIEWER
from tests.render.worlds import DRA, PLAIN, World, cluster, team

QUOTA = "[{cluster: here, pool: gpu, gpus: 4, borrow: 2}]"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, cluster(f"[{PLAIN}]", platformAdmins="[admins]"), team(QUOTA))


def allowed(rules: list[dict[str, Any]], group: str, resource: str, verb: str) -> bool:
    """RBAC's own reading of rules: any rule that lists group, resource and verb."""
    return any(
        group in rule["groups"]
        and (resource in rule["resources"] or "*" in rule["resources"])
        and verb in rule["verbs"]
        for rule in rules
    )


@pytest.mark.parametrize("role", sorted(ROLES))
@pytest.mark.parametrize(
    ("group", "resource", "verb"),
    [
        ("resource.k8s.io", "deviceclasses", "create"),
        ("resource.k8s.io", "resourceslices", "create"),
        ("resource.k8s.io", "resourceslices", "get"),
        ("resource.k8s.io", "devicetaintrules", "create"),
        ("resource.k8s.io", "resourceclaims/status", "update"),
        ("kueue.x-k8s.io", "localqueues", "update"),
        ("kueue.x-k8s.io", "clusterqueues", "get"),
        ("kueue.x-k8s.io", "workloads", "update"),
        ("", "secrets", "get"),
        ("", "serviceaccounts/token", "create"),
        ("", "namespaces", "update"),
        ("", "resourcequotas", "update"),
        ("rbac.authorization.k8s.io", "rolebindings", "create"),
        ("networking.k8s.io", "networkpolicies", "delete"),
        ("policies.kyverno.io", "policyexceptions", "create"),
    ],
)
def test_no_tenant_role_reaches_beyond_its_namespace(role: str, group: str, resource: str, verb: str) -> None:
    assert not allowed(ROLES[role], group, resource, verb)


def test_roles_grow_and_viewers_write_nothing() -> None:
    assert all(rule in ROLES["developer"] for rule in VIEWER)
    assert all(rule in ROLES["lead"] for rule in [*VIEWER, *DEVELOPER, *LEAD])
    assert {verb for rule in VIEWER for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_developers_submit_and_claim() -> None:
    assert allowed(ROLES["developer"], "kubeflow.org", "pytorchjobs", "create")
    assert allowed(ROLES["developer"], "resource.k8s.io", "resourceclaimtemplates", "create")
    assert not allowed(ROLES["viewer"], "kubeflow.org", "pytorchjobs", "create")


def test_the_namespace_is_restricted_at_a_pinned_version(world: World) -> None:
    labels = world.get("Namespace", "alpha")["metadata"]["labels"]
    for mode in ("enforce", "audit", "warn"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"
        assert labels[f"pod-security.kubernetes.io/{mode}-version"] == "v1.35"


def test_only_roles_with_members_are_bound(world: World) -> None:
    assert set(world.all("RoleBinding")) == {"tenant-developer"}
    binding = world.get("RoleBinding", "tenant-developer")
    assert binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "alphas"}]


def test_gpus_of_the_namespace_are_bounded_only_where_kueue_is(world: World, tmp_path: Path) -> None:
    assert world.get("ResourceQuota", "team")["spec"]["hard"]["requests.nvidia.com/gpu"] == "6"
    free = World(tmp_path / "free", cluster(f"[{PLAIN}]"), team("[{cluster: here, pool: gpu, gpus: 4}]"))
    assert "requests.nvidia.com/gpu" not in free.get("ResourceQuota", "team")["spec"]["hard"]


@pytest.mark.parametrize(
    ("quotas", "devices"),
    [
        ("[{cluster: here, pool: claims, gpus: 4, borrow: 2}]", "6"),
        ("[{cluster: here, pool: claims, gpus: 4, borrow: 0}]", "4"),
        ("[{cluster: here, pool: claims, gpus: 4}]", None),
        ("[{cluster: here, pool: gpu, gpus: 4}]", "0"),
    ],
)
def test_devices_of_a_class_are_bounded_as_kueue_bounds_them(quotas: str, devices: str | None, tmp_path: Path) -> None:
    hard = World(tmp_path, cluster(f"[{PLAIN}, {DRA}]"), team(quotas)).get("ResourceQuota", "team")["spec"]["hard"]
    assert hard.get("h100.deviceclass.resource.k8s.io/devices") == devices
    assert not [key for key in hard if "deviceclass" in key and not key.startswith("h100.")]


def test_without_claims_no_class_is_named(world: World) -> None:
    assert not [key for key in world.get("ResourceQuota", "team")["spec"]["hard"] if "deviceclass" in key]


def test_every_role_of_the_cluster_is_bound_or_for_tenants(world: World) -> None:
    bound = {
        body["roleRef"]["name"] for kind in ("ClusterRoleBinding", "RoleBinding") for body in world.all(kind).values()
    }
    assert set(world.all("ClusterRole")) - bound <= {"platform-admin", *(f"platform-tenant-{role}" for role in ROLES)}


def test_the_network_denies_first(world: World) -> None:
    policies = world.all("NetworkPolicy")
    deny = policies["default-deny"]["spec"]
    assert deny["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in deny
    assert "egress" not in deny
    dns = policies["allow-dns"]["spec"]
    assert dns["policyTypes"] == ["Egress"]
    assert {port["protocol"] for port in dns["egress"][0]["ports"]} == {"TCP", "UDP"}
    # In a NetworkPolicy an empty rule allows everything: no rule may be empty.
    for policy in policies.values():
        for rule in [*policy["spec"].get("ingress", []), *policy["spec"].get("egress", [])]:
            assert rule.get("from") or rule.get("to")


def test_nobody_is_admin_unless_named(tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA))
    assert not world.all("ClusterRoleBinding")
