"""The audit policy: the first rule that matches decides, so the order is the meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from blueprint.render.audit import PATH
from tests.render.worlds import PLAIN, World, cluster, team

QUOTA = "[{cluster: here, pool: gpu, gpus: 2}]"


def level(
    policy: dict[str, Any], verb: str, group: str, resource: str, *, user: str = "alice", nodes: bool = False
) -> str:
    """What is recorded of a request, as the API server decides it (k8s.io/apiserver v0.35.4 pkg/audit/policy)."""
    for rule in policy["rules"]:
        if "users" in rule and user not in rule["users"]:
            continue
        if "userGroups" in rule and not (nodes and "system:nodes" in rule["userGroups"]):
            continue
        if "verbs" in rule and verb not in rule["verbs"]:
            continue
        if "nonResourceURLs" in rule:
            continue
        rows = rule.get("resources")
        if rows is None or any(row["group"] == group and resource in row.get("resources", [resource]) for row in rows):
            return str(rule["level"])
    return "None"


@pytest.fixture
def policy(tmp_path: Path) -> dict[str, Any]:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA))
    found: dict[str, Any] = yaml.safe_load(world.cluster.plain[f"here/{PATH}"])
    return found


@pytest.mark.parametrize(
    ("verb", "group", "resource", "expected"),
    [
        ("create", "resource.k8s.io", "resourceclaims", "RequestResponse"),
        ("patch", "resource.k8s.io", "resourceclaims/status", "RequestResponse"),
        ("get", "resource.k8s.io", "resourceclaims", "Metadata"),
        ("create", "resource.k8s.io", "deviceclasses", "RequestResponse"),
        ("update", "resource.k8s.io", "resourceslices", "Metadata"),
        ("create", "", "pods/binding", "Metadata"),
        ("patch", "kueue.x-k8s.io", "workloads/status", "RequestResponse"),
        ("update", "kueue.x-k8s.io", "clusterqueues", "RequestResponse"),
        ("create", "", "secrets", "Metadata"),
        ("update", "", "configmaps", "Metadata"),
        ("create", "", "serviceaccounts/token", "Metadata"),
        ("delete", "admissionregistration.k8s.io", "validatingadmissionpolicies", "RequestResponse"),
        ("create", "policies.kyverno.io", "policyexceptions", "RequestResponse"),
        ("update", "constraints.gatekeeper.sh", "blueprintp", "RequestResponse"),
        ("update", "coordination.k8s.io", "leases", "None"),
        ("create", "", "events", "None"),
        ("create", "", "pods", "Metadata"),
    ],
)
def test_what_is_recorded(policy: dict[str, Any], verb: str, group: str, resource: str, expected: str) -> None:
    assert level(policy, verb, group, resource) == expected


def test_what_nodes_read_is_noise_and_what_they_write_is_not(policy: dict[str, Any]) -> None:
    assert level(policy, "get", "", "secrets", nodes=True) == "None"
    assert level(policy, "patch", "resource.k8s.io", "resourceclaims/status", nodes=True) == "RequestResponse"


WHOM = {"alice": False, "system:kube-scheduler": False, "system:kube-proxy": False, "system:node:n": True}


@pytest.mark.parametrize("user", WHOM)
@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection"])
@pytest.mark.parametrize("resource", ["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"])
def test_nothing_is_lost_of_how_claims_are_made_bound_and_released(
    policy: dict[str, Any], resource: str, verb: str, user: str
) -> None:
    """Made and deleted are claims, bound and released is their status; each by whoever does it, with its body."""
    if resource.endswith("/status") and verb not in ("update", "patch"):
        return  # the API server has no such request
    assert level(policy, verb, "resource.k8s.io", resource, user=user, nodes=WHOM[user]) == "RequestResponse"


def test_requests_are_recorded_at_every_end(policy: dict[str, Any]) -> None:
    assert policy["omitStages"] == ["RequestReceived"]
    assert not any(rule.get("omitStages") for rule in policy["rules"])


def test_no_body_of_a_secret_is_ever_recorded(policy: dict[str, Any]) -> None:
    for verb in ("get", "create", "update", "patch", "delete"):
        for resource in ("secrets", "configmaps"):
            assert level(policy, verb, "", resource) in ("Metadata", "None")


def test_what_a_component_brings_goes_with_it(tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]", components="{kyverno: null, gatekeeper: null}"), team(QUOTA))
    text = world.cluster.plain[f"here/{PATH}"]
    assert "kyverno" not in text
    assert "gatekeeper" not in text


def test_it_is_a_file_and_no_object(tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA))
    path = f"here/{PATH}"
    assert world.cluster.contents()[path].startswith(b"apiVersion: audit.k8s.io/v1\n")
    assert path not in {file.path for file in world.cluster.files}
    folder = PATH.partition("/")[0]
    assert folder not in {application.name for application in world.cluster.applications}
