"""What the policy engines' command lines say of requests: gator and kyverno, on files, without any cluster."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from blueprint.conform.corpus import Request
from blueprint.conform.stage import WrongAnswerError
from blueprint.conform.tree import Tree
from blueprint.render.gatekeeper import constraint_kind

Body = dict[str, Any]

CommandLine = Callable[[Path, Path, Tree, Iterable[str], Sequence[Request]], list[bool]]
"""Asks a program, with files in a folder, which of the requests the policies of a tree refuse."""

_SECONDS = 300
_ENDED = re.compile(r"^ +--- (PASS|FAIL): request-(\d+)\b[^\n]*\n((?: {8}[^\n]*\n)*)", re.MULTILINE)
_VIOLATED = "violations but want none"
"""gatekeeper v3.23.1 pkg/gator/verify/assertion.go."""


def gator(program: Path, folder: Path, tree: Tree, policies: Iterable[str], requests: Sequence[Request]) -> list[bool]:
    """Whether one of the policies refuses each request, as `gator verify` says.

    Every case asserts that nothing is violated, so that those it reports as failed are refused. It starts anew for each
    case, which takes long: kinds that a constraint does not name are not asked about.
    """
    for number, request in enumerate(requests):
        _write(folder / f"request-{number}.json", _review(request))
    for name in {request.body["metadata"]["namespace"] for request in requests}:
        _write(folder / f"namespace-{name}.json", _namespace(tree, name))
    tests = []
    for policy in sorted(policies):
        kind = constraint_kind(policy)
        [template], [constraint] = tree.of_kind("ConstraintTemplate", kind.lower()), tree.of_kind(kind)
        _write(folder / f"template-{policy}.json", template)
        _write(folder / f"constraint-{policy}.json", constraint)
        asked = {kind for row in constraint["spec"]["match"].get("kinds", ()) for kind in row["kinds"]}
        cases = [
            {
                "name": f"request-{number}",
                "object": f"request-{number}.json",
                "inventory": [f"namespace-{request.body['metadata']['namespace']}.json"],
                "assertions": [{"violations": "no"}],
            }
            for number, request in enumerate(requests)
            if not asked or asked & {"*", request.body["kind"]}
        ]
        names = {"template": f"template-{policy}.json", "constraint": f"constraint-{policy}.json"}
        tests += [{"name": policy, **names, "cases": cases}] if cases else []
    suite = {"apiVersion": "test.gatekeeper.sh/v1alpha1", "kind": "Suite", "metadata": {"name": "corpus"}}
    _write(folder / "suite.yaml", {**suite, "tests": tests})
    done = _run([program, "verify", "--verbose", "suite.yaml"], folder)
    said = done.stdout or done.stderr
    ended = _ENDED.findall(said)
    if len(ended) != sum(len(test["cases"]) for test in tests):
        raise WrongAnswerError(f"gator does not verify: {said[:500]}")
    if broken := next((why for end, _, why in ended if end == "FAIL" and _VIOLATED not in why), ""):
        raise WrongAnswerError(f"gator does not verify: {broken.strip()[:500]}")
    refused = {int(number) for end, number, _ in ended if end == "FAIL"}
    return [number in refused for number in range(len(requests))]


def kyverno(
    program: Path, folder: Path, tree: Tree, policies: Iterable[str], requests: Sequence[Request]
) -> list[bool]:
    """Whether one of the policies refuses each request, as `kyverno apply` says; one run for each user."""
    wanted = set(policies)
    bodies = [body for body in tree.of_kind("ValidatingPolicy") if body["metadata"]["name"] in wanted]
    (folder / "policies.yaml").write_text("---\n".join(json.dumps(body) + "\n" for body in bodies), "utf-8")
    names = sorted({request.body["metadata"]["namespace"] for request in requests})
    spaces = [{"name": name, "labels": _namespace(tree, name)["metadata"]["labels"]} for name in names]
    header = {"apiVersion": "cli.kyverno.io/v1alpha1", "metadata": {"name": "request"}}
    _write(folder / "values.json", {**header, "kind": "Values", "namespaceSelector": spaces})
    refused: set[int] = set()
    for user in sorted({request.user for request in requests}):
        own = {number: request for number, request in enumerate(requests) if request.user == user}
        _write(folder / "user.json", {**header, "kind": "UserInfo", "userInfo": {"username": user}})
        refused |= set(_refused(program, folder, own))
    return [number in refused for number in range(len(requests))]


def _refused(program: Path, folder: Path, requests: dict[int, Request]) -> Iterator[int]:
    """Results name objects, so that each gets a name of its own: its kind of name, with the number of the request."""
    lines = []
    for number, request in requests.items():
        body = copy.deepcopy(request.body)
        body["metadata"]["name"] = f"request-{number}"
        lines.append(json.dumps(body) + "\n")
    (folder / "requests.yaml").write_text("---\n".join(lines), "utf-8")
    command: list[str | Path] = [program, "apply", "policies.yaml", "--resource", "requests.yaml"]
    command += ["--userinfo", "user.json", "--values-file", "values.json", "--policy-report", "--output-format", "json"]
    done = _run(command, folder)
    if not done.stdout and not done.returncode:
        return  # no policy matches any of them
    try:
        results = json.loads(done.stdout)["results"]
    except (ValueError, KeyError):
        raise WrongAnswerError(f"kyverno does not apply: {(done.stdout or done.stderr)[:500]}") from None
    for row in results:
        if row["result"] in {"fail", "error"}:
            yield from (int(resource["name"].removeprefix("request-")) for resource in row["resources"])


def _namespace(tree: Tree, name: str) -> Body:
    """A namespace of the tree, or one that a controller brings, with the label that every server gives."""
    [body] = tree.of_kind("Namespace", name) or [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}]
    labels = {**body["metadata"].get("labels", {}), "kubernetes.io/metadata.name": name}
    return {**body, "metadata": {**body["metadata"], "labels": labels}}


def _review(request: Request) -> Body:
    body = request.body
    group, _, version = body["apiVersion"].rpartition("/")
    meta = body["metadata"]
    asked = {
        "uid": "00000000-0000-0000-0000-000000000001",
        "kind": {"group": group, "version": version, "kind": body["kind"]},
        "operation": "CREATE",
        "name": meta["name"],
        "namespace": meta["namespace"],
        "userInfo": {"username": request.user},
        "object": body,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


def _write(path: Path, body: Body) -> None:
    path.write_text(json.dumps(body), "utf-8")


def _run(command: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=_SECONDS)


COMMAND_LINES: dict[str, CommandLine] = {"gator": gator, "kyverno": kyverno}
