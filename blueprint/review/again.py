"""A platform's specs in a copy that is changed and rendered again, in memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from blueprint.catalog.schemas import SchemaPack
from blueprint.errors import BlueprintError
from blueprint.finding import Report, Source
from blueprint.render.platform import render
from blueprint.render.templates import Templates, shipped_folder
from blueprint.spec.files import FOLDERS, IMAGES_LOCK
from blueprint.spec.load import load

TREE = "rendered"
Rendered = dict[str, list[str]]
"""Files by path below the tree, as lines."""


def platform_of(tree: Path) -> tuple[Path, str] | None:
    """The platform that a tree, or a folder with the tree, belongs to, and the path of the tree in it."""
    place = tree.resolve()
    for root, below in ((place, TREE), (place.parent, place.name)):
        if (root / FOLDERS[0]).is_dir() and (root / below).is_dir():
            return root, below
    return None


def specs_of(root: Path) -> list[str]:
    """The files with specs of a platform, below its root."""
    return sorted(
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in (".yaml", ".yml")
    )


def _templates(root: Path) -> Templates:
    own = root / "templates"
    return Templates([own] if own.is_dir() and own.resolve() != shipped_folder().resolve() else [])


def sources(root: Path) -> dict[str, Source]:
    """Every file that a platform renders, below its tree, to the document of a spec that it comes from."""
    templates, pack, platform = _templates(root), SchemaPack.shipped(), load(root).platform
    found: dict[str, Source] = {}
    for cluster in platform.clusters:
        for file in render(platform, cluster, templates, pack).files:
            found[file.path] = file.manifest.source
    return found


class Platform:
    """A copy of a platform's specs that is changed and rendered again."""

    def __init__(self, root: Path, copy: Path) -> None:
        self.root, self._copy = root, copy
        self._templates, self._pack = _templates(root), SchemaPack.shipped()
        self.tried = 0

    def contents(self, cluster: str = "") -> dict[str, bytes] | None:
        """The files of a cluster, or of all; None where the specs are not valid."""
        self.tried += 1
        try:
            loaded = load(self._copy)
            if Report.of(loaded.findings).failed:
                return None
            found: dict[str, bytes] = {}
            for document in loaded.platform.clusters:
                if cluster in ("", document.model.metadata.name):
                    found |= render(loaded.platform, document, self._templates, self._pack).contents()
        except (BlueprintError, ValueError, KeyError):
            return None
        return found

    def render(self, cluster: str = "") -> Rendered | None:
        """The same, as lines."""
        found = self.contents(cluster)
        return None if found is None else {path: data.decode().splitlines() for path, data in found.items()}

    def text(self, file: str) -> str:
        """A spec as it is."""
        return (self.root / file).read_text("utf-8-sig")

    @contextmanager
    def written(self, file: str) -> Iterator[Path]:
        """The copy of a spec, to be written for as long as the context lasts; then it is as before, or not there."""
        path = self._copy / file
        before = path.read_bytes() if path.is_file() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield path
        finally:
            if before is not None:
                path.write_bytes(before)
            else:
                path.unlink(missing_ok=True)


@contextmanager
def opened(root: Path) -> Iterator[Platform]:
    """A copy of the specs of a platform, gone when the context ends."""
    with tempfile.TemporaryDirectory(prefix="blueprint-") as folder:
        for name in FOLDERS:
            if (root / name).is_dir():
                shutil.copytree(root / name, Path(folder, name))
        if (root / IMAGES_LOCK).is_file():
            shutil.copyfile(root / IMAGES_LOCK, Path(folder, IMAGES_LOCK))
        yield Platform(root, Path(folder))
