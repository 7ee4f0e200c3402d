"""The generated tables against the sources that they are made from, where Go can bring those."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = os.environ.get("BLUEPRINT_CONFORMANCE") == "required"


@pytest.mark.conformance
@pytest.mark.parametrize("script", ["argocd_facts.py", "components.py"])
def test_a_generated_table_is_what_its_script_makes_today(script: str) -> None:
    if not (REQUIRED or shutil.which("go")):
        pytest.skip(f"checking scripts/{script} needs Go")
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    done = subprocess.run(
        command, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    if "did not bring" in done.stderr or done.returncode == 3:
        reason = done.stderr.strip().splitlines()[-1]
        pytest.fail(reason) if REQUIRED else pytest.skip(f"scripts/{script}: {reason}")
    assert done.returncode == 0, done.stderr
