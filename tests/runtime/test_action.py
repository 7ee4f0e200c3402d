"""The CI steps: their scripts are run as a runner runs them, and what is in their inputs is never run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.attest.world import MALLORY, RENDERER, Office


class Runner:
    """Runs the step of an action in a repository, with `blueprint` in PATH."""

    def __init__(self, folder: Path, action: dict[str, Any], office: Office) -> None:
        self.folder, self.action = folder, action
        (folder / "root.json").write_text(json.dumps(office.store.trusted_root()))
        (folder / "bin").mkdir()
        program = folder / "bin/blueprint"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m blueprint "$@"\n')
        program.chmod(0o755)
        self.inputs = {"identity": RENDERER, "issuer": office.store.issuer, "trusted-root": "root.json"}
        self.more: dict[str, str] = {}

    def git(self, *arguments: str) -> None:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=self.folder, check=True, capture_output=True)

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        (step,) = self.action["runs"]["steps"]
        given = {name: row.get("default", "") for name, row in self.action["inputs"].items()} | self.inputs | inputs
        environment = {
            name: given[text.removeprefix("${{ inputs.").removesuffix(" }}")] for name, text in step["env"].items()
        }
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", step["run"]],
            cwd=self.folder,
            env={**os.environ, **environment, **self.more, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def runner(tmp_path: Path, repository: Path, signed_tree: Path, office: Office) -> Runner:
    shutil.copytree(signed_tree, tmp_path / "rendered")
    made = Runner(tmp_path, yaml.safe_load((repository / "action.yml").read_text()), office)
    made.git("init", "-q", "-b", "main")
    made.git("add", "rendered")
    made.git("commit", "-q", "-m", "Render")
    return made


def test_a_signed_commit_passes_and_an_altered_one_does_not(runner: Runner) -> None:
    done = runner.run(cluster="prod-a", ledger="ledger", **{"ask-log": "true"})
    assert done.returncode == 0, done.stdout + done.stderr
    (runner.folder / "rendered/prod-a/chat/service-chat.yaml").write_text("kind: Service\n")
    assert runner.run().returncode == 0, "the commit is judged, whatever lies in the checkout"
    runner.git("commit", "-q", "-a", "-m", "Sneak in")
    done = runner.run()
    assert done.returncode == 1
    assert "::error" in done.stdout
    assert "SIG201" in done.stdout
    assert runner.run(identity=MALLORY).returncode == 1


def test_inputs_are_never_run(runner: Runner) -> None:
    for name in ("tree", "identity", "revision", "cluster"):
        done = runner.run(**{name: "x'; touch pwned; $(touch pwned) `touch pwned` #"})
        assert done.returncode in (1, 2)
        assert not (runner.folder / "pwned").exists()
    assert runner.run(identity="").returncode == 2


def test_what_the_signing_step_signs_the_verifying_step_takes(
    runner: Runner, repository: Path, office: Office, tmp_path: Path
) -> None:
    """One step after the other, as two jobs would run them; the identity is that of the environment."""
    shutil.rmtree(runner.folder / "rendered/.attestations")
    (runner.folder / "trust.json").write_text(office.store.trust_config())
    verifying, runner.action = runner.action, yaml.safe_load((repository / "actions/sign/action.yml").read_text())
    trusted = {"trust-config": "trust.json"}
    lacking = runner.run(**trusted)
    assert lacking.returncode == 2, lacking.stdout + lacking.stderr
    token = office.store.token(RENDERER)
    runner.more = {"SIGSTORE_ID_TOKEN": token}
    done = runner.run(**trusted)
    assert done.returncode == 0, done.stdout + done.stderr
    assert token not in done.stdout + done.stderr
    for name in ("tree", "trust-config", "revision"):
        assert runner.run(**trusted | {name: "$(touch pwned) `touch pwned` '; touch pwned #"}).returncode != 0
        assert not (runner.folder / "pwned").exists()
    runner.action, runner.more = verifying, {}
    runner.git("add", "rendered")
    runner.git("commit", "-q", "-m", "Sign")
    assert runner.run(cluster="prod-a").returncode == 0


SCRIPTS = ("action.yml", "actions/sign/action.yml", "actions/check/action.yml")


@pytest.mark.parametrize("name", SCRIPTS)
def test_inputs_reach_scripts_as_variables_only(name: str, repository: Path) -> None:
    """No expression stands in the text of a script, every input is read, and bash can parse what is run."""
    action = yaml.safe_load((repository / name).read_text())
    steps = action["runs"]["steps"]
    for step in steps:
        assert "${{" not in step["run"]
        assert subprocess.run(["bash", "-n", "-c", step["run"]], check=False).returncode == 0
        assert step["run"].startswith("set -euo pipefail\n")
    read = {text for step in steps for text in step.get("env", {}).values()}
    assert read == {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
