"""Objects of both sides, paired by identity; what is left over is paired by content: renames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from blueprint.catalog.crds import Json
from blueprint.catalog.schemas import SchemaPack
from blueprint.check.clusters import divisions
from blueprint.finding import Ref
from blueprint.objects import Manifest
from blueprint.review.diff import Lists, diff, same
from blueprint.review.form import form, lists
from blueprint.review.model import Pair
from blueprint.review.sides import Sides

_ALIKE = 3
"""A renamed object may differ in so many more places and still be taken for the same."""


@dataclass(frozen=True, slots=True)
class Places:
    """Which cluster an object belongs to: the folder that a lock, or the tree itself, says is one."""

    folders: frozenset[str]
    parts: tuple[str, ...]

    def cluster(self, manifest: Manifest) -> str:
        """The name of the cluster, "" where there is only one."""
        file = manifest.source.file
        for folder in self.folders:
            if file.startswith(f"{folder}/"):
                return folder.rpartition("/")[2]
        for part in self.parts:
            if file.startswith(f"{part}/"):
                return part
        return ""


def places(sides: Sides, *known: Sequence[Manifest]) -> Places:
    """The clusters of both sides. Without a lock, folders that hold the same objects are clusters of their own."""
    folders = sides.base.clusters | sides.head.clusters
    parts = () if folders else tuple(sorted({part for side in known for part in divisions(side)}))
    return Places(folders, parts)


def paired(old: Sequence[Manifest], new: Sequence[Manifest], where: Places) -> list[Pair]:
    """Every object of both sides once, in the order of the head, then what is gone. Equal objects are left out."""
    before, after = _by_identity(old, where), _by_identity(new, where)
    pairs: list[Pair] = []
    for key in dict.fromkeys((*after, *before)):
        pairs += _matched(key[0], before.get(key, []), after.get(key, []))
    return [pair for pair in pairs if not _equal(pair)]


def _by_identity(manifests: Iterable[Manifest], where: Places) -> dict[tuple[str, Ref], list[Manifest]]:
    found: dict[tuple[str, Ref], list[Manifest]] = defaultdict(list)
    for manifest in manifests:
        ref = manifest.ref
        if not ref.name and isinstance(generated := manifest.body.get("metadata", {}), dict):
            ref = Ref(ref.group, ref.kind, ref.namespace, str(generated.get("generateName", "")))
        found[where.cluster(manifest), ref].append(manifest)
    return found


def _matched(cluster: str, old: list[Manifest], new: list[Manifest]) -> Iterator[Pair]:
    """Of several with one identity, those in the same file belong together, then the others in order."""
    if len(old) > 1 or len(new) > 1:
        files = {manifest.source.file: manifest for manifest in reversed(old)}
        for manifest in list(new):
            if (partner := files.pop(manifest.source.file, None)) is not None:
                old, new = [m for m in old if m is not partner], [m for m in new if m is not manifest]
                yield Pair(cluster, partner, manifest)
    for index in range(max(len(old), len(new))):
        yield Pair(cluster, old[index] if index < len(old) else None, new[index] if index < len(new) else None)


def _equal(pair: Pair) -> bool:
    if pair.old is None or pair.new is None or pair.old.source.file != pair.new.source.file:
        return False
    return pair.old is pair.new or same(pair.old.body, pair.new.body)


def renames(pairs: list[Pair], pack: SchemaPack) -> list[Pair]:
    """The same pairs, in which an object that goes and one of its kind that comes with the same content are one.

    They must be the only ones that are so alike; a move to another API group under the same name counts, too.
    """
    gone, come = [p for p in pairs if p.new is None], [p for p in pairs if p.old is None]
    if not gone or not come:
        return pairs
    by_kind: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in come:
        by_kind[pair.cluster, pair.ref.kind].append(pair)
    taken: dict[int, Pair] = {}
    for pair in gone:
        alike = [
            each for each in by_kind[pair.cluster, pair.ref.kind] if id(each) not in taken and _alike(pair, each, pack)
        ]
        if len(alike) == 1:
            taken[id(alike[0])] = pair
    lost = {id(pair) for pair in taken.values()}
    merged = [replace(p, old=taken[id(p)].old, renamed=True) if id(p) in taken else p for p in pairs]
    return [pair for pair in merged if id(pair) not in lost]


def _alike(gone: Pair, come: Pair, pack: SchemaPack) -> bool:
    old, new = gone.there, come.there
    if old.ref.group != new.ref.group:
        return old.ref.name == new.ref.name and old.ref.namespace == new.ref.namespace
    kind = pack.kind(new.api_version, new.kind)
    named = _called(form(old, kind), old.ref, new.ref)
    found = diff(named, form(new, kind), lists(kind, new, pack) if kind else Lists({}))
    small = len(str(named.get("spec", named.get("data", "")))) < 40  # too little to know anything by
    return not found.edits if small else len(found.edits) <= _ALIKE


def called(old: Manifest, new: Manifest) -> Manifest:
    """The old object under the new name and in the new namespace: what differs then was changed together with them."""
    return replace(old, body=_called(old.body, old.ref, new.ref))


def _called(value: Json, old: Ref, new: Ref) -> Json:
    """The value with the new name, and namespace, in place of the old one."""
    if isinstance(value, dict):
        return {_called(key, old, new): _called(child, old, new) for key, child in value.items()}
    if isinstance(value, list):
        return [_called(child, old, new) for child in value]
    if value == old.name:
        return new.name
    return new.namespace if value == old.namespace and value else value
