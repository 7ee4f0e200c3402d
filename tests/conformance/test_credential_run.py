"""A credential's policyHash from what Kyverno itself prints, not from what we believe it prints."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from blueprint.attest.evidence import World
from blueprint.attest.policy_evidence import CONSTRAINTS, PolicyEvidence, from_run, in_force, policies_of
from blueprint.conform.controlplane import ControlPlane
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.render.platform import RenderedCluster
from tests.conformance.conftest import program
from tests.conformance.test_policies_cli import TENANT, Body, of_kind, write
from tests.policy_cases import NAMESPACE, pod

POLICY = "no-secondary-networks"


def _run(rendered: RenderedCluster, folder: Path, *pods: Body) -> tuple[World, PolicyEvidence]:
    folder.mkdir()
    (name,) = [name for name in of_kind(rendered, "ValidatingPolicy") if POLICY in name]
    policy = of_kind(rendered, "ValidatingPolicy")[name]
    command = [program("kyverno"), "apply", write(folder / "policy.yaml", policy)]
    header = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "Values", "metadata": {"name": "values"}}
    labels = {"name": NAMESPACE, "labels": TENANT["metadata"]["labels"]}
    command += ["--resource", write(folder / "resources.yaml", *pods)]
    command += ["--values-file", write(folder / "values.yaml", {**header, "namespaceSelector": [labels]})]
    command += ["--policy-report", "--output-format", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "{" in done.stdout, done.stdout + done.stderr
    report = folder / "report.json"
    report.write_text(done.stdout[done.stdout.index("{") :])
    world = World()
    return world, from_run(World.of([Manifest(policy, Source("policy.yaml"))]), [report], world)


@pytest.mark.conformance
def test_what_kyverno_prints_is_evidence(reference: RenderedCluster, tmp_path: Path) -> None:
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
    assert other.sha256 != evidence.sha256


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
