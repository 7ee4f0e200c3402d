"""What rules call refused, Kueue's own code refuses, and what they are silent about it takes.

`kueue-verdicts` holds the validation of Kueue's webhooks and of its start-up. Every object of every example and case of
the rules about Kueue goes to both. That jobs are never admitted is compared with the real scheduler in test_admission.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml_rs

from blueprint.catalog.rules import rules
from blueprint.check.rules import across
from blueprint.conform import programs
from blueprint.errors import EnvironmentLacks
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest
from tests.check.rules.cases import cases, manifests

KINDS = frozenset({"ClusterQueue", "Cohort", "Configuration", "Job", "JobSet", "Pod", "WorkloadPriorityClass"})
SAYS_REFUSED = ("webhook refuses", "the webhook wants", "does not start", "it does not start", "cannot read the list")
ELSEWHERE = {
    "kueue_config: Spark without its gate (objects)": "refused later in the start, by sparkapplication_controller.go",
    "kueue_paths: an empty queue name (near)": "the mutating webhook names the LocalQueue default first",
}
"""Where another part of Kueue than the one that is asked has the last word."""
ALWAYS = frozenset({"KQ121", "KQ122", "KQ123", "KQ124", "KQ213"})
_GROUP = "kueue.x-k8s.io"


@pytest.fixture(scope="module")
def verdicts() -> Path:
    """The program, or a skip in plain words."""
    try:
        return programs.find("kueue-verdicts").path
    except EnvironmentLacks as error:
        pytest.skip(f"{error.message} ({error.hint})")


def ask(program: Path, bodies: list[dict[str, Any]]) -> list[str]:
    """What Kueue says of each object, "" where it takes it."""
    lines = "".join(f"{json.dumps(body)}\n" for body in bodies)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def texts() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Every text of the rules about Kueue, with an id and the versions that go with it."""
    for code, rule in rules().items():
        if code.startswith("KQ"):
            for name, text in (("bad", rule.bad), ("good", rule.good)):
                if text:
                    yield f"{code} {name}", text, {}
    for name, case in cases():
        if name.startswith("kueue"):
            for part, files in (("objects", case.objects), ("fixed", case.fixed), ("near", case.near)):
                if isinstance(files, str) and files:
                    yield f"{name} ({part})", files, case.versions


def body_of(manifest: Manifest) -> dict[str, Any] | None:
    """What Kueue would be given; None for what it does not judge, or what a template still fills in."""
    body = manifest.body
    if manifest.unknown or manifest.draft:
        return None
    if manifest.kind == "ConfigMap":
        try:
            body = yaml_rs.loads(manifest.body["data"]["controller_manager_config.yaml"], parse_datetime=False)
        except (KeyError, ValueError):
            return None
    if not isinstance(body, dict) or body.get("kind") not in KINDS:
        return None
    old = body["apiVersion"] == f"{_GROUP}/v1beta1"
    return None if old else body


def refused(finding: Finding) -> bool:
    """Whether a finding says that Kueue does not take the object."""
    sure = finding.confidence is Confidence.CERTAIN and finding.severity is Severity.ERROR
    return sure and (finding.code in ALWAYS or any(words in finding.message for words in SAYS_REFUSED))


def test_rules_and_kueue_agree_about_every_object(verdicts: Path) -> None:
    asked: list[tuple[str, Manifest, dict[str, Any], list[Finding]]] = []
    for name, text, versions in texts():
        if versions.get("kueue", "0.17.0") != "0.17.0":
            continue
        objects = manifests(text)
        found = list(across(objects, versions={**versions, "kueue": "0.17.0"}))
        for manifest in objects:
            body = body_of(manifest)
            mine = [f for f in found if f.source == manifest.source and f.object == manifest.ref and refused(f)]
            if body is not None:
                asked.append((name, manifest, body, mine))
    answers = ask(verdicts, [body for _, _, body, _ in asked])
    assert len(answers) == len(asked)
    wrong = [
        f"{name}: {manifest.ref}: rules say {[f.message for f in mine]}, Kueue says {answer!r}"
        for (name, manifest, _, mine), answer in zip(asked, answers, strict=True)
        if bool(mine) != bool(answer) and name not in ELSEWHERE
    ]
    assert not wrong, "\n".join(wrong)
    assert sum(bool(answer) for answer in answers) > 25
