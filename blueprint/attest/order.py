"""The order of trees: which sequence was seen of which clusters, so that an older tree shows to whoever asks about it.

A statement is about all of its clusters. What was seen of any of them holds for it, whether the whole tree was verified
or the part of a branch, and whichever cluster was asked about then. Trees that have no cluster in common are no
neighbours: each branch of a delivery has a pace of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from blueprint.attest.refusal import Refused

ANY: Final = "*"
"""The cluster of a row that older ledgers kept for trees of any clusters; no cluster can be called so."""

Scope = tuple[str, ...]
Seen = Mapping[Scope, tuple[int, str]]
"""Clusters of a tree, sorted → the highest sequence with its digest, or "" where that is not known."""


def scope(clusters: Collection[str]) -> Scope:
    """The clusters of a tree as they are kept."""
    return tuple(sorted(clusters))


def in_order(seen: Seen, clusters: Collection[str], sequence: int, digest: str) -> None:
    """Raises Refused (SIG110) for a tree that is older than one of its clusters was seen in, or that is another one.

    The whole and its parts have one sequence and different digests, so digests are compared where the clusters are
    the same.
    """
    for known, (number, before) in sorted(seen.items()):
        if not meet(known, clusters):
            continue
        if sequence < number:
            of = "" if ANY in known else f" of {', '.join(known)}"
            raise Refused("SIG110", f"an older tree: its sequence is {sequence}, {number} was seen before{of}")
        if sequence == number and known == scope(clusters) and before not in ("", digest):
            raise Refused("SIG110", f"another tree with the sequence {sequence} was seen before")


def meet(known: Scope, clusters: Collection[str]) -> bool:
    """Whether what was seen of some clusters says something of a tree of these."""
    return not clusters or ANY in known or not set(known).isdisjoint(clusters)
