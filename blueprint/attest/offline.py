"""Run the policies of a tree on its objects by the engines' own programs, kyverno and gator, where they are installed.

Sources: kyverno v1.19.1 cmd/cli/kubectl-kyverno/commands/apply (`--policy-report`, values with `namespaceSelector`);
gatekeeper v3.23.1 cmd/gator/test (an exit code of 1 says that there are violations, or that it failed).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from blueprint.attest.evidence import World
from blueprint.attest.policy_evidence import CONSTRAINTS, KYVERNO, policies_of
from blueprint.attest.policy_run import JUDGED, TEMPLATES, asks_service, record
from blueprint.attest.refusal import said
from blueprint.check.graph import labels_of
from blueprint.check.shapes import mapping
from blueprint.errors import EnvironmentLacks
from blueprint.objects import Manifest

_SECONDS: Final = 600
_NOT_JUDGED: Final = (KYVERNO, TEMPLATES, CONSTRAINTS, "admissionregistration.k8s.io", "kubelet.config.k8s.io")
"""Groups whose objects are policies or files of nodes, and no objects that a policy judges."""


def run(tree: World, cluster: str, digest: str, more: Sequence[Path] = ()) -> dict[str, Any]:
    """The record of a run. Raises EnvironmentLacks without the programs, and where one of them fails."""
    beside = World.read(more) if more else World()
    objects = [each for world in (tree, beside) for found in world.objects.values() for each in found]
    objects = [each for each in objects if each.ref.group not in _NOT_JUDGED and each.ref.name]
    outputs: dict[str, Any] = {}
    policies = policies_of(tree)
    with tempfile.TemporaryDirectory(prefix="blueprint-") as folder:
        place = Path(folder)
        if rules := [policy for policy in policies if policy.ref.group == KYVERNO and policy.kind in JUDGED]:
            outputs["kyverno"] = _kyverno(place, rules, objects)
        if rules := list(_compiled(tree)):
            outputs["gator"] = _gator(place, rules, objects)
    return record(tree, cluster, digest, outputs, [sha256(file.read_bytes()).hexdigest() for file in _files(more)])


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from (file for file in sorted(path.rglob("*")) if file.is_file()) if path.is_dir() else [path]


def _compiled(tree: World) -> Iterator[Manifest]:
    """Templates and constraints; those that ask a service are left out, for gator cannot compile them."""
    asking = {
        str(template.body.get("spec", {}).get("crd", {}).get("spec", {}).get("names", {}).get("kind"))
        for template in tree.all(TEMPLATES, "ConstraintTemplate")
        if asks_service(template)
    }
    for policy in policies_of(tree):
        if policy.ref.group == CONSTRAINTS:
            left_out = policy.kind in asking
        else:
            left_out = policy.ref.group != TEMPLATES or asks_service(policy)
        if not left_out:
            yield policy


def _spaces(objects: Sequence[Manifest]) -> dict[str, dict[str, str]]:
    """Every namespace in which an object is, with the labels that are known of it."""
    found: dict[str, dict[str, str]] = {each.ref.namespace: {} for each in objects if each.ref.namespace}
    found |= {each.ref.name: dict(labels_of(each.body)) for each in objects if each.kind == "Namespace"}
    return {name: {"kubernetes.io/metadata.name": name, **labels} for name, labels in sorted(found.items())}


def _kyverno(place: Path, policies: Sequence[Manifest], objects: Sequence[Manifest]) -> Any:  # noqa: ANN401 - JSON
    labels = [{"name": name, "labels": labels} for name, labels in _spaces(objects).items()]
    header = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "Values", "metadata": {"name": "values"}}
    (place / "values.json").write_text(json.dumps({**header, "namespaceSelector": labels}), "utf-8")
    _write(place / "policies", policies)
    _write(place / "objects", objects)
    given = ["apply", *sorted(map(str, (place / "policies").iterdir())), "--values-file", str(place / "values.json")]
    for file in sorted((place / "objects").iterdir()):
        given += ["--resource", str(file)]
    done = _program("kyverno", [*given, "--policy-report", "--output-format", "json"])
    begin = done.stdout.find("{")
    try:
        return json.loads(done.stdout[begin:]) if begin >= 0 else {}
    except ValueError:
        raise EnvironmentLacks(f"kyverno failed: {said(RuntimeError(done.stderr or done.stdout))}") from None


def _gator(place: Path, rules: Sequence[Manifest], objects: Sequence[Manifest]) -> list[Any]:
    known = {each.ref.name for each in objects if each.kind == "Namespace"}
    spaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        for name, labels in _spaces(objects).items()
        if name not in known
    ]
    folder = place / "gator"
    _write(folder, [*rules, *objects])
    (folder / "namespaces.json").write_text("\n---\n".join(map(json.dumps, spaces)), "utf-8")
    done = _program("gator", ["test", "-f", str(folder), "-o", "json"])
    try:
        found = json.loads(done.stdout or "null")
    except ValueError:
        raise EnvironmentLacks(f"gator failed: {said(RuntimeError(done.stderr or done.stdout))}") from None
    if done.returncode and not found:
        raise EnvironmentLacks(f"gator failed: {said(RuntimeError(done.stderr))}")
    return [named(violation) for violation in found or []]


def named(violation: object) -> dict[str, Any]:
    """A violation without the objects that it is about: a Secret would be kept in the run with all that it holds."""
    row = mapping(violation)
    kept: dict[str, Any] = {"msg": str(row.get("msg") or "")}
    for key in ("constraint", "violatingObject"):
        body = mapping(row.get(key))
        meta = {name: mapping(body.get("metadata")).get(name) for name in ("name", "namespace")}
        kept[key] = {"apiVersion": body.get("apiVersion"), "kind": body.get("kind"), "metadata": meta}
    return kept


def _write(folder: Path, manifests: Sequence[Manifest]) -> None:
    folder.mkdir()
    for number, manifest in enumerate(manifests):
        (folder / f"{number:05}.yaml").write_text(json.dumps(manifest.body), "utf-8")


def _program(name: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    found = shutil.which(name)
    if found is None:
        raise EnvironmentLacks(f"{name} is not installed", hint="install it, or take the evidence of a cluster")
    try:
        return subprocess.run([found, *arguments], capture_output=True, text=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise EnvironmentLacks(f"{name} did not end within {_SECONDS} s") from None
