"""A rendering as one thing that is known by a digest: what `commit` delivers and `promote` hands on."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from blueprint.attest.parts import alone
from blueprint.errors import UsageError
from blueprint.tree import Lock, Made, Part, verify
from blueprint.tree.lock import NAME, digest, dump, parse
from blueprint.tree.scan import SIGNATURES

REFERENCES = "refs/blueprint/releases/"
"""Where a remote keeps releases: outside of branches and tags, so that no clone fetches them unasked."""
SIGNED = "refs/blueprint/signatures/"
"""Where it keeps the signatures of releases: a release has one content, and can be signed again."""


@dataclass(frozen=True, slots=True)
class Release:
    """Rendered files by path below the root of the tree, and their lock. All clusters were made from the same input.

    `signatures` are files of `.attestations/`, and `signed` is the lock of the whole that they are about, of which this
    may be a part.
    """

    files: Mapping[str, bytes]
    lock: Lock
    signatures: Mapping[str, bytes] = field(default_factory=dict)
    signed: Lock = field(default_factory=Lock)

    @property
    def made(self) -> Made:
        """What made it."""
        return next(iter(self.lock.clusters.values())).made

    @property
    def name(self) -> str:
        """64 hex digits: the digest of everything that decides the files. Two renderings of one name are equal."""
        return name_of(self.made)

    def of(self, clusters: Collection[str]) -> Release:
        """The part of some clusters."""
        if self.lock.clusters.keys() <= set(clusters):
            return self
        parts = {name: part for name, part in self.lock.clusters.items() if name in clusters}
        files = {path: self.files[path] for part in parts.values() for path in part.files}
        return Release(files, Lock(parts), self.signatures, self.signed)

    def proofs(self, lock: Lock) -> dict[str, bytes]:
        """The signatures that hold for a tree with this lock, as they lie in it: those of the whole, or of a part.

        Nothing where the tree is neither, or nobody signed it, and nothing for clusters of several releases: those are
        on their way, and what lies beside them is about another tree.
        """
        if len({name_of(part.made) for part in lock.clusters.values()}) > 1:
            return {}
        if lock.clusters == self.signed.clusters:
            return dict(self.signatures)
        if any(self.signed.clusters.get(name) != part for name, part in lock.clusters.items()):
            return {}
        names = {path.removeprefix(f"{SIGNATURES}/"): data for path, data in self.signatures.items()}
        return {f"{SIGNATURES}/{name}": data for name, data in alone(names, lock.clusters).items()}

    def contents(self) -> dict[str, bytes]:
        """All its files, the lock among them."""
        return {**self.files, NAME: dump(self.lock)}  # one name, one content: signatures can come later


def merged(parts: Iterable[Release]) -> Release:
    """Parts of one release, put together."""
    files: dict[str, bytes] = {}
    clusters: dict[str, Part] = {}
    signatures: Mapping[str, bytes] = {}
    signed = Lock()
    for part in parts:
        files |= part.files
        clusters |= part.lock.clusters
        signatures, signed = (part.signatures, part.signed) if part.signatures else (signatures, signed)
    return Release(files, Lock(clusters), signatures, signed)


def name_of(made: Made) -> str:
    """The name of the release that a part of a lock belongs to."""
    fields = [made.blueprint, made.inputs, made.schemas, made.templates]
    return sha256(json.dumps(fields).encode()).hexdigest()


def read_tree(root: Path, clusters: Collection[str] | None = None) -> Release:
    """The release in a rendered tree on the disk: all clusters, or some. What the lock does not own is left out.

    Raises UsageError where the tree is not as its lock says, or where clusters were made from different input.
    """
    if clusters is None and (faults := [finding for finding in verify(root) if finding.fails]):
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise UsageError(f"the tree is not as it was rendered: {faults[0].message}{more}", where=str(root))
    path = root / NAME
    if not path.is_file():
        raise UsageError(f"no {NAME} here: this is no rendered tree", where=str(root), hint="blueprint render")
    lock, findings = parse(path.read_bytes(), str(path))
    if findings:
        raise UsageError(findings[0].message, where=str(path))
    release = _read(root, lock if clusters is None else _some(lock, clusters, root), lock)
    if len({name_of(part.made) for part in release.lock.clusters.values()}) > 1:
        raise UsageError("its clusters were rendered from different specs", where=str(root), hint="render all of them")
    return release


def _some(lock: Lock, clusters: Collection[str], root: Path) -> Lock:
    if missing := sorted(set(clusters) - set(lock.clusters)):
        raise UsageError(f"nothing is rendered for {', '.join(missing)}", where=str(root))
    return Lock({name: lock.clusters[name] for name in clusters})


def _read(root: Path, lock: Lock, whole: Lock) -> Release:
    if not lock.clusters:
        raise UsageError("the tree holds no cluster", where=str(root))
    files: dict[str, bytes] = {}
    for part in lock.clusters.values():
        for path, expected in part.files.items():
            place = root / path
            data = place.read_bytes() if place.is_file() and not place.is_symlink() else b""
            if digest(data) != expected:
                raise UsageError(f"{path} is not as it was rendered", where=str(root))
            files[path] = data
    signed = root / SIGNATURES
    found = sorted(signed.rglob("*")) if signed.is_dir() and not signed.is_symlink() else []
    proofs = [place for place in found if place.is_file() and not place.is_symlink()]
    return Release(files, lock, {place.relative_to(root).as_posix(): place.read_bytes() for place in proofs}, whole)


def part_at(data: bytes, cluster: str) -> Part | None:
    """The part of a cluster in the bytes of a lock; None without one, or where the lock is of no use."""
    lock, findings = parse(data) if data else (Lock(), [])
    return None if findings else lock.clusters.get(cluster)
