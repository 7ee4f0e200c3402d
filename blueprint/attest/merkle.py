"""Proofs about a Merkle tree: that a leaf is in it, and that one tree is a beginning of another.

Source: RFC 9162 §2.1.3.2 (inclusion), §2.1.4.2 (consistency); hashes as in RFC 6962 §2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256


def node(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


def root_from(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root of a tree of `size` that has `leaf` at `index`, by its audit path; None for a path that does not fit."""
    if not 0 <= index < size:
        return None
    place, last, found = index, size - 1, leaf
    for step in path:
        if last == 0:
            return None
        if place & 1 or place == last:
            found = node(step, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node(found, step)
        place, last = place >> 1, last >> 1
    return found if last == 0 else None


def is_beginning(old: int, old_root: bytes, size: int, root: bytes, path: Sequence[bytes]) -> bool:
    """Whether a consistency proof shows that the tree of `old` leaves is a beginning of the one of `size`."""
    if old == size:
        return not path and old_root == root
    if not 0 < old < size or not path:
        return False
    steps = [old_root, *path] if old & (old - 1) == 0 else list(path)
    place, last = old - 1, size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    first = second = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            first, second = node(step, first), node(step, second)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            second = node(second, step)
        place, last = place >> 1, last >> 1
    return last == 0 and first == old_root and second == root
