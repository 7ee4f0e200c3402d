"""Signatures of parts of a tree: what a branch holds that some of the clusters follow, its files and its lock.

Beside the tree as a whole lie `render.<clusters>.sigstore.json` and its provenance. Where the part stands alone, they
have the names of the whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256

from blueprint.attest.filelist import SUFFIX, Row
from blueprint.tree.lock import NAME as LOCK
from blueprint.tree.lock import Lock, dump

KINDS = ("render", "provenance")
_LONGEST = 150


def bundle_of(kind: str, clusters: Collection[str] | None = None) -> str:
    """The file name of a bundle: of the whole tree, or of the part of some clusters."""
    return f"{kind}{SUFFIX}" if clusters is None else f"{kind}.{part_of(clusters)}{SUFFIX}"


def part_of(clusters: Collection[str]) -> str:
    """The name of a part: its clusters, or their digest where they are many."""
    name = "+".join(sorted(clusters))
    return name if len(name) <= _LONGEST else sha256(name.encode()).hexdigest()


def rows_of(rows: Iterable[Row], lock: Lock, clusters: Collection[str]) -> tuple[Row, ...]:
    """The list of a part: the files of its clusters, and the lock that says no more than that."""
    part = Lock({name: lock.clusters[name] for name in clusters})
    owned, data = part.files(), dump(part)
    found = [row for row in rows if row.path in owned]
    found += [row._replace(sha256=sha256(data).hexdigest(), size=len(data)) for row in rows if row.path == LOCK]
    return tuple(sorted(found, key=lambda row: row.path.encode()))


def alone(signatures: Mapping[str, bytes], clusters: Collection[str]) -> dict[str, bytes]:
    """The bundles of a part under the names that they have where it stands alone; nothing where one is missing."""
    found = {bundle_of(kind): signatures.get(bundle_of(kind, clusters)) for kind in KINDS}
    held = {name: data for name, data in found.items() if data is not None}
    return held if len(held) == len(KINDS) else {}
