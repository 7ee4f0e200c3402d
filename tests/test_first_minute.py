"""The session in README.md, replayed: every command, every line that it prints."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def test_the_session_of_the_readme(tmp_path: Path) -> None:
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    (session,) = re.findall(r"```console\n(.*?)```", readme, re.DOTALL)
    shutil.copytree(REPOSITORY / "docs/first-minute", tmp_path / "first-minute")
    said = []
    for command in re.findall(r"^\$ (.+)$", session, re.MULTILINE):
        call = command.replace("blueprint", f"{sys.executable} -m blueprint", 1)
        done = subprocess.run(
            call,
            shell=True,
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        said.append(f"$ {command}\n{done.stdout}".rstrip())
    assert _timeless("\n".join(said)) == _timeless(session.rstrip())


def _timeless(text: str) -> str:
    return re.sub(r"\d+\.\d s", "N s", text)
