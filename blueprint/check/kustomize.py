"""Kustomize roots: built where kustomize or kubectl is installed, each object with the file it comes from.

A root is a folder with a kustomization that no other one takes in. Nothing is fetched: a root that takes from elsewhere
is left alone. Sources: sigs.k8s.io/kustomize/api@v0.21.1 types/kustomization.go (fields), konfig/general.go (names).
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from blueprint.check import programs
from blueprint.check.documents import documents, first_content
from blueprint.check.goyaml import Decoder, compose
from blueprint.check.parse import Reading, read_bytes
from blueprint.check.programs import Built
from blueprint.check.scalars import Unreadable
from blueprint.check.shapes import items, mapping, maps, text
from blueprint.finding import Confidence, Finding, Ref, Severity, Source
from blueprint.objects import EVERYTHING, Manifest

FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_ORIGIN = "config.kubernetes.io/origin"
_REMOTE = ("://", "git@", "github.com", "?ref=", "gitlab.com", "bitbucket.org")
_LISTS = ("resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators")
_FOLDERS = ("resources", "bases", "components")
_KIND = re.compile(r"^kind:[ \t]*[\"']?(\w+)", re.MULTILINE)
_NAME = re.compile(r"^(?:metadata:[ \t]*\{.*?\b|[ \t]+)name:[ \t]*[\"']?([\w.-]+)", re.MULTILINE)
_Heads = Callable[[Path], list[tuple[int, str, str]]]
_GENERATORS = {"configMapGenerator": "ConfigMap", "secretGenerator": "Secret"}


class _Root:
    """A folder with a kustomization: what it says, and what it names, by paths as the caller writes them."""

    def __init__(self, file: str, base: Path) -> None:
        self.file = file
        self.folder = posixpath.dirname(file)
        self.body = _load(base / file)
        self.component = self.body.get("kind") == "Component"
        # A controller of Flux has a kind of the same name, and files of that name hold it.
        self.valid = text(self.body.get("apiVersion", "kustomize.config.k8s.io")).startswith("kustomize.config.k8s.io")

    def folders(self) -> Iterator[str]:
        """Folders that it takes in."""
        for key in _FOLDERS:
            yield from (self._path(each) for each in items(self.body.get(key)) if isinstance(each, str))

    def remote(self) -> str:
        """Something that it takes from elsewhere, or that needs another program; "" for nothing."""
        if self.body.get("helmCharts") or self.body.get("helmChartInflationGenerator"):
            return "helmCharts"
        listed = (text(each) for key in _LISTS for each in items(self.body.get(key)))
        return next((each for each in listed if any(mark in each for mark in _REMOTE)), "")

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


def built(files: Sequence[str], base: Path) -> Built:
    """Build the roots among the files; of those that cannot be built, leave out what are no whole objects."""
    found = [_Root(file, base) for file in files if posixpath.basename(file) in FILES]
    known = {root.folder: root for root in found if root.valid}
    if not known:
        return Built()
    own = sorted(known)
    _complete(known, base)
    inner = {folder for root in known.values() for folder in root.folders()}
    tops = [known[folder] for folder in own if folder not in inner and not known[folder].component]
    made, listed = Built(), set(files)
    program = programs.which("kustomize", "kubectl")
    left: list[_Root] = []
    reached: set[str] = set()
    build = partial(_build, base=base, program=program, known=known, heads=cache(_heads))
    for root, (result, reason) in zip(tops, programs.each(build, [root.folder for root in tops]), strict=True):
        if result is not None:
            made.manifests += result
            reached |= _reached(root, known)
            continue
        left.append(root)
        if reason:
            severity, confidence = Severity.ERROR, Confidence.LIKELY
            message = f"kustomize cannot build this folder: {reason}"
            made.findings.append(Finding("YML302", message, Source(root.file, 1), severity, confidence))
    for root in left:
        if elsewhere := _elsewhere(root, known):
            message = f"not built, and read as plain files: it takes {elsewhere} from elsewhere"
            made.findings.append(_note(message, Source(root.file, 1)))
    if left and not program:
        many = f"{len(left)} roots are" if len(left) > 1 else "1 root is"
        message = f"kustomize is not installed: {many} read as plain files, without patches"
        made.findings.append(_note(message, Source(left[0].file)))
    apart = [known[folder] for folder in own if known[folder].file not in reached]
    made.files = (reached | {name for root in apart for name in root.parts()}) & listed
    made.manifests += (manifest for root in apart for manifest in root.generated())
    return made


def _complete(known: dict[str, _Root], base: Path) -> None:
    """Add the kustomizations outside of the tree that those inside name."""
    waiting = list(known.values())
    while waiting:
        for folder in waiting.pop().folders():
            file = next((f"{folder}/{name}" for name in FILES if (base / folder / name).is_file()), "")
            if file and folder not in known:
                known[folder] = _Root(file, base)
                waiting.append(known[folder])


def _note(message: str, source: Source) -> Finding:
    return Finding("YML303", message, source, Severity.NOTE, Confidence.STYLE)


def _reached(root: _Root, known: Mapping[str, _Root]) -> set[str]:
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


def _elsewhere(root: _Root, known: Mapping[str, _Root]) -> str:
    """What a root takes from outside of the tree, itself or through others; "" for nothing."""
    reached = _reached(root, known)
    return next((each.remote() for each in known.values() if each.file in reached and each.remote()), "")


def _build(
    folder: str, *, base: Path, program: str, known: Mapping[str, _Root], heads: _Heads
) -> tuple[list[Manifest] | None, str]:
    """The objects of a root; or None, with why it cannot be built where that is a mistake."""
    if not program or _elsewhere(known[folder], known):
        return None, ""
    here = (base / folder).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary).resolve()
        # Around the root, so that every object tells where it comes from and the root stays as it is.
        around = {"resources": [os.path.relpath(here, work)], "buildMetadata": ["originAnnotations"]}
        (work / FILES[0]).write_text(json.dumps(around), "utf-8")
        verb = "build" if Path(program).name.startswith("kustomize") else "kustomize"
        try:
            data = programs.output([program, verb, "."], work)
        except programs.Failed as failed:
            return None, str(failed)
        reading = Reading()
        read_bytes(data, known[folder].file, reading)
        return [_placed(manifest, work, here, known[folder], base, heads) for manifest in reading.manifests], ""


def _placed(manifest: Manifest, work: Path, here: Path, root: _Root, base: Path, heads: _Heads) -> Manifest:
    """A built object with the place in the file that it comes from, and without the mark that says so."""
    body = dict(manifest.body)
    metadata = dict(mapping(body.get("metadata")))
    annotations = dict(mapping(metadata.get("annotations")))
    origin = mapping(_parsed(text(annotations.pop(_ORIGIN, ""))))
    metadata.pop("annotations", None)
    body["metadata"] = {**metadata, "annotations": annotations} if annotations else metadata
    path = text(origin.get("path")) or text(origin.get("configuredIn"))
    source = Source(root.file, 1)
    if path and not origin.get("repo"):
        inside = os.path.relpath((work / path).resolve(), here)
        name = posixpath.normpath(posixpath.join(root.folder, inside.replace(os.sep, "/")))
        source = Source(name, _line(heads(base / name), manifest.ref) if origin.get("path") else 1)
    return replace(manifest, body=body, source=source, root=root.folder)


def _line(heads: list[tuple[int, str, str]], ref: Ref) -> int:
    """The line on which an object starts, whatever was put before or behind its name; 1 where it is not found."""
    found = 1
    for line, kind, name in heads:
        if kind == ref.kind and name in ref.name:
            if name == ref.name:
                return line
            found = line if name or found == 1 else found
    return found


def _heads(path: Path) -> list[tuple[int, str, str]]:
    """Line, kind and name of the documents of a file, by a look at their lines."""
    try:
        written = path.read_text("utf-8", "replace")
    except OSError:
        return []
    heads = []
    for start, chunk, _ in documents(written):
        kind, name = _KIND.search(chunk), _NAME.search(chunk)
        heads.append((start + 1 + max(first_content(chunk)[0], 0), kind[1] if kind else "", name[1] if name else ""))
    return heads


def _load(path: Path) -> dict[str, Any]:
    try:
        return mapping(_parsed(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError):
        return {}


def _parsed(written: str) -> object:
    try:
        node = compose(written)
        return Decoder().value(node) if node else None
    except Unreadable:
        return None
