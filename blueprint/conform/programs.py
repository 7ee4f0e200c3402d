"""Where the real programs lie: built ones first, then what the machine offers."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from blueprint.errors import EnvironmentLacks


@dataclass(frozen=True, slots=True)
class Program:
    """A program that can be started; `version` is "" where only running it would tell."""

    name: str
    path: Path
    version: str


def find(name: str) -> Program:
    """The program of that name: `$BLUEPRINT_TOOLS/bin`, `.tools/bin` here or in a folder above, then PATH.

    Files built by `scripts/tools.py` are named `<name>@<version>-<key>` and `<name>` links to the newest.
    Raises EnvironmentLacks, which says how to get it.
    """
    for folder in _folders():
        candidate = folder / name
        if os.access(candidate, os.X_OK):
            return Program(name, candidate, _version(candidate))
    if found := shutil.which(name):
        return Program(name, Path(found), _version(Path(found)))
    raise EnvironmentLacks(
        f"the program {name} is neither built nor in PATH", hint="run `make tools`; the first build takes minutes"
    )


def _folders() -> list[Path]:
    if chosen := os.environ.get("BLUEPRINT_TOOLS"):
        return [Path(chosen) / "bin"]
    here = Path.cwd()
    return [folder / ".tools" / "bin" for folder in (here, *here.parents)]


def _version(path: Path) -> str:
    """`v3.7.3` of `etcd@v3.7.3-0123456789`."""
    _, _, tail = path.resolve().name.partition("@")
    return tail.rpartition("-")[0]
