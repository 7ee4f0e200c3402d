from __future__ import annotations

from typing import Any

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import Validator, validate
from blueprint.check.cel import compiled
from tests.check.objects import CLUSTER_QUEUE, GONE, VIRTUAL_SERVICE, changed, codes, create, manifest, toys, update

PACK = SchemaPack.shipped()
FLAVOR = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ResourceFlavor",
    "metadata": {"name": "h100"},
    "spec": {"nodeLabels": {"gpu": "h100"}, "topologyName": "block-rack-host"},
}
LOCAL_QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "training", "namespace": "search-ai"},
    "spec": {"clusterQueue": "search-ai"},
}
ROUTE = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "chat"},
    "spec": {
        "parentRefs": [{"name": "a", "namespace": "gateways"}, {"name": "a", "namespace": "other"}],
        "rules": [
            {"matches": [{"path": {"type": "PathPrefix", "value": "/v1"}}], "backendRefs": [{"name": "a", "port": 80}]}
        ],
    },
}


def test_every_rule_of_the_pack_compiles() -> None:
    kinds = [kind for api_version, name in PACK.kinds() if (kind := PACK.kind(api_version, name))]
    assert sum(len(kind.rules) for kind in kinds) > 800
    assert compiled(kinds) == []


CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        "CEL101",
        changed(VIRTUAL_SERVICE, "spec", "http", 0, "timeout", "0s"),
        VIRTUAL_SERVICE,
        changed(VIRTUAL_SERVICE, "spec", "http", 0, "timeout", "1ms"),
    ),
    (  # the default of reclaimWithinCohort is Never, and it is filled in before the rule looks
        "CEL101",
        changed(CLUSTER_QUEUE, "spec", "preemption", {"borrowWithinCohort": {"policy": "LowerPriority"}}),
        changed(
            CLUSTER_QUEUE,
            "spec",
            "preemption",
            {"borrowWithinCohort": {"policy": "LowerPriority"}, "reclaimWithinCohort": "Any"},
        ),
        changed(CLUSTER_QUEUE, "spec", "preemption", {"borrowWithinCohort": {"policy": "Never"}}),
    ),
    (
        "CEL101",
        changed(ROUTE, "spec", "parentRefs", 1, "namespace", "gateways"),
        ROUTE,
        changed(ROUTE, "spec", "parentRefs", 1, "namespace", GONE),
    ),
    (
        "CEL101",
        changed(ROUTE, "spec", "rules", 0, "matches", 0, "path", "value", "v1"),
        ROUTE,
        changed(ROUTE, "spec", "rules", 0, "matches", 0, "path", {"type": "RegularExpression", "value": "v1"}),
    ),
    (
        "CEL102",
        changed(FLAVOR, "spec", "nodeLabels", GONE),
        FLAVOR,
        changed(FLAVOR, "spec", {}),
    ),
    (
        "CEL102",
        changed(VIRTUAL_SERVICE, "spec", "http", 0, "timeout", "1d"),
        VIRTUAL_SERVICE,
        changed(VIRTUAL_SERVICE, "spec", "http", 0, "timeout", "24h"),
    ),
]


@pytest.mark.parametrize(("code", "bad", "fixed", "near"), CASES)
def test_each_code(code: str, bad: dict[str, Any], fixed: dict[str, Any], near: dict[str, Any]) -> None:
    assert codes(bad) == [code]
    assert codes(fixed) == []
    assert codes(near) == []


def test_a_finding_names_the_field_and_the_words_of_the_rule() -> None:
    (found,) = create(changed(VIRTUAL_SERVICE, "spec", "http", 0, "timeout", "0s"))
    assert (found.path, found.message) == ("spec.http[0].timeout", "must be a valid duration greater than 1ms")


def test_rules_wait_for_a_valid_schema() -> None:
    bad = changed(changed(FLAVOR, "spec", "nodeLabels", GONE), "spec", "unknown", 1)
    assert codes(bad) == ["SCH104"]


def test_transition_rules_judge_updates_only() -> None:
    moved = changed(LOCAL_QUEUE, "spec", "clusterQueue", "other")
    assert codes(moved) == []
    assert [(f.code, f.path) for f in update(moved, LOCAL_QUEUE)] == [("CEL101", "spec.clusterQueue")]
    assert update(LOCAL_QUEUE, LOCAL_QUEUE) == []
    assert update(moved, changed(LOCAL_QUEUE, "spec", {})) == []  # nothing to compare with


def test_rules_see_the_status_that_an_update_keeps() -> None:
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "job"},
        "spec": {
            "queueName": "a",
            "priority": 1,
            "priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "a"},
            "podSets": [
                {"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}
            ],
        },
    }
    reserved = {
        "conditions": [
            {
                "type": "QuotaReserved",
                "status": "True",
                "reason": "x",
                "message": "",
                "lastTransitionTime": "2026-11-30T00:00:00Z",
            }
        ]
    }
    dropped = changed(changed(workload, "spec", "priorityClassRef", GONE), "spec", "priority", GONE)
    assert update(dropped, workload) == []
    assert "CEL101" in {finding.code for finding in update(dropped, workload | {"status": reserved})}


def toy(spec: object) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "a"}, "spec": spec}


def judge(schema: dict[str, Any], new: object, old: object = None) -> tuple[list[str], list[str]]:
    """Codes and reasons for skipping, of one object of a kind with this schema."""
    validator = Validator(PACK.with_crds([manifest(toys(schema))]), rules=())
    found = (
        validator.create(manifest(toy(new)))
        if old is None
        else validator.update(manifest(toy(new)), manifest(toy(old)))
    )
    return [finding.code for finding in found], [skip.reason for skip in validator.cel.skipped]


def ruled(rule: str, /, **schema: Any) -> dict[str, Any]:
    extra = {key: schema.pop(key) for key in ("optionalOldSelf", "messageExpression") if key in schema}
    return {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        **schema,
        "x-kubernetes-validations": [{"rule": rule, **extra}],
    }


def test_a_rule_that_cannot_be_compiled_is_listed_and_not_passed() -> None:
    found, skipped = judge(ruled("semver(self.version).major() > 1"), {"version": "1.0.0"})
    assert found == [] and len(skipped) == 1 and "semver" in skipped[0]
    outcome = validate([manifest(toys(ruled("nope(self)"))), manifest(toy({}))], PACK, rules=(), tree_rules=())
    assert [(skip.kind, skip.path) for skip in outcome.skipped] == [("Toy", ("spec",))]


def test_a_rule_about_values_the_binding_takes_not_is_listed() -> None:
    schema = ruled(
        "self.at > timestamp('2026-01-01T00:00:00Z')", properties={"at": {"type": "string", "format": "date-time"}}
    )
    assert judge(schema, {"at": "2026-02-01T00:00:00Z"}) == ([], ["reads `at` as a timestamp"])


def test_a_duration_or_time_judged_itself_has_its_type() -> None:
    schema = {
        "type": "object",
        "properties": {
            "wait": {
                "type": "string",
                "format": "duration",
                "x-kubernetes-validations": [{"rule": "self > duration('1m')"}],
            }
        },
    }
    assert judge(schema, {"wait": "2m"}) == ([], [])
    assert judge(schema, {"wait": "2s"}) == (["CEL101"], [])


def test_whole_numbers_of_a_number_field_are_doubles() -> None:
    schema = ruled("self.share * 2.0 <= 1.0", properties={"share": {"type": "number"}})
    assert judge(schema, {"share": 0}) == ([], [])
    assert judge(schema, {"share": 1}) == (["CEL101"], [])


def test_bytes_are_decoded() -> None:
    schema = ruled("size(self.blob) == 1", properties={"blob": {"type": "string", "format": "byte"}})
    assert judge(schema, {"blob": "YQ=="}) == ([], [])


@pytest.mark.parametrize("name", ["namespace", "a-b", "a.b", "a/b", "a__b", "in"])
def test_fields_whose_names_cel_cannot_spell(name: str) -> None:
    spelt = {"namespace": "__namespace__", "in": "__in__"}.get(name) or (
        name.replace("__", "__underscores__").replace("-", "__dash__").replace(".", "__dot__").replace("/", "__slash__")
    )
    schema = ruled(f"has(self.{spelt}) && self.{spelt} == 'x'", properties={name: {"type": "string"}})
    assert judge(schema, {name: "x"}) == ([], [])
    assert judge(schema, {name: "y"}) == (["CEL101"], [])


def test_old_self_can_be_optional() -> None:
    schema = ruled("!oldSelf.hasValue() || oldSelf.value().n <= self.n", optionalOldSelf=True)
    assert judge(schema, {"n": 1}) == ([], [])
    assert judge(schema, {"n": 1}, {"n": 1}) == ([], [])
    assert judge(schema, {"n": 1}, {"n": 2}) == (["CEL101"], [])


def test_items_of_a_list_map_are_compared_by_key() -> None:
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.n >= oldSelf.n"}],
    }
    schema = {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": item,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            }
        },
    }
    old = {"items": [{"name": "a", "n": 1}, {"name": "b", "n": 5}]}
    assert judge(schema, {"items": [{"name": "b", "n": 5}, {"name": "c", "n": 0}]}, old) == ([], [])
    assert judge(schema, {"items": [{"name": "b", "n": 4}]}, old) == (["CEL101"], [])


def test_nulls_are_not_judged() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "nullable": True, "x-kubernetes-validations": [{"rule": "self > 0"}]}},
    }
    assert judge(schema, {"n": None}) == ([], [])
    assert judge(schema, {"n": 0}) == (["CEL101"], [])


def test_a_message_can_be_an_expression() -> None:
    validator = Validator(
        PACK.with_crds([manifest(toys(ruled("self.n > 0", messageExpression="'n is ' + string(self.n)")))]), rules=()
    )
    (found,) = validator.create(manifest(toy({"n": -3})))
    assert found.message == "n is -3"


def test_what_a_rule_does_not_read_is_not_needed() -> None:
    schema = ruled("self.a == self['b']")
    assert judge(schema, {"a": 1, "b": 1}) == ([], [])
    assert judge(schema, {"a": 1, "b": 2}) == (["CEL101"], [])
