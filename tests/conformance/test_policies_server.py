"""The API server itself compiles the rendered policies and gives the verdicts of the cases."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from blueprint.conform.client import Answer, Client, Target
from blueprint.conform.controlplane import ControlPlane
from blueprint.render.platform import RenderedCluster
from tests.policy_cases import CASES, NAMESPACE, PERSON, TEAM, Case, container, namespace, pod

Body = dict[str, Any]

MARK = "test.blueprint/policy"
GROUP = "admissionregistration.k8s.io/v1"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
SECONDS = 60


def policies(reference: RenderedCluster) -> dict[str, Body]:
    return {f.manifest.ref.name: f.manifest.body for f in reference.files if f.manifest.kind == POLICY}


@pytest.fixture(scope="module")
def tenant(platform_plane: ControlPlane) -> Client:
    """A server with a tenant's namespace, and what the objects of the cases name."""
    labels = {TEAM: "a", "resource.kubernetes.io/admin-access": "true"}  # else the server refuses admin access itself
    platform_plane.namespace(NAMESPACE, labels)
    platform_plane.namespace("kyverno")
    client = platform_plane.client
    level = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "platform-low"}}
    client.create({**level, "value": 1})
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    client.create({**role, "metadata": {"name": "own", "namespace": NAMESPACE}, "rules": []})
    return client


@pytest.fixture
def in_force(tenant: Client, reference: RenderedCluster) -> Iterator[Callable[[str], Body]]:
    """Put one policy in force, for objects that bear its mark only: other policies have no say in its cases."""
    made: list[Body] = []

    def enforce(name: str) -> Body:
        policy = policies(reference)[name]
        binding = next(
            f.manifest.body for f in reference.files if f.manifest.kind == BINDING and f.manifest.ref.name == name
        )
        only = {"objectSelector": {"matchLabels": {MARK: name}}}
        for body in (policy, {**binding, "spec": {**binding["spec"], "matchResources": only}}):
            answer = tenant.apply(body)
            assert answer.ok, answer.message
            made.append(body)
        return policy

    yield enforce
    for body in reversed(made):
        tenant.delete(Target.of(body))


def marked(body: Body, case: Case, name: str) -> Body:
    found = copy.deepcopy(body)
    metadata = found["metadata"]
    metadata["labels"] = {**metadata.get("labels", {}), MARK: case.policy}
    if metadata["name"] == "sample":
        metadata["name"] = name
        metadata["labels"].pop("kubernetes.io/metadata.name", None)
    return found


def ask(client: Client, case: Case, name: str) -> Answer:
    """The server's answer to the request of a case; nothing of it stays."""
    user = client.acting_as(case.user)
    new = marked(case.object, case, name)
    if case.old is None:
        return user.create(new, dry_run=True)
    old = client.create(marked(case.old, case, name))
    changed = old.body if old.ok else client.get(Target.of(new)).body
    changed["metadata"]["labels"] = new["metadata"]["labels"]  # all that the cases change
    return user.replace(changed, dry_run=True)


def denied(answer: Answer, policy: str) -> bool:
    return not answer.ok and f"{POLICY} '{policy}'" in answer.message


@pytest.mark.parametrize("policy", sorted({case.policy for case in CASES}))
def test_the_server_gives_the_verdicts(policy: str, tenant: Client, in_force: Callable[[str], Body]) -> None:
    in_force(policy)
    cases = sorted((case for case in CASES if case.policy == policy), key=lambda case: not case.refused)
    deadline = time.monotonic() + SECONDS
    for number, case in enumerate(cases):
        name = f"{policy}-{number}"
        answer = ask(tenant, case, name)
        # Right after it was written a policy is not in force yet.
        while case.refused and not denied(answer, policy) and answer.ok and time.monotonic() < deadline:
            time.sleep(0.2)
            answer = ask(tenant, case, name)
        assert denied(answer, policy) if case.refused else answer.ok, f"{case.name}: {answer.message or 'let in'}"
        if case.old is not None and case.object["kind"] != "Namespace":  # nobody would ever finish deleting that
            tenant.delete(Target.of(marked(case.object, case, name)))


def test_an_ephemeral_container_is_judged_too(tenant: Client, in_force: Callable[[str], Body]) -> None:
    in_force("images-by-digest")
    case = Case("images-by-digest", "ephemeral", True, pod())
    body = marked(case.object, case, "debugged")
    made = tenant.create(body)
    assert made.ok, made.message
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/debugged/ephemeralcontainers"

    def add(image: str) -> Answer:
        extra = {**container(image, "debug"), "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
        wanted = copy.deepcopy(made.body)
        wanted["spec"]["ephemeralContainers"] = [extra]
        return tenant.request("PUT", path, json.dumps(wanted).encode(), query={"dryRun": "All"})

    deadline = time.monotonic() + SECONDS
    while not denied(answer := add("registry.example.com/tools/debug:1"), case.policy):
        assert answer.ok and time.monotonic() < deadline, answer.message
        time.sleep(0.2)
    assert add(case.object["spec"]["containers"][0]["image"]).ok
    tenant.delete(Target.of(body))


def test_only_who_may_define_classes_opens_a_namespace(tenant: Client, in_force: Callable[[str], Body]) -> None:
    in_force("device-admin-namespaces")
    group = "rbac.authorization.k8s.io"
    meta = {"name": "makes-namespaces"}
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create", "update"]}]
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
    ref = {"apiGroup": group, "kind": "ClusterRole", "name": meta["name"]}
    who = [{"apiGroup": group, "kind": "Group", "name": "makers"}]
    binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": meta, "roleRef": ref}
    assert tenant.create(role).ok
    assert tenant.create({**binding, "subjects": who}).ok
    opened = namespace(**{"resource.kubernetes.io/admin-access": "true"})
    case = Case("device-admin-namespaces", "opened", True, opened)
    body, plain = marked(opened, case, "opened"), marked(namespace(), case, "plain")
    maker = tenant.acting_as(PERSON, "makers")
    deadline = time.monotonic() + SECONDS
    while not denied(answer := maker.create(body, dry_run=True), case.policy):
        assert time.monotonic() < deadline, answer.message
        time.sleep(0.2)
    assert maker.create(plain, dry_run=True).ok
    assert tenant.acting_as(PERSON).create(body, dry_run=True).ok
    for made in (binding, role):
        tenant.delete(Target.of(made))


def test_the_server_takes_the_audit_policy_and_records_what_it_says(reference: RenderedCluster, tmp_path: Path) -> None:
    policy, log = tmp_path / "audit.yaml", tmp_path / "audit.log"
    [text] = [text for path, text in reference.plain.items() if path.endswith("audit-policy.yaml")]
    policy.write_text(text)
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking-strict"]
    with ControlPlane(flags=flags) as plane:
        plane.namespace("claims")
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
        claim |= {"metadata": {"name": "c", "namespace": "claims"}}
        claim |= {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
        assert plane.client.create(claim).ok
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "claims"}}
        assert plane.client.create({**secret, "stringData": {"password": "not for the log"}}).ok
        assert plane.client.get(Target.of(claim)).ok
        plane.client.request("GET", "/readyz")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    mine = {
        (e["verb"], e.get("objectRef", {}).get("resource", "")): e for e in events if e["user"]["username"] == "admin"
    }
    made = mine["create", "resourceclaims"]
    assert (made["level"], made["responseObject"]["metadata"]["name"]) == ("RequestResponse", "c")
    assert mine["get", "resourceclaims"]["level"] == "Metadata"
    assert mine["create", "secrets"]["level"] == "Metadata"
    assert "not for the log" not in log.read_text()
    assert not [event for event in events if event["requestURI"].startswith("/readyz")]
    assert not [event for event in events if event.get("objectRef", {}).get("resource") == "leases"]
