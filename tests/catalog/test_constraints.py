"""Constraints are judged by the CRD that Gatekeeper would make."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.catalog.constraints import constraint_crd
from blueprint.catalog.schemas import SchemaPack
from blueprint.check import validate
from blueprint.finding import Source
from blueprint.objects import Manifest

TEMPLATE: dict[str, Any] = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {"name": "limit"},
    "spec": {
        "crd": {
            "spec": {
                "names": {"kind": "Limit"},
                "validation": {
                    "openAPIV3Schema": {"type": "object", "properties": {"most": {"type": "integer", "maximum": 9}}}
                },
            }
        },
        "targets": [
            {
                "target": "admission.k8s.gatekeeper.sh",
                "code": [{"engine": "K8sNativeValidation", "source": {"validations": [{"expression": "true"}]}}],
            }
        ],
    },
}


def judged(constraint: dict[str, Any], *, template: bool = True) -> set[str]:
    body = {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "Limit", "metadata": {"name": "l"}, **constraint}
    bodies = [TEMPLATE, body] if template else [body]
    outcome = validate([Manifest(body, Source("f")) for body in bodies], SchemaPack.shipped())
    return {finding.code for finding in outcome.findings if finding.fails}


def test_a_good_constraint_is_known() -> None:
    spec = {"enforcementAction": "deny", "match": {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}}
    assert not judged({"spec": {**spec, "parameters": {"most": 9}}})


@pytest.mark.parametrize(
    "spec",
    [
        {"parameters": {"most": "9"}},
        {"parameters": {"most": 10}},
        {"parameters": {"least": 1}},
        {"match": {"kind": []}},
        {"match": {"source": "Some"}},
        {"enforcement": "deny"},
    ],
)
def test_what_its_template_does_not_allow_is_refused(spec: dict[str, Any]) -> None:
    assert judged({"spec": spec})


def test_without_its_template_nothing_is_known() -> None:
    assert not judged({"spec": {"parameters": {"most": "9"}}}, template=False)


def test_a_broken_template_is_left_to_its_own_validation() -> None:
    broken = {**TEMPLATE, "spec": {"crd": "none"}}
    assert validate([Manifest(broken, Source("f"))], SchemaPack.shipped()).findings


def test_the_crd_carries_the_names_that_gatekeeper_gives() -> None:
    crd = constraint_crd(TEMPLATE)
    assert crd["metadata"]["name"] == "limit.constraints.gatekeeper.sh"
    assert crd["spec"]["names"] == {"kind": "Limit", "listKind": "LimitList", "plural": "limit", "singular": "limit"}
