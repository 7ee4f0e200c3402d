"""CEL of policies is judged where it is written, once, whatever engines and clusters there are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from blueprint.finding import Finding
from blueprint.new import FOLDERS, examples
from blueprint.pipeline import render_platform

POLICY = """\
apiVersion: platform.blueprint/v1alpha1
kind: Policy
metadata: {name: own}
spec:
  description: d
  engines: [%s]
  match: {resources: [pods]}
  variables:
    - name: images
      expression: %s
  rules:
    - expression: object.metadata.name != 'a'
      message: m
    - expression: >-
        %s
      message: m
"""
ALL = "ValidatingAdmissionPolicy, Kyverno, Gatekeeper"
IMAGES = "object.spec.containers.map(c, c.image)"


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    for folder in FOLDERS:
        shutil.copytree(examples()["reference"] / folder, tmp_path / folder)
    return tmp_path


def found(platform: Path, engines: str, variable: str, rule: str) -> list[Finding]:
    (platform / "policies/own.yaml").write_text(POLICY % (engines, variable, rule))
    return render_platform(platform, platform / "rendered", check_only=True).report.findings


@pytest.mark.parametrize("engines", [ALL, "ValidatingAdmissionPolicy", "Kyverno", "Gatekeeper"])
@pytest.mark.parametrize(
    ("variable", "rule", "line", "says"),
    [
        (IMAGES, "size(variables.images)", 14, "a rule is true or false, and this gives int"),
        (IMAGES, "variables.image.all(i, i != 'a')", 14, "there is no variables.image before this"),
        ("variables.later == 1", "true", 10, "there is no variables.later before this"),
        (IMAGES, "object.spec ==", 14, "syntax error"),
        (IMAGES, "object.spec.hostNetwork", 14, "nobody knows that it is true or false"),
    ],
)
def test_a_slip_is_one_finding_at_its_line(
    platform: Path, engines: str, variable: str, rule: str, line: int, says: str
) -> None:
    [finding] = found(platform, engines, variable, rule)
    assert finding.source is not None
    assert (finding.code, finding.source.file, finding.source.line) == ("POL102", "policies/own.yaml", line)
    assert says in finding.message
    assert finding.fails


@pytest.mark.parametrize("rule", ["resource.Get('v1', 'pods', 'a', 'b').x == 1", "images.containers.size() > 0"])
def test_only_kyverno_has_functions_of_its_own(platform: Path, rule: str) -> None:
    assert not found(platform, "Kyverno", IMAGES, rule)
    assert [finding.code for finding in found(platform, ALL, IMAGES, rule)] == ["POL102"]


def test_what_compiles_is_silent(platform: Path) -> None:
    assert not found(platform, ALL, IMAGES, "variables.byController || variables.images.all(i, i.startsWith('a'))")
