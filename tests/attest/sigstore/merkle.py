"""The Merkle tree of RFC 6962 §2.1, computed anew for each answer: logs in tests are short."""

from __future__ import annotations

import hashlib


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def root_of(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    middle = _split(len(leaves))
    return node(root_of(leaves[:middle]), root_of(leaves[middle:]))


class Tree:
    """An append-only tree of entries.

    The first leaf is no entry: protobuf's JSON leaves out zero and empty fields, so that a bundle with the log index 0
    and no hashes would lack both, and clients refuse it.
    """

    def __init__(self) -> None:
        self.leaves: list[bytes] = []
        self.add(b"genesis")

    def add(self, body: bytes) -> int:
        """Append an entry; returns its index."""
        self.leaves.append(hashlib.sha256(b"\x00" + body).digest())
        return len(self.leaves) - 1

    def root(self, size: int | None = None) -> bytes:
        return root_of(self.leaves[:size])

    def inclusion(self, index: int) -> list[bytes]:
        """The audit path of a leaf, from below."""
        return _path(index, self.leaves)

    def consistency(self, old: int) -> list[bytes]:
        """The proof that the tree of the first `old` leaves is a beginning of this one (RFC 6962 §2.1.2)."""
        return _subproof(old, self.leaves, True) if 0 < old < len(self.leaves) else []


def _path(index: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    middle = _split(len(leaves))
    if index < middle:
        return [*_path(index, leaves[:middle]), root_of(leaves[middle:])]
    return [*_path(index - middle, leaves[middle:]), root_of(leaves[:middle])]


def _subproof(old: int, leaves: list[bytes], whole: bool) -> list[bytes]:
    if old == len(leaves):
        return [] if whole else [root_of(leaves)]
    middle = _split(len(leaves))
    if old <= middle:
        return [*_subproof(old, leaves[:middle], whole), root_of(leaves[middle:])]
    return [*_subproof(old - middle, leaves[middle:], False), root_of(leaves[:middle])]
