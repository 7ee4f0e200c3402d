"""The JSON of `explain`: the schema beside the code describes every document, and the contract is all there."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from blueprint.admission.change import smallest_change
from blueprint.admission.decide import decide
from blueprint.admission.explain import document, schema
from blueprint.admission.world import world
from blueprint.finding import Source
from blueprint.objects import Manifest
from tests.admission.writing import GPU, Body, flavor, gpus, local, pods, workload
from tests.conformance.kueue.worlds import Maker

VALIDATOR = jsonschema_rs.validator_for(schema())

#: What callers were promised; everything else that is there is marked as additive in the schema.
CONTRACT = ("schema", "object", "kueueVersion", "admissible", "assignment", "topology", "reasons", "smallestChange")
OF_A_REASON = ("code", "message", "flavor", "limit", "object")


def said(*bodies: Body) -> dict[str, Any]:
    """What is said of the last object."""
    manifests = [Manifest(body, Source("w.yaml", n)) for n, body in enumerate(bodies)]
    around = world(manifests)
    decision = decide(around, manifests[-1])
    value: dict[str, Any] = json.loads(json.dumps(document(decision, smallest_change(around, manifests[-1], decision))))
    return value


@pytest.mark.parametrize("start", range(0, 120, 40))
def test_every_document_follows_the_schema(start: int) -> None:
    seen: set[object] = set()
    for seed in range(start, start + 40):
        made = Maker(seed).make()
        value = said(*made.objects, *made.workloads)
        VALIDATOR.validate(value)
        seen.add(value["admissible"])
    assert {True, False} <= seen


def test_the_contract_is_all_there() -> None:
    value = said(flavor("f"), gpus("a", 4), local("lq", "a"), workload(pods(requests={GPU: 8})))
    VALIDATOR.validate(value)
    assert set(CONTRACT) <= value.keys()
    (reason,) = value["reasons"]
    assert set(OF_A_REASON) <= reason.keys()
    assert value["smallestChange"]["after"] == "8"
    assert reason["limit"]["value"] == "4"


def test_what_is_beyond_the_contract_is_marked_as_additive() -> None:
    for properties, promised in (
        (schema()["properties"], CONTRACT),
        (schema()["$defs"]["reason"]["properties"], OF_A_REASON),
    ):
        added = {name for name, each in properties.items() if each.get("description", "").startswith("Additive")}
        assert added == properties.keys() - set(promised)


@pytest.mark.parametrize("key", [*CONTRACT, "words"])
def test_the_schema_is_strict(key: str) -> None:
    value = said(flavor("f"), gpus("a", 4), local("lq", "a"), workload(pods(requests={GPU: 1})))
    assert not VALIDATOR.is_valid({**value, "more": 1})
    del value[key]
    assert not VALIDATOR.is_valid(value)


def test_the_schema_is_one() -> None:
    jsonschema_rs.meta.validate(schema())
