"""`blueprint new`: copy an example platform that is green at once."""

from __future__ import annotations

import shutil
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


def copy_example(name: str, target: Path) -> list[str]:
    """Copy the specs of an example into `target`, which must not hold any of them; return the files, sorted.

    Raises UsageError for an unknown example or a folder that is in use.
    """
    known = examples()
    if name not in known:
        raise UsageError(f"no example is called {name}", hint=f"examples: {', '.join(known)}")
    taken = [folder for folder in FOLDERS if (target / folder).exists()]
    if taken:
        raise UsageError(f"{taken[0]}/ is there already", where=str(target), hint="choose an empty folder")
    target.mkdir(parents=True, exist_ok=True)
    for folder in FOLDERS:
        if (known[name] / folder).is_dir():
            shutil.copytree(known[name] / folder, target / folder)
    return sorted(
        path.relative_to(target).as_posix()
        for folder in FOLDERS
        for path in (target / folder).rglob("*")
        if path.is_file()
    )
