"""From a rendered file to the line of the spec that caused it.

The platform is rendered in memory: the object of each file knows the document that it comes from. Where that document
changed between the sides, its first changed line is the cause.
"""

from __future__ import annotations

import difflib
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


def causes(head: Path, base: Path | None = None) -> dict[str, Source]:
    """Files of the head's tree, as a review names them, to places in specs; empty where no platform is there.

    Places count from the root of the platform. `base` is the tree of the base, for the lines that changed.
    """
    found = platform_of(head)
    if found is None:
        return {}
    root, below = found
    prefix = f"{below}/" if root == head.resolve() else ""
    before = platform_of(base) if base is not None else None
    lines = _Lines(root, before[0] if before else None)
    try:
        return {prefix + path: lines.cause(source) for path, source in sources(root).items()}
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

    def __init__(self, root: Path, before: Path | None) -> None:
        self._root, self._before = root, before
        self._changed: dict[str, list[int]] = {}

    def cause(self, source: Source) -> Source:
        """The first changed line of the document at a place, else the place itself."""
        if self._before is None:
            return source
        if source.file not in self._changed:
            self._changed[source.file] = list(_changed(self._before / source.file, self._root / source.file))
        text = _text(self._root / source.file)
        following = [n for n, line in enumerate(text, 1) if line.startswith("---") and n > source.line]
        end = min(following, default=len(text) + 1)
        line = next((n for n in self._changed[source.file] if source.line <= n < end), source.line)
        return Source(source.file, line, 1)


def _text(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _changed(old: Path, new: Path) -> Iterator[int]:
    """Line numbers of the new file that are not in the old one, or follow what was taken out."""
    matcher = difflib.SequenceMatcher(None, _text(old), _text(new), autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag != "equal":
            yield from range(start + 1, max(end, start + 1) + 1)
