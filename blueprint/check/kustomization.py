"""What a kustomization says: which files it takes in, and which of them are no whole objects.

Source: sigs.k8s.io/kustomize/api@v0.21.1 types/kustomization.go (fields), konfig/general.go (names).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from blueprint.check.goyaml import Decoder, compose
from blueprint.check.scalars import Unreadable
from blueprint.check.shapes import items, mapping, maps, text
from blueprint.finding import Source
from blueprint.objects import EVERYTHING, Manifest

FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_REMOTE = ("://", "git@", "github.com", "?ref=", "gitlab.com", "bitbucket.org")
_FOLDERS = ("resources", "bases", "components")
_LISTS = (*_FOLDERS, "crds", "configurations", "generators", "transformers", "validators")
_GENERATORS = {"configMapGenerator": "ConfigMap", "secretGenerator": "Secret"}
_HARMLESS = {"apiVersion", "kind", "metadata", "resources", "bases", "crds"}
"""Fields that change nothing in the objects that are taken in."""


class Kustomization:
    """A folder with a kustomization: what it says, and what it names, by paths as the caller writes them."""

    def __init__(self, file: str, base: Path) -> None:
        self.file = file
        self.folder = posixpath.dirname(file)
        self.body = _load(base / file)
        self.component = self.body.get("kind") == "Component"
        # A controller of Flux has a kind of the same name, and files of that name hold it.
        self.valid = text(self.body.get("apiVersion", "kustomize.config.k8s.io")).startswith("kustomize.config.k8s.io")

        self.changes = bool(self.body.keys() - _HARMLESS)

    def folders(self) -> Iterator[str]:
        """Folders that it takes in."""
        for key in _FOLDERS:
            yield from (self._path(each) for each in items(self.body.get(key)) if isinstance(each, str))

    def remote(self) -> str:
        """Something that it takes from elsewhere, or that needs another program; "" for nothing."""
        if self.body.get("helmCharts") or self.body.get("helmChartInflationGenerator"):
            return "helmCharts"
        named = [text(each) for key in _LISTS for each in items(self.body.get(key))]
        named += [text(mapping(self.body.get("openapi")).get("path"))]
        named += [text(each.get("path")) for key in ("patches", "replacements") for each in maps(self.body.get(key))]
        return next((each for each in named if any(mark in each for mark in _REMOTE)), "")

    def parts(self) -> Iterator[str]:
        """Files that it takes apart from resources: patches, and what changes or adds objects."""
        yield self.file
        for key in _LISTS[3:]:
            yield from (self._path(each) for each in items(self.body.get(key)) if isinstance(each, str))
        for key in ("patches", "patchesJson6902", "replacements"):
            yield from (self._path(text(each.get("path"))) for each in maps(self.body.get(key)) if each.get("path"))
        for each in items(self.body.get("patchesStrategicMerge")):
            if isinstance(each, str) and "\n" not in each:
                yield self._path(each)
        for key in _GENERATORS:
            for each in maps(self.body.get(key)):
                yield from (self._path(text(file).rpartition("=")[2]) for file in items(each.get("files")))
                yield from (self._path(text(file)) for file in [*items(each.get("envs")), each.get("env", "")])
        for field in ("valuesFile", "path"):
            yield from (self._path(text(mapping(each).get(field))) for each in items(self.body.get("helmCharts")))
        yield self._path(text(mapping(self.body.get("openapi")).get("path")))

    def resources(self) -> Iterator[str]:
        """Files and folders of objects."""
        yield from (self._path(each) for key in _FOLDERS for each in items(self.body.get(key)) if isinstance(each, str))

    def generated(self) -> Iterator[Manifest]:
        """Objects that it makes, of which nothing but the kind is known until it is built."""
        for key, kind in _GENERATORS.items():
            for _ in maps(self.body.get(key)):
                yield Manifest({"apiVersion": "v1", "kind": kind}, Source(self.file, 1), EVERYTHING, self.folder)

    def _path(self, below: str) -> str:
        return posixpath.normpath(posixpath.join(self.folder, below)) if below else self.file


def complete(known: dict[str, Kustomization], base: Path) -> None:
    """Add the kustomizations outside of the tree that those inside name."""
    waiting = list(known.values())
    while waiting:
        for folder in waiting.pop().folders():
            file = next((f"{folder}/{name}" for name in FILES if (base / folder / name).is_file()), "")
            if file and folder not in known:
                known[folder] = Kustomization(file, base)
                waiting.append(known[folder])


def reached(root: Kustomization, known: Mapping[str, Kustomization]) -> set[str]:
    """Every file that a root takes in, through other kustomizations too."""
    found: set[str] = set()
    waiting = [root]
    while waiting:
        current = waiting.pop()
        if current.file in found:
            continue
        found.update(current.parts(), (name for name in current.resources() if name not in known))
        waiting += [known[name] for name in current.folders() if name in known]
    return found


def elsewhere(root: Kustomization, known: Mapping[str, Kustomization]) -> str:
    """What a root takes from outside of the tree, itself or through others; "" for nothing."""
    taken = reached(root, known)
    return next((each.remote() for each in known.values() if each.file in taken and each.remote()), "")


def _load(path: Path) -> dict[str, Any]:
    try:
        return mapping(parsed(path.read_text("utf-8"))) if path.is_file() else {}
    except (OSError, UnicodeDecodeError):
        return {}


def parsed(written: str) -> object:
    """The value of a YAML text, None where it has none."""
    try:
        node = compose(written)
        return Decoder().value(node) if node else None
    except Unreadable:
        return None
