"""Gatekeeper and Kyverno themselves, as their command lines carry them, give the verdicts of the cases."""

from __future__ import annotations

import copy
import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from blueprint.render.emit import emit
from blueprint.render.gatekeeper import constraint_kind
from blueprint.render.platform import RenderedCluster
from tests.conformance.conftest import program
from tests.policy_cases import CASES, DIGEST, NAMESPACE, PERSON, TEAM, Case, container, pod

Body = dict[str, Any]

TENANT = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": NAMESPACE, "labels": {TEAM: "a", "kubernetes.io/metadata.name": NAMESPACE}},
}


def of_kind(rendered: RenderedCluster, kind: str) -> dict[str, Body]:
    return {file.manifest.ref.name: file.manifest.body for file in rendered.files if file.manifest.kind == kind}


def cases_of(policy: str) -> list[Case]:
    return [case for case in CASES if case.policy == policy]


def write(path: Path, *bodies: Body) -> str:
    path.write_text("---\n".join(emit(body) for body in bodies))
    return path.name


def test_gatekeeper_gives_the_verdicts(reference: RenderedCluster, tmp_path: Path) -> None:
    gator = program("gator")
    templates, judged = of_kind(reference, "ConstraintTemplate"), 0
    for policy in of_kind(reference, "ValidatingAdmissionPolicy"):
        kind = constraint_kind(policy)
        if kind.lower() not in templates:
            continue
        folder = tmp_path / policy
        folder.mkdir()
        inventory = [write(folder / "namespace.yaml", TENANT)]
        cases = []
        for number, case in enumerate(cases_of(policy)):
            namespaces = inventory
            if case.namespace not in ("", NAMESPACE):
                name = {"name": case.namespace, "labels": {"kubernetes.io/metadata.name": case.namespace}}
                namespaces = [write(folder / f"namespace-{number}.yaml", {**TENANT, "metadata": name})]
            cases.append(
                {
                    "name": case.name,
                    "object": write(folder / f"case-{number}.yaml", case.review()),
                    "inventory": namespaces,
                    "assertions": [{"violations": "yes" if case.refused else "no"}],
                }
            )
        assert cases, policy
        judged += len(cases)
        test = {
            "name": policy,
            "template": write(folder / "template.yaml", templates[kind.lower()]),
            "constraint": write(folder / "constraint.yaml", of_kind(reference, kind)[policy]),
            "cases": cases,
        }
        suite = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "metadata": {"name": policy}}
        write(folder / "suite.yaml", {**suite, "tests": [test]})
    done = subprocess.run([gator, "verify", "./..."], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert judged > 80


def test_kyverno_gives_the_verdicts(reference: RenderedCluster, tmp_path: Path) -> None:
    """Requests to create; its command line knows no old object beside the new one."""
    kyverno = program("kyverno")
    judged = 0
    wrong = []
    for policy, body in of_kind(reference, "ValidatingPolicy").items():
        created = [case for case in cases_of(policy) if case.operation == "CREATE"]
        for user in sorted({case.user for case in created}):
            named = {f"case-{number}": case for number, case in enumerate(created) if case.user == user}
            verdicts = _kyverno(kyverno, tmp_path, body, user, named)
            for name, case in named.items():
                judged += 1
                if verdicts.get(name) != ("fail" if case.refused else "pass"):
                    wrong.append(f"{policy}, {case.name}: {verdicts.get(name)}")
    assert not wrong, "\n".join(wrong)
    assert judged > 80


def _kyverno(kyverno: Path, folder: Path, policy: Body, user: str, cases: dict[str, Case]) -> dict[str, str]:
    """The results of one run, by the name of the case, which the object bears if its own says nothing."""
    own = {case.object["metadata"]["name"]: name for name, case in cases.items()} | {"sample": ""}
    objects = []
    for name, case in cases.items():
        metadata = case.object["metadata"]
        given = metadata["name"] if own[metadata["name"]] else name
        objects.append({**case.object, "metadata": {**metadata, "name": given}})
    header = {"apiVersion": "cli.kyverno.io/v1alpha1", "metadata": {"name": "request"}}
    labels = {"name": NAMESPACE, "labels": TENANT["metadata"]["labels"]}
    write(folder / "policy.yaml", policy)
    write(folder / "resources.yaml", *objects)
    write(folder / "user.yaml", {**header, "kind": "UserInfo", "userInfo": {"username": user}})
    write(folder / "values.yaml", {**header, "kind": "Values", "namespaceSelector": [labels]})
    command = [kyverno, "apply", "policy.yaml", "--resource", "resources.yaml", "--userinfo", "user.yaml"]
    done = subprocess.run(
        [*command, "--values-file", "values.yaml", "--policy-report", "--output-format", "json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    results = json.loads(done.stdout)["results"]
    found = {resource["name"]: row["result"] for row in results for resource in row["resources"]}
    return {own.get(name) or name: result for name, result in found.items()}


SIGNED = f"registry.example.com/training/torch@{DIGEST}"
SIGNER = {"identity": "https://git.example.com/platform/images/.github/workflows/build.yml@refs/heads/main"}
SIGNER |= {"issuer": "https://token.actions.example.com"}
NOW = datetime.now(UTC)


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


def answer(days: float = 1, *, images: tuple[str, ...] = (SIGNED,), **changes: str | None) -> Body:
    """What Gatekeeper makes of a provider's answer (frameworks/constraint pkg/externaldata/response.go)."""
    signature = {**SIGNER, "signedAt": ago(1), "builtAt": ago(days), **changes}
    return {"responses": [[image, signature] for image in images], "errors": [], "system_error": "", "status_code": 200}


@pytest.mark.parametrize(
    ("name", "refused", "said", "body"),
    [
        ("signed", False, answer(), pod()),
        ("built long ago", True, answer(181), pod()),
        ("built tomorrow", True, answer(-1), pod()),
        ("built when nobody says", True, answer(builtAt=None), pod()),
        ("built at no time", True, answer(builtAt="soon"), pod()),
        ("signed long ago, and built lately", False, answer(signedAt=ago(181)), pod()),
        ("signed by another", True, answer(identity="https://git.example.com/other"), pod()),
        ("signed with another issuer", True, answer(issuer="https://token.example.org"), pod()),
        ("not answered for", True, answer(images=()), pod()),
        ("refused", True, {**answer(images=()), "errors": [[SIGNED, "no signature"]]}, pod()),
        ("one of two", True, answer(), pod(spec={"initContainers": [container(SIGNED.replace("a" * 64, "b" * 64))]})),
        ("no answer at all", True, None, pod()),
        ("signed, but something failed", True, {**answer(), "system_error": "broken"}, pod()),
        ("none of ours", False, None, pod(container(f"registry.example.com/tools/git@{DIGEST}"))),
    ],
)
def test_gatekeeper_lets_in_what_the_provider_vouches_for(
    name: str, refused: bool, said: Body | None, body: Body, reference: RenderedCluster, tmp_path: Path
) -> None:
    """gator has no `external_data`: the answer stands in the constraint's parameters instead."""
    gator = program("gator")
    template = copy.deepcopy(of_kind(reference, "ConstraintTemplate")["blueprintsignedimages"])
    source = template["spec"]["targets"][0]["code"][0]["source"]
    asked = 'external_data({"provider": input.parameters.provider, "keys": [image | some image in gated]})'
    assert source["rego"].count("external_data(") == source["rego"].count(asked) == 1
    source["rego"] = source["rego"].replace(asked, "input.parameters.answer")
    properties = template["spec"]["crd"]["spec"]["validation"]["openAPIV3Schema"]["properties"]
    properties["answer"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    constraint = copy.deepcopy(of_kind(reference, "BlueprintSignedImages")["signed-images"])
    if said is not None:
        constraint["spec"]["parameters"]["answer"] = said
    write(tmp_path / "all.yaml", template, constraint, TENANT, body)
    done = subprocess.run([gator, "test", "-f", "all.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == (1 if refused else 0), f"{name}: {done.stdout}{done.stderr}"
    assert ('["signed-images"]' in done.stdout) is refused


def test_kyverno_reads_the_image_gate(reference: RenderedCluster, tmp_path: Path) -> None:
    """It compiles, asks no registry about images of others, and wants digests of ours."""
    kyverno = program("kyverno")
    gate = of_kind(reference, "ImageValidatingPolicy")["signed-images"]
    cases = {
        "case-0": Case(
            "signed-images", "none of ours", False, pod(container(f"registry.example.com/tools/git@{DIGEST}"))
        ),
        "case-1": Case("signed-images", "by tag", True, pod(container("registry.example.com/training/torch:1"))),
    }
    assert _kyverno(kyverno, tmp_path, gate, PERSON, cases) == {"case-0": "pass", "case-1": "fail"}
