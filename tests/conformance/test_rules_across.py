"""What rules across objects call certain, replayed: the API server or Gatekeeper refuses it, or it grants nothing.

Replayed here: fields and versions that the API server refuses (ARG101, UPG101, UPG102, UPG109, POL401), rights that
grant nothing (RBA107), a policy that nobody asks (POL201), a program that Gatekeeper does not take (POL404). What is
certain about Argo CD, Velero, Kyverno and Gatekeeper's webhook is read from their sources, which each rule names.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from blueprint.catalog.rules import rules
from blueprint.conform.client import Answer, Client, Target
from blueprint.conform.controlplane import ControlPlane
from blueprint.render.emit import emit
from tests.check.rules.cases import manifests
from tests.conformance.conftest import program

SECONDS = 60
NAMESPACE = "rules-across"


def answers(client: Client, text: str, *, dry_run: bool = True) -> list[Answer]:
    """What the server says to each object of an example, in the order of the page."""
    return [client.create(manifest.body, dry_run=dry_run) for manifest in manifests(text)]


@pytest.mark.parametrize("code", ["ARG101", "UPG101", "UPG102", "POL401"])
def test_the_server_refuses_the_bad_example(code: str, platform_plane: ControlPlane) -> None:
    platform_plane.namespace("argocd")
    refused = [answer for answer in answers(platform_plane.client, rules()[code].bad) if not answer.ok]
    assert refused, code
    if code == "ARG101":
        assert "unknown field" in refused[0].message


@pytest.mark.parametrize("code", ["ARG101", "UPG101"])
def test_the_server_takes_the_good_example(code: str, platform_plane: ControlPlane) -> None:
    platform_plane.namespace("argocd")
    assert all(answer.ok for answer in answers(platform_plane.client, rules()[code].good)), code


def test_a_version_that_the_crd_does_not_serve_is_refused(platform_plane: ControlPlane) -> None:
    client = platform_plane.client
    platform_plane.namespace("web")
    crd, old = (manifest.body for manifest in manifests(rules()["UPG109"].bad))
    new = manifests(rules()["UPG109"].good)[1].body
    assert client.create(crd).ok
    assert until(lambda: client.create(new, dry_run=True).ok)
    assert not client.create(old, dry_run=True).ok
    client.delete(Target.of(crd))


def test_a_role_grants_nothing_on_what_is_in_no_namespace(control_plane: ControlPlane) -> None:
    control_plane.namespace(NAMESPACE)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": NAMESPACE},
        "rules": [{"apiGroups": [""], "resources": ["nodes", "pods", "namespaces"], "verbs": ["get", "list"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader", "namespace": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}],
    }
    for body in (role, binding):
        assert control_plane.client.apply(body).ok
    reader = control_plane.client.acting_as("reader", "people")
    assert until(lambda: reader.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods").ok)
    assert reader.request("GET", f"/api/v1/namespaces/{NAMESPACE}").ok  # a namespace is within itself
    assert not reader.request("GET", "/api/v1/nodes").ok


def test_a_policy_without_a_binding_is_not_asked(control_plane: ControlPlane) -> None:
    client = control_plane.client
    control_plane.namespace(NAMESPACE)
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "rules-across"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ]
            },
            "validations": [{"expression": "object.metadata.namespace != 'rules-across'"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "rules-across"},
        "spec": {"policyName": "rules-across", "validationActions": ["Deny"]},
    }
    map_ = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": NAMESPACE}}
    for body in (policy, binding):
        assert client.apply(body).ok
    assert until(lambda: not client.create(map_, dry_run=True).ok)
    client.delete(Target.of(binding))
    assert until(lambda: client.create(map_, dry_run=True).ok)
    client.delete(Target.of(policy))


def test_gatekeeper_does_not_take_a_program_of_the_other_rego(tmp_path: Path) -> None:
    gator = program("gator")
    verdicts = {}
    for name in ("bad", "good"):
        file = tmp_path / f"{name}.yaml"
        file.write_text("---\n".join(emit(manifest.body) for manifest in manifests(getattr(rules()["POL404"], name))))
        verdicts[name] = subprocess.run([gator, "test", "-f", file], capture_output=True, text=True, check=False)
    assert verdicts["bad"].returncode != 0, verdicts["bad"].stdout
    assert verdicts["good"].returncode == 0, verdicts["good"].stderr


def until(holds: Callable[[], bool]) -> bool:
    """Whether something comes true before the time is up: caches of the server fill after a write."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False
