"""vLLM's own code as a process that answers questions (vllm_code.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from scripts import vllm_sources

PROGRAM = Path(__file__).with_name("vllm_code.py")


class Vllm:
    """The running process; `ask` gives what vLLM's code says to one question."""

    def __enter__(self) -> Vllm:
        sources = vllm_sources.folder()
        if not sources.is_dir():
            reason = f"vllm {vllm_sources.version()} is not here (`make tools` fetches its sources)"
            if os.environ.get("BLUEPRINT_CONFORMANCE") == "required":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)
        self._said = tempfile.TemporaryFile("w+")
        # Of this suite it needs nothing but its own two files, and of the environment no setting of vLLM's.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VLLM_")}
        self._process = subprocess.Popen(
            [sys.executable, PROGRAM, sources],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env={**environment, "VLLM_NO_USAGE_STATS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        self._said.close()

    def ask(self, what: str, **values: Any) -> dict[str, Any]:
        """One answer; what ends the process is shown with the last of what it said."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"ask": what, **values}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._said.seek(0)
            pytest.fail(f"vLLM's code ended: {self._said.read()[-2000:]}")
        found: dict[str, Any] = json.loads(line)
        return found
