"""`blueprint check --fix` writes what is safe, `--diff` shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

QUEUES = """\
# our queues
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: a}
spec:
  parent: all   # everybody's
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: all}
spec: {}
"""
FIXED = QUEUES.replace("parent: all", "parentName: all")


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "blueprint", "check", "--select", "KQ701", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def written(folder: Path, text: str) -> Path:
    file = folder / "queues.yaml"
    file.write_text(text, "utf-8")
    return file


def test_a_diff_shows_and_writes_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, QUEUES)
    done = check(tmp_path, "--diff")
    assert done.returncode == 1
    assert "-  parent: all   # everybody's\n+  parentName: all   # everybody's\n" in done.stdout
    assert "would fix 1 finding in 1 file\n" in done.stderr
    assert file.read_text("utf-8") == QUEUES


def test_a_fix_is_written_and_the_run_is_fine(tmp_path: Path) -> None:
    file = written(tmp_path, QUEUES)
    done = check(tmp_path, "--fix", "-o", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["findings"] == []
    assert file.read_text("utf-8") == FIXED
    assert check(tmp_path).returncode == 0


def test_a_mistake_that_two_rules_tell_of_is_mended_once_for_both(tmp_path: Path) -> None:
    file = written(tmp_path, QUEUES)
    done = check(tmp_path, "--select", "SCH104", "--fix", "-o", "json")
    assert done.returncode == 0, done.stdout
    assert done.stderr == "fixed 2 findings in 1 file\n"
    assert json.loads(done.stdout)["findings"] == []
    assert file.read_text("utf-8") == FIXED


def test_what_cannot_be_fixed_in_the_text_is_left_and_told(tmp_path: Path) -> None:
    text = QUEUES.replace("parent: all   # everybody's", "parent: &p all\n  x: *p")
    file = written(tmp_path, text.replace("\n", "\r\n"))
    before = file.read_bytes()
    done = check(tmp_path, "--fix")
    assert done.returncode == 1
    assert "by hand" in done.stderr
    assert file.read_bytes() == before


def test_a_revision_is_not_written_to(tmp_path: Path) -> None:
    written(tmp_path, QUEUES)
    assert check(tmp_path, "--fix", "--rev", "HEAD").returncode == 2
