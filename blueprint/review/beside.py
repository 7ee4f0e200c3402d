"""Files that changed and hold no object that shows it: what programs are told, and charts that could not be built."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from blueprint.catalog.tables import table
from blueprint.check.helm import CHART
from blueprint.check.kustomization import FILES as KUSTOMIZATIONS
from blueprint.objects import Manifest
from blueprint.review.model import Meaning, Risk
from blueprint.review.sides import Side, Sides


def beside(opened: Sides) -> Iterator[Meaning]:
    """What is said of such files, of those below one chart once; and of specs that the tree does not show."""
    yield from _stale(opened)
    unseen = sorted({*_unbuilt(opened.base), *_unbuilt(opened.head)}, key=len, reverse=True)
    plain = {*_read(opened.base), *_read(opened.head)} if unseen else set()
    below: dict[str, list[str]] = {}
    for path in opened.changed:
        root = next((folder for folder in unseen if _below(path, folder)), None)
        if root is not None and path not in plain:
            below.setdefault(root, []).append(path)
        yield from _told(path, *(_documents(side, path) for side in (opened.base, opened.head)))
    for root, paths in below.items():
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        words = (
            f"{paths[0]}{more} changed: {root or 'the chart'} could not be built here, and what it makes is not judged"
        )
        yield Meaning(Risk.UNKNOWN, words, "", "", "file")


def _stale(opened: Sides) -> Iterator[Meaning]:
    """Specs that changed, where nobody has rendered them: the trees are compared, and show nothing of it.

    A tree of which one cluster was made from these specs is as it should be: the others may be an older release.
    """
    base, head = opened.base, opened.head
    if head.specs and head.specs != base.specs and head.specs not in head.made:
        words = "the specs changed, and the tree was not rendered from them: run `blueprint render`, then review"
        yield Meaning(Risk.UNKNOWN, words, "", "", "file")


def _read(side: Side) -> set[str]:
    """Files of a side that were read as the objects that they hold."""
    if side.built is None:
        return set()
    return {manifest.source.file for manifest in side.built.manifests}.difference(side.built.templates)


def _told(path: str, old: list[Manifest], new: list[Manifest]) -> Iterator[Meaning]:
    """What a program is told, by the kinds of the documents that differ."""
    said = set()
    for document in chain(old, new):
        group = document.api_version.rpartition("/")[0]
        row = _rows().get(group)
        if row is None or (group, document.kind) in said:
            continue
        said.add((group, document.kind))
        before, after = ([m.body for m in side if m.kind == document.kind] for side in (old, new))
        if before != after:
            words = f"{path}: {row['say']} ({document.kind}, a file that no API server takes)"
            yield Meaning(Risk[row["class"].upper()], words, "", "", "file")


def _rows() -> Mapping[str, dict[str, Any]]:
    return {row["group"]: row for row in table("review_risks")["beside"]}


def _documents(side: Side, path: str) -> list[Manifest]:
    return side.of(iter([path])).aside if path in side.files else []


def _unbuilt(side: Side) -> Iterator[str]:
    """Folders of charts and kustomizations that were to be built, and of which no object came."""
    if side.built is None:
        return
    tools = {posixpath.basename(f.source.file) for f in side.built.findings if f.code == "YML303" and f.source}
    built = {manifest.root for manifest in side.built.manifests}
    for path in side.files:
        folder, name = posixpath.split(path)
        kind = (CHART,) if name == CHART else KUSTOMIZATIONS if name in KUSTOMIZATIONS else ()
        if tools.intersection(kind) and folder not in built and (folder or ".") not in built:
            yield folder


def _below(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")
