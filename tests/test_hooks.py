"""The pre-commit hook and the GitHub Action, run by the very commands that they hold."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml_rs

ROOT = Path(__file__).parents[1]
ACTION = ROOT / "actions" / "check"
BIN = Path(sys.executable).parent

BAD = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: a}\nspec: {parent: all}\n"
GOOD = BAD.replace("parent:", "parentName:")


def loaded(path: Path) -> Any:
    return yaml_rs.loads(path.read_text("utf-8"))


def run(command: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path, **env}, capture_output=True, text=True, check=False
    )


def tree(folder: Path, text: str) -> Path:
    (folder / "deploy").mkdir()
    (folder / "deploy" / "queues.yaml").write_text(text, "utf-8")
    return folder


def test_the_hook_is_one_that_pre_commit_takes() -> None:
    (hook,) = loaded(ROOT / ".pre-commit-hooks.yaml")
    assert hook["language"] == "python"  # pre-commit installs this repository with pip
    assert hook["pass_filenames"] is False  # rules look across objects: a part of the tree would be another tree
    assert set(hook["types_or"]) == {"yaml", "json"}
    assert {"id", "name", "entry"} <= hook.keys()


def test_the_hook_finds(tmp_path: Path) -> None:
    (hook,) = loaded(ROOT / ".pre-commit-hooks.yaml")
    command = [*shlex.split(hook["entry"]), *hook["args"]]
    bad = run(command, tree(tmp_path, BAD))
    assert bad.returncode == 1
    assert "KQ701" in bad.stdout
    (tmp_path / "deploy" / "queues.yaml").write_text(GOOD, "utf-8")
    assert run(command, tmp_path).returncode == 0


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = loaded(ACTION / "action.yml")["runs"]["steps"]
    return found


def test_the_action_uses_no_other_and_takes_inputs_as_variables() -> None:
    action = loaded(ACTION / "action.yml")
    assert action["runs"]["using"] == "composite"
    for step in steps():
        assert "uses" not in step
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
    assert (ACTION / ".." / ".." / "requirements.lock").is_file()
    given = {value for step in steps() for value in step.get("env", {}).values()}
    assert given == {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}


def act(folder: Path, **inputs: str) -> tuple[int, str, Path]:
    """Run every step as the runner does; the exit code, what was said, and the folder of temporary files."""
    temp = folder / "runner"
    (temp / "blueprint").mkdir(parents=True, exist_ok=True)
    if not (temp / "blueprint" / "bin").exists():
        (temp / "blueprint" / "bin").symlink_to(BIN)  # as if it were installed already
    runner = {
        "RUNNER_TEMP": str(temp),
        "GITHUB_ACTION_PATH": str(ACTION),
        "GITHUB_OUTPUT": str(temp / "output"),
        "GITHUB_STEP_SUMMARY": str(temp / "summary"),
    }
    defaults = {name: row["default"] for name, row in loaded(ACTION / "action.yml")["inputs"].items()}
    said = ""
    for step in steps():
        names = {key: value[len("${{ inputs.") : -len(" }}")] for key, value in step.get("env", {}).items()}
        env = runner | {key: inputs.get(name, defaults[name]) for key, name in names.items()}
        done = run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]], folder, **env)
        said += done.stdout + done.stderr
        if done.returncode:
            return done.returncode, said, temp
    return 0, said, temp


def test_the_action_annotates_and_writes_sarif(tmp_path: Path) -> None:
    code, said, temp = act(tree(tmp_path, BAD), paths="deploy")
    assert code == 1
    assert "::error title=KQ701" in said
    assert "file=deploy/queues.yaml,line=4" in said
    results = json.loads((temp / "blueprint.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert "KQ701" in {result["ruleId"] for result in results}
    assert (temp / "output").read_text("utf-8") == f"sarif={temp}/blueprint.sarif\n"
    assert "KQ701" in (temp / "summary").read_text("utf-8")


def test_the_action_passes_what_is_good_and_what_is_ignored(tmp_path: Path) -> None:
    assert act(tree(tmp_path, BAD), paths="deploy", ignore="KQ701,SCH104")[0] == 0
    (tmp_path / "deploy" / "queues.yaml").write_text(GOOD, "utf-8")
    assert act(tmp_path, paths="deploy\ndeploy/queues.yaml", closed="true", ignore="KQ,REF")[0] == 0


def test_what_is_in_an_input_is_not_run(tmp_path: Path) -> None:
    code, _, temp = act(tree(tmp_path, GOOD), paths="$(touch pwned); deploy")
    assert code == 2
    assert not (tmp_path / "pwned").exists()
    assert not (temp / "pwned").exists()
