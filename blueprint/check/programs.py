"""Programs that make manifests out of folders: found on the PATH, run without the user's settings, and bounded."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from blueprint.check.parse import MAX_FILE
from blueprint.finding import Confidence, Finding, Severity, Source
from blueprint.objects import Manifest

SECONDS = 60
"""How long one folder may take."""

_T = TypeVar("_T")


@dataclass(slots=True)
class Built:
    """What programs made: objects, what is to be said, and the names of files that are not to be read any more.

    `drafts` are files whose objects a tool would still change, had it been possible to run it.
    """

    manifests: list[Manifest] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    drafts: set[str] = field(default_factory=set)


def unbuilt(message: str, source: Source) -> Finding:
    """YML303: what no program could build is read as the files that it is."""
    return Finding("YML303", message, source, Severity.NOTE, Confidence.STYLE)


class Failed(Exception):
    """A program made nothing; the text is its reason. Internal to building."""


def which(*names: str) -> str:
    """The first of the programs that is installed, "" for none."""
    return next((found for name in names if (found := shutil.which(name))), "")


def output(command: Sequence[str], folder: Path) -> bytes:
    """What a program writes, run in a folder; raises Failed."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryFile() as out:
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": home,
            "KUBECONFIG": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
        }
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"it took more than {SECONDS} seconds") from None
        except OSError as error:
            raise Failed(str(error.strerror or error)) from None
        if done.returncode:
            raise Failed(_reason(done.stderr.decode("utf-8", "replace")) or f"exit code {done.returncode}")
        out.seek(0)
        data = out.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise Failed(f"it gives more than {MAX_FILE // 2**20} MiB")
    return data


def _reason(errors: str) -> str:
    """The line of an error that says most: the last one that starts with Error, else the last one."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("Error:")] or lines
    text = told[-1].removeprefix("Error:").strip() if told else ""
    return text[-4000:]


def each(function: Callable[[str], _T], folders: Iterable[str]) -> list[_T]:
    """A function of every folder, a few at once; results in the order of the folders."""
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(function, folders))
