"""The workflows and steps that are shipped, as actionlint reads them: schema, expressions, inputs, permissions."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conformance.conftest import ROOT, program

pytestmark = pytest.mark.conformance

STEPS = """
on: pull_request
permissions: {contents: read}
jobs:
  all:
    runs-on: ubuntu-latest
    permissions: {contents: write, id-token: write}
    steps:
      - uses: ./actions/sign
        with: {tree: rendered, trust-config: trust.json, revision: HEAD}
      - uses: ./
        with: {identity: name, issuer: "https://issuer.example.com", ledger: log, ask-log: "true", rerender: .}
      - id: check
        uses: ./actions/check
        with: {paths: rendered, closed: "true"}
      - run: cat "$SARIF"
        env: {SARIF: "${{ steps.check.outputs.sarif }}"}
"""


def lint(folder: Path, text: str) -> str:
    """What actionlint says of a workflow beside our steps; "" for nothing."""
    workflows = folder / ".github/workflows"
    workflows.mkdir(parents=True, exist_ok=True)
    for name in ("action.yml", "actions/sign/action.yml", "actions/check/action.yml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (workflows / "linted.yml").write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    command = [program("actionlint"), "-no-color", "-shellcheck=", "-pyflakes=", ".github/workflows/linted.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_our_steps(tmp_path: Path) -> None:
    assert lint(tmp_path, STEPS) == ""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("identity: name, ", "", 'missing input "identity"'),
        ("ask-log", "ask-the-log", 'input "ask-the-log" is not defined'),
        ("outputs.sarif", "outputs.sarifs", 'property "sarifs" is not defined'),
        ("id-token: write", "id-tokens: write", "id-tokens"),
    ],
)
def test_a_mistake_is_seen(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in STEPS
    assert says in lint(tmp_path, STEPS.replace(old, new))


def test_the_pipeline_that_is_shipped(tmp_path: Path) -> None:
    (file,) = (ROOT / "ci/github/.github/workflows").glob("*.yml")
    assert lint(tmp_path, file.read_text("utf-8")) == ""


def test_the_workflow_in_the_page(tmp_path: Path) -> None:
    """With our steps in place of their names in the marketplace."""
    page = (ROOT / "docs/signing.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(on:\n.*?)```", page, re.DOTALL)
    text = text.replace("OWNER/blueprint/actions/sign@REVISION", "./actions/sign").replace(
        "OWNER/blueprint@REVISION", "./"
    )
    assert text.count("uses: ./") == 2
    assert lint(tmp_path, text) == ""
