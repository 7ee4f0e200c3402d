"""Put the Python files of the pinned vLLM into `.tools/vllm/<version>`, where the tests run parts of them.

    python scripts/vllm_sources.py

The source distribution comes through pip, its digest is in `tools/vllm/requirements.txt`. It is unpacked, never built
or installed: without build isolation pip stops at the first import of torch, and `--no-clean` leaves the tree. What is
there is not fetched again; without a network one line says so, and the exit code is still 0, as the tests say
themselves what they lack. BLUEPRINT_TOOLS names another folder than `.tools`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINNED = ROOT / "tools" / "vllm" / "requirements.txt"


def version() -> str:
    """The pinned version."""
    found = re.search(r"^vllm==(\S+) --hash=", PINNED.read_text("utf-8"), re.MULTILINE)
    if found is None:
        sys.exit(f"vllm: {PINNED} pins no version with its digest")
    return found[1]


def folder() -> Path:
    """Where the sources of the pinned version lie, or would."""
    return Path(os.environ.get("BLUEPRINT_TOOLS") or ROOT / ".tools") / "vllm" / version()


def fetch(into: Path) -> str:
    """Unpack the source distribution and keep its Python files; returns what went wrong, "" for nothing."""
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=".vllm-") as scratch:
        command = [sys.executable, "-m", "pip", "download", "--require-hashes", "--no-deps", "--no-binary", ":all:"]
        command += ["--no-build-isolation", "--no-clean", "--dest", scratch, "--requirement", str(PINNED)]
        done = subprocess.run(
            command, env={**os.environ, "TMPDIR": scratch}, capture_output=True, text=True, check=False
        )
        tree = next((path.parent for path in Path(scratch).glob("pip-*/vllm_*/vllm/__init__.py")), None)
        if tree is None:
            return next((line for line in reversed(done.stderr.splitlines()) if line.startswith("ERROR")), done.stderr)
        kept = Path(scratch, "kept")
        for file in tree.rglob("*.py"):
            target = kept / "vllm" / file.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        kept.rename(into)
    return ""


def main() -> int:
    """Fetch what is missing, and say one line."""
    target = folder()
    if target.is_dir():
        print(f"vllm {version()} present")
    elif problem := fetch(target):
        print(f"vllm {version()} cannot be fetched: {problem.strip()[:200]}", file=sys.stderr)
    else:
        print(f"vllm {version()} unpacked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
