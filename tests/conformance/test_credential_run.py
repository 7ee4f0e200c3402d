"""A credential's policyHash from what Kyverno itself prints, not from what we believe it prints."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from blueprint.attest.evidence import World
from blueprint.attest.offline import run
from blueprint.attest.policy_evidence import CONSTRAINTS, PolicyEvidence, in_force, policies_of
from blueprint.attest.policy_run import from_run
from blueprint.conform.controlplane import ControlPlane
from blueprint.errors import EnvironmentLacks
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.render.platform import RenderedCluster
from tests.conformance.conftest import program
from tests.conformance.test_policies_cli import TENANT, Body, of_kind
from tests.policy_cases import pod

POLICY = "no-secondary-networks"
CONSTRAINT = "BlueprintNoSecondaryNetworks"
TEMPLATE = CONSTRAINT.lower()


DIGEST = "5" * 64


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both programs are where a person has them."""
    folders = {str(program(name).parent) for name in ("kyverno", "gator")}
    monkeypatch.setenv("PATH", os.pathsep.join([*sorted(folders), os.environ["PATH"]]))


def _tree(rendered: RenderedCluster) -> World:
    """One policy for each engine, and the namespace of a tenant."""
    wanted = (*of_kind(rendered, "ValidatingPolicy").values(), *of_kind(rendered, "ConstraintTemplate").values())
    kept = [body for body in wanted if body["metadata"]["name"] in (POLICY, TEMPLATE)]
    kept += [file.manifest.body for file in rendered.files if file.manifest.kind == CONSTRAINT]
    assert len(kept) == 3
    return World.of(Manifest(body, Source("tree.yaml")) for body in (*kept, TENANT))


def _run(rendered: RenderedCluster, folder: Path, *pods: Body) -> tuple[World, PolicyEvidence]:
    folder.mkdir()
    tree, samples = _tree(rendered), folder / "pods.json"
    samples.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    kept = folder / "run.json"
    kept.write_text(json.dumps(run(tree, "prod-a", DIGEST, [samples])))
    world = World()
    return world, from_run(tree, kept, world, "prod-a", DIGEST)


@pytest.mark.conformance
@pytest.mark.usefixtures("installed")
def test_what_the_programs_say_is_evidence(reference: RenderedCluster, tmp_path: Path) -> None:
    good = pod()
    bad = json.loads(json.dumps(good))
    bad["metadata"] |= {"name": "bad", "annotations": {"k8s.v1.cni.cncf.io/networks": "other"}}
    world, evidence = _run(reference, tmp_path / "first", good)
    assert [refused.message for refused in world.refusals] == []
    assert evidence.document["pass"] == 1
    _, again = _run(reference, tmp_path / "second", good)
    assert again.sha256 == evidence.sha256, "the hash does not follow the clock"
    world, other = _run(reference, tmp_path / "third", good, bad)
    assert {refused.code for refused in world.refusals} == {"CRE103"}
    assert {refused.message.partition(" ")[0] for refused in world.refusals} == {POLICY}
    assert len(world.refusals) == 2, "each engine tells of it"
    assert other.sha256 != evidence.sha256
    world, _ = _run(reference, tmp_path / "fourth")
    assert [refused.code for refused in world.refusals] == ["CRE101"], "without an object nothing is judged"


@pytest.mark.conformance
def test_a_program_that_is_missing_is_named(reference: RenderedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentLacks, match="kyverno is not installed"):
        run(_tree(reference), "prod-a", DIGEST)


@pytest.mark.conformance
def test_what_an_api_server_defaults_is_no_other_policy(
    reference: RenderedCluster, control_plane: ControlPlane, crds: list[Body]
) -> None:
    """Every rendered policy, read back from a real API server with all that it fills in, is still the rendered one."""
    groups = ("policies.kyverno.io", "templates.gatekeeper.sh")
    control_plane.load_crds(crd for crd in crds if crd["spec"]["group"] in groups)
    policies = policies_of(World.of([file.manifest for file in reference.files]))
    served = [policy for policy in policies if policy.ref.group != CONSTRAINTS]
    assert len(served) > 20
    seen = []
    for policy in served:
        answer = control_plane.client.create(policy.body, dry_run=True)
        assert answer.ok, answer.message
        seen.append(Manifest(answer.body, Source("cluster")))
    world = World.of(seen)
    for policy in served:
        in_force(policy, world)
    assert [refused.message for refused in world.refusals] == []
    for manifest in seen:
        reach = {"namespaceSelector": {"matchLabels": {"nobody": "has"}}}
        match manifest.kind:
            case "ValidatingAdmissionPolicyBinding":
                manifest.body["spec"]["matchResources"] = reach
            case "ConstraintTemplate":
                manifest.body["spec"]["targets"][0]["operations"] = ["DELETE"]
            case _:
                manifest.body["spec"]["matchConditions"] = [{"name": "never", "expression": "false"}]
    world = World.of(seen)
    for policy in served:
        in_force(policy, world)
    assert [refused.code for refused in world.refusals] == ["CRE105"] * len(served), "each was made to judge nothing"
    for manifest in seen:
        spec = manifest.body["spec"]
        if "validationActions" in spec:
            spec["validationActions"] = ["Audit"]
    world = World.of(seen)
    for policy in served:
        in_force(policy, world)
    assert {refused.code for refused in world.refusals} == {"CRE104", "CRE105"}
