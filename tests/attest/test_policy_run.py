"""The offline run of policies: it is of one tree and of its policies, and of nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blueprint.attest.dump import needed
from blueprint.attest.evidence import World
from blueprint.attest.offline import named
from blueprint.attest.policy_evidence import PolicyEvidence
from blueprint.attest.policy_run import from_run, record
from blueprint.errors import UsageError
from tests.attest.deployment import CONSTRAINT, GATE, NATIVE, VALIDATING, _manifests

DIGEST = "1" * 64
TREE = [VALIDATING, CONSTRAINT, NATIVE, GATE]
ROW = {
    "policy": "images-by-digest",
    "rule": "r",
    "result": "pass",
    "source": "KyvernoValidatingPolicy",
    "resources": [{"kind": "Pod", "name": "x"}],
}


def world_of(tree: list[dict[str, Any]]) -> World:
    return World.of(_manifests(tree))


def a_run(tree: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    outputs = {"kyverno": {"kind": "ClusterReport", "results": [ROW]}, "gator": []}
    return json.loads(json.dumps(record(world_of(tree or TREE), "prod-a", DIGEST, outputs, ["2" * 64])))


def judge(run: Any, folder: Path, tree: list[dict[str, Any]] | None = None) -> tuple[list[str], PolicyEvidence]:
    file = folder / "run.json"
    file.write_text(json.dumps(run))
    world = World()
    evidence = from_run(world_of(tree or TREE), file, world, "prod-a", DIGEST)
    return sorted({refused.code for refused in world.refusals}), evidence


def test_a_run_of_this_tree_is_evidence(tmp_path: Path) -> None:
    refused, evidence = judge(a_run(), tmp_path)
    assert refused == []
    assert evidence.document["level"] == "offline"
    assert evidence.document["run"] == {
        "treeDigest": f"sha256:{DIGEST}",
        "beside": ["2" * 64],
        "notJudged": ["ImageValidatingPolicy signed-images", "ValidatingAdmissionPolicyBinding no-token-secrets"],
    }
    assert {row["name"]: row["actions"] for row in evidence.document["policies"]}["images-by-digest"] == ["Deny"]
    kinds = {each.kind for each in needed(world_of(TREE), offline=True)}
    assert kinds >= {"Namespace", "Backup"}
    assert "PolicyReport" not in kinds


def test_a_constraint_that_asks_a_service_is_named_as_not_judged(tmp_path: Path) -> None:
    template = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": CONSTRAINT["kind"].lower()},
        "spec": {"targets": [{"rego": "violation[{}] { external_data({}) }"}]},
    }
    tree = [*TREE, template]
    _, evidence = judge(a_run(tree), tmp_path, tree)
    assert "BlueprintTenantBindings tenant-bindings" in evidence.document["run"]["notJudged"]
    template["spec"]["targets"] = [{"rego": "violation[{}] { true }"}]
    _, evidence = judge(a_run(tree), tmp_path, tree)
    assert "BlueprintTenantBindings tenant-bindings" not in evidence.document["run"]["notJudged"]


def _set(*path: Any) -> Callable[[Any], None]:
    def change(run: Any) -> None:
        *steps, key, value = path
        for step in steps:
            run = run[step]
        run[key] = value

    return change


ROWS: dict[str, tuple[Callable[[Any], None], str, Callable[[Any], None]]] = {
    "another tree": (
        _set("treeDigest", "sha256:" + "3" * 64),
        "CRE110",
        _set("treeDigest", f"sha256:{DIGEST}"),
    ),
    "no tree": (lambda run: run.pop("treeDigest"), "CRE110", lambda run: run.pop("beside")),
    "another cluster": (_set("cluster", "prod-b"), "CRE110", _set("cluster", "prod-a")),
    "a policy that was not run": (
        lambda run: run["policies"].pop(1),
        "CRE110",
        lambda run: run["policies"].reverse(),
    ),
    "a policy that was changed since": (
        _set("policies", 0, "sha256", "4" * 64),
        "CRE110",
        lambda run: run["policies"].reverse(),
    ),
    "a policy that was run in Audit": (_set("policies", 0, "actions", ["Audit"]), "CRE104", lambda run: None),
    "a policy that is not the tree's": (
        lambda run: run["policies"].append({"kind": "ValidatingPolicy", "name": "other"}),
        "CRE106",
        lambda run: None,
    ),
    "a failure": (_set("outputs", "kyverno", "results", 0, "result", "fail"), "CRE103", lambda run: None),
    "a warning": (
        _set("outputs", "kyverno", "results", 0, "result", "warn"),
        "CRE103",
        lambda run: run["outputs"]["kyverno"]["results"].append(ROW | {"result": "skip"}),
    ),
    "a violation that gator tells of": (
        _set("outputs", "gator", [{"constraint": {"kind": "K", "metadata": {"name": "tenant-bindings"}}, "msg": "no"}]),
        "CRE103",
        _set("outputs", "gator", []),
    ),
    "gator did not run": (lambda run: run["outputs"].pop("gator"), "CRE101", lambda run: None),
    "nothing was judged": (_set("outputs", "kyverno", "results", []), "CRE101", lambda run: None),
    "a result of another policy": (
        lambda run: run["outputs"]["kyverno"]["results"].append(ROW | {"policy": "other"}),
        "CRE106",
        lambda run: run["outputs"]["kyverno"]["results"].append(ROW | {"rule": "other"}),
    ),
    "a result of another engine's policy of the name": (
        _set("outputs", "kyverno", "results", 0, "source", "ValidatingAdmissionPolicy"),
        "CRE101",
        lambda run: None,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_run_that_is_not_of_this_tree_is_refused(tmp_path: Path, name: str) -> None:
    change, code, near = ROWS[name]
    broken, right = a_run(), a_run()
    change(broken)
    refused, _ = judge(broken, tmp_path)
    assert code in refused
    near(right)
    assert judge(right, tmp_path)[0] == []


@pytest.mark.parametrize(
    ("place", "spec"),
    [
        (0, {"validationActions": ["Audit"]}),
        (0, {"validationActions": ["Warn"]}),
        (1, {"enforcementAction": "dryrun"}),
        (1, {"enforcementAction": "warn"}),
        (2, {"validationActions": ["Audit"]}),
        (3, {"validationActions": ["Audit"]}),
    ],
)
def test_a_policy_that_does_not_deny_is_not_shown_by_a_run(tmp_path: Path, place: int, spec: dict[str, Any]) -> None:
    """The run is honest, and of this very tree: it still shows not what the policy lets in."""
    tree = copy.deepcopy(TREE)
    tree[place]["spec"].update(spec)
    assert judge(a_run(tree), tmp_path, tree)[0] == ["CRE104"]
    tree[place]["spec"].update(
        {key: ["Deny", "Audit"] if isinstance(value, list) else "deny" for key, value in spec.items()}
    )
    assert judge(a_run(tree), tmp_path, tree)[0] == []


def test_a_violation_is_kept_without_what_the_object_holds(tmp_path: Path) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "team-a"},
        "data": {"k": "cGxhbnRlZA=="},
    }
    constraint = {"kind": "BlueprintTenantBindings", "metadata": {"name": "tenant-bindings"}, "spec": {}}
    kept = named({"msg": "no", "constraint": constraint, "violatingObject": secret, "target": "x"})
    assert "cGxhbnRlZA" not in json.dumps(kept)
    run = a_run()
    run["outputs"]["gator"] = [kept]
    file = tmp_path / "run.json"
    file.write_text(json.dumps(run))
    world = World()
    from_run(world_of(TREE), file, world, "prod-a", DIGEST)
    assert [refused.message for refused in world.refusals] == [
        "tenant-bindings (BlueprintTenantBindings): fail for v1/Secret/team-a/s"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[]",
        "",
        json.dumps({"kind": "ClusterReport", "results": [ROW]}),
        json.dumps([{"constraint": {}, "msg": "no"}]),
        json.dumps({"schema": 2}),
        "[" * 100_000,
    ],
)
def test_what_the_programs_print_is_no_run(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="policy run"):
        from_run(world_of(TREE), file, World(), "prod-a", DIGEST)
