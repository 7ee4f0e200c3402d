from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from blueprint.catalog.schemas import Kind, SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.finding import Finding, Source
from blueprint.objects import Manifest
from tests.check.objects import CLUSTER_QUEUE, DEPLOYMENT, changed, manifest, toys
from tests.check.test_cel import toy

PACK = SchemaPack.shipped()


def test_an_outcome_counts_what_it_could_not_judge() -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "a"}}
    outcome = validate([manifest(DEPLOYMENT), manifest(unknown)], PACK, rules=(), tree_rules=())
    assert (outcome.objects, outcome.unknown) == (2, 1)
    assert [finding.code for finding in outcome.findings] == ["SCH101"]
    assert outcome.skipped == []


def test_crds_of_the_tree_are_known_wherever_they_stand() -> None:
    crd = toys({"type": "object", "properties": {"n": {"type": "integer"}}})
    objects = [manifest(toy({"n": "x"})), manifest(crd)]
    outcome = validate(objects, PACK, rules=(), tree_rules=())
    assert [(finding.code, finding.path) for finding in outcome.findings] == [("SCH106", "spec.n")]
    assert outcome.unknown == 0


def test_rules_plug_in() -> None:
    def loud(manifest: Manifest, kind: Kind | None) -> Iterable[Finding]:
        yield Finding("TST101", f"{manifest.kind} {kind is not None}", manifest.source)

    def crowd(manifests: Sequence[Manifest]) -> Iterable[Finding]:
        yield Finding("TST102", str(len(manifests)))

    outcome = validate([manifest(CLUSTER_QUEUE), manifest({})], PACK, rules=[loud], tree_rules=[crowd])
    said = [(finding.code, finding.message) for finding in outcome.findings if finding.code.startswith("TST")]
    assert said == [("TST101", "ClusterQueue True"), ("TST101", " False"), ("TST102", "2")]


def test_findings_carry_the_place_and_the_object() -> None:
    bad = Manifest(changed(DEPLOYMENT, "spec", "replicas", "2"), Source("apps/chat.yaml", 7, 1))
    (finding,) = validate([bad], PACK, rules=(), tree_rules=()).findings
    assert finding.source == Source("apps/chat.yaml", 7, 1)
    assert str(finding.object) == "Deployment.apps chat/chat"


def test_an_object_that_is_not_one_is_told_and_not_raised() -> None:
    for body in ({}, {"kind": 3}, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": 3}):
        outcome = validate([manifest(body)], PACK, rules=(), tree_rules=())
        assert len(outcome.findings) == 1


def test_two_processes_find_what_one_does() -> None:
    objects = [
        manifest(CLUSTER_QUEUE),
        manifest(DEPLOYMENT),
        manifest({"apiVersion": "v1", "kind": "Pod", "metadata": {}}),
    ]
    alone = validate(objects, PACK, tree_rules=tree_rules()).findings
    both = validate(objects, PACK, tree_rules=tree_rules(together=True), together=True).findings
    assert set(alone) == set(both)
    assert alone


BROKEN = [
    {"type": "strign"},
    {"type": ["string"]},
    {"type": "string", "pattern": "(?<=a"},
    {"type": "string", "pattern": "(?i)[a-"},
    {"type": "string", "minLength": -1},
    {"type": "string", "minLength": "3"},
    {"type": "number", "multipleOf": 0},
    {"anyOf": []},
    {"type": "object", "required": "x"},
]


@pytest.mark.parametrize("schema", BROKEN, ids=str)
def test_a_crd_that_no_server_takes_ends_nothing(schema: dict[str, Any]) -> None:
    crd = toys({"type": "object", "properties": {"n": schema}})
    outcome = validate([manifest(toy({"n": "x"})), manifest(crd), manifest(DEPLOYMENT)], PACK, rules=(), tree_rules=())
    assert outcome.objects == 3
    assert not [finding for finding in outcome.findings if finding.code not in ("SCH101", "SCH106", "SCH108")]
