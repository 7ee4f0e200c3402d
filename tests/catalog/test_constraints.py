from __future__ import annotations

from typing import Any

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import Validator
from blueprint.finding import Source
from blueprint.objects import Manifest

PACK = SchemaPack.shipped()
TEMPLATE = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "metadata": {"name": "teamlabels"},
    "spec": {
        "crd": {
            "spec": {
                "names": {"kind": "TeamLabels"},
                "validation": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"labels": {"type": "array", "items": {"type": "string"}}},
                    }
                },
            }
        },
        "targets": [{"target": "admission.k8s.gatekeeper.sh", "rego": "package a"}],
    },
}


def constraint(**spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "TeamLabels", "metadata": {"name": "a"}}
    return head | {"spec": spec}


def judged(body: dict[str, Any], template: dict[str, Any] = TEMPLATE) -> list[tuple[str, str]]:
    pack = PACK.with_crds([Manifest(template, Source("template.yaml"))])
    found = Validator(pack, rules=()).create(Manifest(body, Source("a.yaml")))
    return [(finding.code, finding.path) for finding in found]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"parameters": {"labels": ["team"]}, "match": {"namespaces": ["team-*"]}, "enforcementAction": "warn"}, []),
        ({}, []),
        ({"parameters": {"labels": "team"}}, [("SCH106", "spec.parameters.labels")]),
        ({"parameters": {"label": []}}, [("SCH104", "spec.parameters.label")]),
        ({"match": {"namespaces": ["a*b"]}}, [("SCH107", "spec.match.namespaces[0]")]),
        ({"match": {"source": "Some"}}, [("SCH107", "spec.match.source")]),
        ({"enforcement": "deny"}, [("SCH104", "spec.enforcement")]),
    ],
)
def test_constraints_are_judged_by_their_template(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert judged(constraint(**spec)) == expected


def test_a_constraint_without_its_template_is_unknown() -> None:
    assert [f.code for f in Validator(PACK, rules=()).create(Manifest(constraint(), Source("a.yaml")))] == ["SCH101"]


def test_names_of_constraints_are_short() -> None:
    assert judged(constraint() | {"metadata": {"name": "a" * 64}}) == [("SCH107", "metadata.name")]


def test_a_template_of_an_older_version_defines_nothing_that_is_known() -> None:
    older = TEMPLATE | {"apiVersion": "templates.gatekeeper.sh/v1beta1"}
    assert judged(constraint(parameters={"label": 1}), older) == [("SCH101", "kind")]


def test_a_broken_template_defines_nothing() -> None:
    assert judged(constraint(), TEMPLATE | {"spec": {}}) == [("SCH101", "kind")]
    assert judged(constraint(), TEMPLATE | {"spec": None}) == [("SCH101", "kind")]
