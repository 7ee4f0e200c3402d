"""`blueprint new`: copy an example platform that is green at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from blueprint.errors import UsageError

_PACKAGE = Path(__file__).parent
FOLDERS = ("clusters", "apps", "policies", "argocd")


def examples() -> dict[str, Path]:
    """The example platforms by name: inside the installed package, else in the repository."""
    shipped = _PACKAGE / "_data" / "platforms"
    if shipped.is_dir():
        return {path.name: path for path in sorted(shipped.iterdir()) if path.is_dir()}
    top = _PACKAGE.parent
    minimal = {path.name: path for path in sorted((top / "platforms").iterdir()) if path.is_dir()}
    return {**minimal, "reference": top}


def pipelines() -> dict[str, Path]:
    """Ready-made CI by name: folders of files as they lie in a platform's repository."""
    shipped = _PACKAGE / "_data" / "ci"
    folder = shipped if shipped.is_dir() else _PACKAGE.parent / "ci"
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_dir()}


def copy_pipeline(name: str, target: Path) -> list[str]:
    """Copy a pipeline into a platform, over nothing; return the files, sorted.

    Raises UsageError for an unknown pipeline or a file that is there already.
    """
    files = pipeline_files(name, target)
    shutil.copytree(pipelines()[name], target, dirs_exist_ok=True)
    return files


def pipeline_files(name: str, target: Path) -> list[str]:
    """The files of a pipeline, sorted, of which none may be in the target; nothing is written.

    Raises UsageError as `copy_pipeline` does.
    """
    known = pipelines()
    if name not in known:
        raise UsageError(f"no pipeline is called {name}", hint=f"pipelines: {', '.join(known)}")
    source = known[name]
    files = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
    if taken := [file for file in files if os.path.lexists(target / file)]:
        raise UsageError(f"{taken[0]} is there already", where=str(target), hint="move it away, or merge by hand")
    return files


def copy_example(name: str, target: Path) -> list[str]:
    """Copy the specs of an example into `target`, which must not hold any of them; return the files, sorted.

    All files come, or none: what was copied goes again where the disk refuses the rest.

    Raises UsageError for an unknown example, or a target that is in use or cannot be a folder.
    """
    known = examples()
    if name not in known:
        raise UsageError(f"no example is called {name}", hint=f"examples: {', '.join(known)}")
    _refuse(target)
    files = {path.relative_to(known[name]).as_posix(): path.read_bytes() for path in _specs(known[name])}
    target.mkdir(parents=True, exist_ok=True)
    try:
        for file, data in files.items():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            (target / file).write_bytes(data)
    except OSError:
        for folder in FOLDERS:
            shutil.rmtree(target / folder, ignore_errors=True)
        raise
    return sorted(files)


def _specs(example: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (path for path in (example / folder).rglob("*.yaml") if path.is_file())


def _refuse(target: Path) -> None:
    """Say what stands in the way, before anything is written."""
    for folder in FOLDERS:
        if os.path.lexists(target / folder):
            raise UsageError(f"{folder}/ is there already", where=str(target), hint="choose an empty folder")
    for place in (target, *target.parents):
        if place.is_symlink() and not place.exists():
            message = f"{place} is a link to something that is not there"
            raise UsageError(message, where=str(target), hint="choose another folder")
        if place.exists() and not place.is_dir():
            raise UsageError(f"{place} is no folder", where=str(target), hint="choose another folder")
