"""The ledger: what was verified is kept, so that a log that changes its story, or an older tree, shows.

A ledger is a folder, best in a repository of its own::

    ledger.json                     the highest sequence of each set of clusters, and the digest that the tree had
    bundles/<sha256>.sigstore.json  every bundle that was accepted
    checkpoints/<log>/<size>.txt    every checkpoint that came with them, as the log signed it

A bundle's inclusion proof ties its entry to one checkpoint. Two checkpoints of one size with different roots are a fork
at once. Between sizes the entries that we hold are the witnesses: each proof that reaches into the common part of two
trees is recomputed. That shows most forks and not all, for two proofs may have nothing in common: only the log can
prove that it did nothing but grow. Its proofs, where it was asked (`growth`, or whoever may reach it), are kept as
`consistency/<log>/<old>-<new>.json`, a list of hexadecimal hashes, and held to both roots.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import orjson

from blueprint.attest import statement
from blueprint.attest.bundle import Proof
from blueprint.attest.filelist import SUFFIX
from blueprint.attest.merkle import is_beginning, node, root_from
from blueprint.attest.order import ANY, Scope, Seen, meet, scope
from blueprint.errors import UsageError
from blueprint.finding import Finding, Source

_FILE: Final = "ledger.json"
_SCHEMA: Final = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a log as a bundle proves it: leaf and path in hexadecimal."""

    log: str
    index: int
    size: int
    root: str
    leaf: str
    path: tuple[str, ...]
    bundle: str
    """SHA-256 of the bundle."""
    shard: str = ""
    """The id of the tree that a log of the first generation names in its checkpoint; "" for one of the second."""


@dataclass(slots=True)
class Ledger:
    """What was seen. `highest` is clusters → (sequence, digest); `entries` are those of the bundles, sorted."""

    root: Path
    highest: dict[Scope, tuple[int, str]] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    _taken: list[tuple[bytes, Proof]] = field(default_factory=list)
    _proofs: dict[tuple[str, int, int], list[bytes]] = field(default_factory=dict)

    @classmethod
    def open(cls, root: Path) -> Ledger:
        """Read a ledger; a folder that does not exist is an empty one. Raises UsageError for one that is damaged."""
        ledger = cls(root)
        trees: list[tuple[str, Scope, int]] = []
        with _read(root):
            bundles = sorted(root.glob(f"bundles/*{SUFFIX}"))
            for bundle in bundles:
                data, name = bundle.read_bytes(), bundle.name.removesuffix(SUFFIX)
                if sha256(data).hexdigest() != name:
                    raise ValueError(f"bundles/{bundle.name} is not the bundle that was kept")
                ledger.entries += _entries(data, name)
                trees += [(bundle.name, *tree) for tree in _trees(data)]
            # After the bundles, which `save` writes after it: what others keep meanwhile contradicts nothing.
            ledger.highest = dict(_highest(root))
            if bundles and not ledger.highest:
                raise ValueError(f"bundles are kept, and {_FILE} is gone")
            for name, clusters, sequence in trees:
                if not any(sequence <= number for seen, (number, _) in ledger.highest.items() if meet(seen, clusters)):
                    raise ValueError(f"bundles/{name} has the sequence {sequence}, and {_FILE} knows older trees only")
        ledger.entries.sort(key=lambda entry: (entry.log, entry.size, entry.index))
        return ledger

    def take(self, data: bytes, proof: Proof) -> None:
        """Add a bundle that was verified; nothing is written before `save`."""
        if not any(entry.bundle == proof.sha256 for entry in self.entries):
            self.entries += _entries(data, proof.sha256)
            self.entries.sort(key=lambda entry: (entry.log, entry.size, entry.index))
        self._taken.append((data, proof))

    def gaps(self) -> list[tuple[Entry, Entry]]:
        """Neighbouring sizes of each log between which nothing proves yet that it only grew."""
        found = []
        for log in sorted({entry.log for entry in self.entries}):
            sizes = {entry.size: entry for entry in self.entries if entry.log == log}
            for old, new in pairwise(sorted(sizes)):
                kept = (self.root / _proof_of(log, old, new)).exists() or (log, old, new) in self._proofs
                if not kept:
                    found.append((sizes[old], sizes[new]))
        return found

    def learn(self, old: Entry, new: Entry, path: list[bytes]) -> None:
        """Add what a log answered; it is judged by `findings`, and nothing is written before `save`."""
        self._proofs[old.log, old.size, new.size] = path

    def save(self, clusters: Collection[str], sequence: int, digest: str) -> None:
        """Keep what was taken, and the sequence of the tree of these clusters that it was about.

        Others may have saved since this ledger was opened: what they kept stays, and no sequence ever falls. Raises
        UsageError for a ledger that was damaged meanwhile, and writes nothing into it.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with _alone(self.root):
            with _read(self.root):
                kept = _highest(self.root)
            for name, row in kept.items():
                self.highest[name] = max(row, self.highest.get(name, row), key=lambda each: each[0])
            if sequence > self.highest.get(scope(clusters), (0, ""))[0]:
                self.highest[scope(clusters)] = (sequence, digest)
            if self.highest != kept:
                # Before the bundles: without them a replay still shows, and they come again with the next run.
                _put(self.root / _FILE, _dump(self.highest))
            self._keep()

    def _keep(self) -> None:
        for data, proof in self._taken:
            _put(self.root / "bundles" / f"{proof.sha256}{SUFFIX}", data)
            if proof.logged and proof.logged.checkpoint:
                place = self.root / "checkpoints" / proof.logged.log / f"{proof.logged.size}.txt"
                _put(place, proof.logged.checkpoint.encode())
        for (log, old, new), path in self._proofs.items():
            _put(self.root / _proof_of(log, old, new), orjson.dumps([step.hex() for step in path]))

    def findings(self) -> list[Finding]:
        """SIG301 and SIG302: every way in which the logs contradict what is kept."""
        return [
            *self._included(),
            *self._forks(),
            *self._kept(),
            *self._contradictions(),
            *self._inconsistent(),
        ]

    def _included(self) -> Iterator[Finding]:
        for entry in self.entries:
            path = [bytes.fromhex(step) for step in entry.path]
            found = root_from(bytes.fromhex(entry.leaf), entry.index, entry.size, path)
            if found is None or found.hex() != entry.root:
                yield self._finding("SIG301", entry, f"entry {entry.index} is not in the tree of size {entry.size}")

    def _forks(self) -> Iterator[Finding]:
        """Two roots for one size, or two entries at one index."""
        roots: dict[tuple[str, int], Entry] = {}
        leaves: dict[tuple[str, int], Entry] = {}
        for entry in self.entries:
            first = roots.setdefault((entry.log, entry.size), entry)
            if first.root != entry.root:
                message = f"the log had two trees of size {entry.size}: {first.root[:16]}… and {entry.root[:16]}…"
                yield self._finding("SIG302", entry, message)
            other = leaves.setdefault((entry.log, entry.index), entry)
            if other.leaf != entry.leaf:
                yield self._finding("SIG302", entry, f"the log had two entries with the index {entry.index}")

    def _kept(self) -> Iterator[Finding]:
        """Checkpoints as the log signed them: they outlast a bundle that somebody took away."""
        roots = {(entry.log, entry.size): entry for entry in self.entries}
        for file in sorted(self.root.glob("checkpoints/*/*.txt")):
            try:
                size = int(file.stem)
                root = _checkpoint_root(self.root, file.parent.name, size)
            except (ValueError, IndexError, OSError):
                yield Finding("SIG301", "a checkpoint that was kept cannot be read", Source(str(file)))
                continue
            entry = roots.get((file.parent.name, size))
            if entry is not None and entry.root != root.hex():
                yield self._finding("SIG302", entry, f"the log had another tree of size {size}, and signed it")

    def _contradictions(self) -> Iterator[Finding]:
        """Complete subtrees that two proofs both speak of: a hash that differs is a different history."""
        known: dict[tuple[str, int, int], tuple[bytes, Entry]] = {}
        for entry in self.entries:
            for start, width, value in _subtrees(entry):
                first, by = known.setdefault((entry.log, start, width), (value, entry))
                if first != value:
                    last = start + width - 1
                    message = f"entries {start} to {last} are not those that an earlier tree (size {by.size}) had"
                    yield self._finding("SIG302", entry, message)
                    break

    def _inconsistent(self) -> Iterator[Finding]:
        """Consistency proofs that were fetched, against the roots of what is kept."""
        roots = {(entry.log, entry.size): bytes.fromhex(entry.root) for entry in self.entries}
        for (log, old_size, new_size), path in self._proofs.items():
            if not is_beginning(old_size, roots[log, old_size], new_size, roots[log, new_size], path):
                yield _unproven(self.root / _proof_of(log, old_size, new_size))
        for file in sorted(self.root.glob("consistency/*/*.json")):
            old, _, new = file.stem.partition("-")
            try:
                path = [bytes.fromhex(step) for step in json.loads(file.read_bytes())]
                first, second = (_checkpoint_root(self.root, file.parent.name, int(size)) for size in (old, new))
                holds = is_beginning(int(old), first, int(new), second, path)
            except (ValueError, TypeError, OSError):
                holds = False
            if not holds:
                yield _unproven(file)

    def _finding(self, code: str, entry: Entry, message: str) -> Finding:
        return Finding(code, message, Source(str(self.root / "bundles" / f"{entry.bundle}{SUFFIX}")))


def _unproven(file: Path) -> Finding:
    """SIG302 about a consistency proof, which is called after the two sizes that it ties."""
    old, _, new = file.stem.partition("-")
    message = f"the log does not prove that its tree of size {new} goes on from that of size {old}"
    return Finding("SIG302", message, Source(str(file)))


@contextmanager
def _read(root: Path) -> Iterator[None]:
    """Turn what a damaged ledger raises into one error with words."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OSError) as error:
        raise UsageError(f"the ledger is damaged: {error}", where=str(root), hint="restore it from Git") from None


def _highest(root: Path) -> Seen:
    """The highest sequence of each set of clusters with its digest, as the folder has it now."""
    if not (file := root / _FILE).exists():
        return {}
    document = orjson.loads(file.read_bytes())
    if "schema" not in document:
        # Rows of one cluster held the digest of the whole tree, and "all" any clusters: their numbers count, no more.
        rows = document["highest"].items()
        return {(ANY if name == "all" else str(name),): (_number(row[0]), "") for name, row in rows}
    if document["schema"] != _SCHEMA:
        raise ValueError(f"schema {document['schema']!r}; this blueprint knows {_SCHEMA}")
    return {scope(row["clusters"]): (_number(row["sequence"]), str(row["digest"])) for row in document["highest"]}


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no sequence")
    return value


def _dump(seen: Seen) -> bytes:
    rows = [{"clusters": list(name), "sequence": row[0], "digest": row[1]} for name, row in sorted(seen.items())]
    document = {"schema": _SCHEMA, "highest": rows}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Hold the folder: Argo CD runs a verifier for each Application at once."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _subtrees(entry: Entry) -> Iterator[tuple[int, int, bytes]]:
    """(first leaf, number of leaves, hash) of every complete subtree that an inclusion proof names or computes."""
    value, index, last = bytes.fromhex(entry.leaf), entry.index, entry.size - 1
    level, complete = 0, True
    yield entry.index, 1, value
    for text in entry.path:
        step = bytes.fromhex(text)
        if index & 1 or index == last:
            while not index & 1 and index:
                # Alone at the right end: the subtree on this level is not full, and neither is any above it.
                index, last, level, complete = index >> 1, last >> 1, level + 1, False
            yield (index - 1) << level, 1 << level, step
            value = node(step, value)
        else:
            whole = (index + 2) << level <= entry.size
            if whole:
                yield (index + 1) << level, 1 << level, step
            value, complete = node(value, step), complete and whole
        index, last, level = index >> 1, last >> 1, level + 1
        if complete:
            yield index << level, 1 << level, value


def _entries(data: bytes, name: str) -> list[Entry]:
    """The log entries of a bundle; none for one that is signed by a key."""
    found = []
    for row in json.loads(data)["verificationMaterial"].get("tlogEntries") or ():
        proof: dict[str, Any] = row["inclusionProof"]
        found.append(
            Entry(
                log=_hex(row["logId"]["keyId"]),
                index=int(proof.get("logIndex", 0)),
                size=int(proof["treeSize"]),
                root=_hex(proof["rootHash"]),
                leaf=_leaf(base64.b64decode(row["canonicalizedBody"])),
                path=tuple(_hex(step) for step in proof.get("hashes", ())),
                bundle=name,
                shard=_shard(proof),
            )
        )
    return found


def _trees(data: bytes) -> Iterator[tuple[Scope, int]]:
    """Clusters and sequence of the tree whose list a kept bundle is; nothing for any other."""
    match orjson.loads(base64.b64decode(json.loads(data)["dsseEnvelope"]["payload"])):
        case {"predicateType": statement.RENDER, "predicate": {"clusters": dict(clusters), "sequence": int(sequence)}}:
            yield scope(clusters), sequence


def _shard(proof: dict[str, Any]) -> str:
    """Logs of the first generation call themselves `host - <id of the tree>` (sigstore/rekor pkg/util)."""
    origin = str((proof.get("checkpoint") or {}).get("envelope", "")).partition("\n")[0]
    tree = origin.rpartition(" - ")[2]
    return tree if tree.isdigit() and " - " in origin else ""


def _proof_of(log: str, old: int, new: int) -> str:
    return f"consistency/{log}/{old}-{new}.json"


def _leaf(body: bytes) -> str:
    return sha256(b"\0" + body).hexdigest()


def _hex(text: str) -> str:
    return base64.b64decode(text, validate=True).hex()


def _checkpoint_root(root: Path, log: str, size: int) -> bytes:
    note = (root / "checkpoints" / log / f"{size}.txt").read_text("utf-8").split("\n")
    if int(note[1]) != size:
        raise ValueError(size)
    return base64.b64decode(note[2], validate=True)


def _put(place: Path, data: bytes) -> None:
    """Write a file once, in one step; what is kept of a log is never overwritten."""
    if place.exists() and place.name != _FILE:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f".{place.name}.{os.getpid()}")
    partial.write_bytes(data)
    partial.replace(place)
