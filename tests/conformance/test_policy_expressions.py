"""What is said of the CEL of policies, asked of the API server: it refuses what is told and takes what is silent."""

from __future__ import annotations

import pytest

from blueprint.conform.client import Answer
from blueprint.conform.controlplane import ControlPlane
from tests.test_cel import REFUSED, TAKEN

VARIABLES = [
    {"name": "allowed", "expression": "object.metadata.name == 'a'"},
    {"name": "count", "expression": "size(object.metadata.name)"},
    {"name": "names", "expression": "['a', 'b']"},
]


def created(plane: ControlPlane, expression: str) -> Answer:
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "expression.example.com"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "variables": VARIABLES,
            "validations": [{"expression": expression, "message": "no"}],
        },
    }
    return plane.client.create(body, dry_run=True)


@pytest.mark.parametrize("expression", REFUSED)
def test_the_server_refuses_what_is_told(expression: str, control_plane: ControlPlane) -> None:
    assert not created(control_plane, expression).ok


@pytest.mark.parametrize("expression", TAKEN)
def test_the_server_takes_what_is_silent(expression: str, control_plane: ControlPlane) -> None:
    answer = created(control_plane, expression)
    assert answer.ok, answer.message
