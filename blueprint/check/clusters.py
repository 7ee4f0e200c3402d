"""A tree may hold several clusters or environments: the same object then stands in more than one folder.

`graphs` divides such a tree, so that a rule never takes an object of one cluster for one of another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile

from blueprint.catalog.tables import table
from blueprint.check.applications import Deliveries
from blueprint.check.graph import Graph
from blueprint.finding import Ref
from blueprint.objects import Manifest

_Folder = tuple[str, ...]
_MOST_COPIES = 4
"""What is shared by all parts is given to each, unless that would multiply the work by more than this."""

_OFTEN_REPEATED = ("Namespace", "CustomResourceDefinition")
"""Kinds that folders of one cluster repeat, each for itself."""


def graphs(
    manifests: Sequence[Manifest],
    *,
    closed: Collection[str] = (),
    versions: Mapping[str, str] | None = None,
    deliveries: Deliveries | None = None,
) -> list[Graph]:
    """One graph for each cluster or environment of a tree; a single one where no object stands in two folders.

    Two folders that hold the same object belong to different clusters, unless Argo CD's Applications in `deliveries`
    bring both to one. What lies outside of all such folders is shared: it is in every graph,
    behind the object of the same identity that a cluster has of its own.
    """
    folders = [manifest.folder for manifest in manifests]
    splits = _splits(manifests, folders, deliveries)
    if not splits:
        return [Graph(manifests, closed=closed, versions=versions, deliveries=deliveries)]
    parts: dict[_Folder, list[Manifest]] = defaultdict(list)
    part_of = {folder: _part(_steps(folder), splits) for folder in set(folders)}
    for manifest, folder in zip(manifests, folders, strict=True):
        parts[part_of[folder]].append(manifest)
    above = {part[:length] for part in parts for length in range(len(part))}
    leaves = [part for part in parts if part not in above]
    shared = sum(len(parts[part]) for part in parts if part in above)
    if shared * len(leaves) > _MOST_COPIES * len(manifests):
        return [
            Graph(own, closed=closed, versions=versions, whole=False, deliveries=deliveries) for own in parts.values()
        ]
    return [Graph(_layered(leaf, parts), closed=closed, versions=versions, deliveries=deliveries) for leaf in leaves]


def divisions(manifests: Sequence[Manifest]) -> list[str]:
    """The folders that are clusters or environments of their own (see `graphs`), the innermost ones first."""
    folders = [manifest.folder for manifest in manifests]
    splits = _splits(manifests, folders, None)
    parts = {_part(_steps(folder), splits) for folder in set(folders)} if splits else set()
    return sorted(("/".join(part) for part in parts if part), key=lambda part: (-part.count("/"), part))


def _layered(leaf: _Folder, parts: Mapping[_Folder, list[Manifest]]) -> Iterator[Manifest]:
    """A part's own objects, then what it shares, the nearest first, without what it has itself."""
    seen: set[Ref] = set()
    for length in range(len(leaf), -1, -1):
        level = parts.get(leaf[:length], [])
        fresh = [manifest for manifest in level if manifest.ref not in seen or length == len(leaf)]
        seen.update(manifest.ref for manifest in level)
        yield from fresh


def _steps(folder: str) -> _Folder:
    return tuple(folder.split("/")) if folder else ()


def _splits(
    manifests: Sequence[Manifest], folders: Sequence[str], deliveries: Deliveries | None
) -> dict[_Folder, set[str]]:
    """Where the tree divides: a folder, and those of its subfolders that belong to different clusters."""
    shared = frozenset(table("generators")["shared_folders"])
    first: dict[Ref, str] = {}
    places: dict[Ref, set[str]] = defaultdict(set)
    for manifest, folder in zip(manifests, folders, strict=True):
        ref = manifest.ref
        if first.setdefault(ref, folder) != folder and ref.name and ref.kind not in _OFTEN_REPEATED:
            places[ref] |= {first[ref], folder}
    # Neighbours in order part at every fork of their paths: no need to compare each with each.
    forks = {pair for found in places.values() for pair in pairwise(sorted(found, key=_steps))}
    together = deliveries.together() if forks and deliveries else []
    splits: dict[_Folder, set[str]] = defaultdict(set)
    for pair in forks:
        if any(pair[0] in group and pair[1] in group for group in together):
            continue
        steps = _steps(pair[0]), _steps(pair[1])
        depth = sum(1 for _ in takewhile(lambda each: each[0] == each[1], zip(*steps, strict=False)))
        for path in steps:
            if len(path) > depth and path[depth] not in shared:
                splits[path[:depth]].add(path[depth])
    return splits


def _part(folder: _Folder, splits: Mapping[_Folder, set[str]]) -> _Folder:
    """The innermost part of the tree that a folder belongs to, () for what all share."""
    for depth in range(len(folder) - 1, -1, -1):
        if folder[depth] in splits.get(folder[:depth], ()):
            return folder[: depth + 1]
    return ()
