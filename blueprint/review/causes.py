"""From a rendered file to the line of the spec that caused it.

The platform is rendered in memory: the object of each file knows the document that it comes from. Where that document
changed between the sides, its first changed line is the cause.
"""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from blueprint.catalog.schemas import SchemaPack
from blueprint.errors import BlueprintError
from blueprint.finding import Source
from blueprint.render.templates import Templates, shipped_folder
from blueprint.spec.files import FOLDERS


def platform_of(tree: Path) -> tuple[Path, str] | None:
    """The platform that a tree, or a folder with the tree, belongs to, and the path of the tree in it."""
    place = tree.resolve()
    for root, below in ((place, "rendered"), (place.parent, place.name)):
        if (root / FOLDERS[0]).is_dir() and (root / below).is_dir():
            return root, below
    return None


def causes(head: Path, base: str = "") -> dict[str, Source]:
    """Files of the head's tree, as a review names them, to places in specs; empty where no platform is there.

    Places count from the root of the platform. `base` is the base of the review (a folder, or a revision of Git), for
    the lines that changed.
    """
    found = platform_of(head)
    if found is None:
        return {}
    root, _ = found
    lines = _Lines(root, base)
    try:
        return {path: lines.cause(source) for path, source in sources(root).items()}
    except BlueprintError:
        return {}


def sources(root: Path) -> dict[str, Source]:
    """Every file that a platform renders, below its tree, to the document of a spec that it comes from."""
    from blueprint.render.platform import render
    from blueprint.spec.load import load

    own = root / "templates"
    folders = [own] if own.is_dir() and own.resolve() != shipped_folder().resolve() else []
    templates, pack, platform = Templates(folders), SchemaPack.shipped(), load(root).platform
    found: dict[str, Source] = {}
    for cluster in platform.clusters:
        for file in render(platform, cluster, templates, pack).files:
            found[file.path] = file.manifest.source
    return found


class _Lines:
    """Lines of specs that differ from those of the base."""

    def __init__(self, root: Path, base: str) -> None:
        self._root, self._base = root, base
        before = platform_of(Path(base)) if base and Path(base).exists() else None
        self._before = before[0] if before else None
        self._changed: dict[str, list[int]] = {}

    def cause(self, source: Source) -> Source:
        """The first changed line of the document at a place, else the place itself."""
        text = _text(self._root / source.file)
        if source.file not in self._changed:
            old = self._old(source.file)
            self._changed[source.file] = [] if old is None else list(_changed(old, text))
        following = [n for n, line in enumerate(text, 1) if line.startswith("---") and n > source.line]
        end = min(following, default=len(text) + 1)
        line = next((n for n in self._changed[source.file] if source.line <= n < end), source.line)
        return Source(source.file, line, 1)

    def _old(self, file: str) -> list[str] | None:
        """The spec as the base has it, None where nobody can say."""
        if self._before is not None:
            return _text(self._before / file)
        if not self._base:
            return None
        name = f"{self._base.partition(':')[0]}:./{file}"
        done = subprocess.run(["git", "show", name], cwd=self._root, capture_output=True, check=False)
        return done.stdout.decode("utf-8", "replace").splitlines() if done.returncode == 0 else None


def _text(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _changed(old: list[str], new: list[str]) -> Iterator[int]:
    """Line numbers of the new text that are not in the old one, or follow what was taken out."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag != "equal":
            yield from range(start + 1, max(end, start + 1) + 1)
