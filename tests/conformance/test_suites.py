"""`blueprint conform` on the reference platform: every suite passes, and each seeded fault turns its suite red.

It takes minutes and the controllers of the group `live`, so it runs only where BLUEPRINT_SUITES is set, as in CI.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blueprint.conform import evidence
from blueprint.conform.suites import ALL

ROOT = Path(__file__).resolve().parents[2]
MINUTES = 15

pytestmark = pytest.mark.skipif("BLUEPRINT_SUITES" not in os.environ, reason="BLUEPRINT_SUITES is not set")


def conform(*words: str) -> dict[str, Any]:
    """Run the verb as its own process, which moves into namespaces of its own."""
    command = [sys.executable, "-m", "blueprint", "conform", str(ROOT), "-o", "json", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 * MINUTES)
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout)


def test_every_suite_passes_and_leaves_evidence(tmp_path: Path) -> None:
    found = conform("--out", str(tmp_path / "evidence"))
    assert found["skipped"] == {}
    assert [case for case in found["cases"] if not case["passed"]] == []
    assert {row["suite"] for row in found["suites"]} == {suite.name for suite in ALL}
    assert all(row["negative"] for row in found["suites"])
    assert evidence.verify(tmp_path / "evidence") == []


def test_each_fault_turns_its_suite_red() -> None:
    found = conform("--faults")
    assert found["faults"] == {f"{suite.name}: {fault.name}": True for suite in ALL for fault in suite.faults}
