"""Ask a log to prove that it only grew: that the tree of one checkpoint is a beginning of the tree of a later one.

Proofs of inclusion alone need not show a fork: two of them may have no complete subtree in common. A log of the second
generation gives the hashes of its tree as tiles, from which the proof is computed; one of the first gives the proof.
Nothing here is believed: the ledger holds the proof to roots that bundles brought, which were signed.

Sources: C2SP tlog-tiles.md; sigstore/rekor-tiles v2.3.0 pkg/generated/protobuf/rekor_service.pb.gw.go (paths);
sigstore/rekor v1.5.1 openapi.yaml (/api/v1/log/proof); RFC 6962 §2.1.2.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

import urllib3

from blueprint.attest.merkle import node
from blueprint.attest.refusal import said
from blueprint.errors import EnvironmentLacks

_HASH: Final = 32
_WIDTH: Final = 256
"""Hashes of a tile (C2SP tlog-tiles.md)."""
_LARGEST: Final = 1 << 20
_FOUND: Final = 200


@dataclass(slots=True)
class Log:
    """A log by its address; `size` is that of the newest tree that is asked about, `tree` its id in the first kind."""

    url: str
    size: int
    tree: str = ""
    _tiles: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _pool: urllib3.PoolManager = field(
        default_factory=lambda: urllib3.PoolManager(timeout=urllib3.Timeout(total=10.0), retries=urllib3.Retry(1))
    )

    def proof(self, old: int) -> list[bytes]:
        """The proof that the tree of `old` leaves is a beginning of that of `size`. Raises EnvironmentLacks."""
        if not 0 < old < self.size:
            return []
        return self._given(old) if self.tree else self._step(old, 0, self.size, whole=True)

    def _given(self, old: int) -> list[bytes]:
        """What a log of the first generation answers."""
        asked = {"firstSize": str(old), "lastSize": str(self.size), "treeID": self.tree}
        try:
            return [bytes.fromhex(step) for step in json.loads(self._get("/api/v1/log/proof", asked))["hashes"]]
        except (ValueError, KeyError, TypeError):
            raise EnvironmentLacks(f"the log {self.url} gives no proof that it only grew") from None

    def _step(self, old: int, start: int, end: int, *, whole: bool) -> list[bytes]:
        """SUBPROOF of RFC 6962 for the leaves from `start` to `end`."""
        size = end - start
        if old == size:
            return [] if whole else [self._hash(start, end)]
        middle = start + (1 << (size - 1).bit_length() - 1)
        if old <= middle - start:
            return [*self._step(old, start, middle, whole=whole), self._hash(middle, end)]
        return [*self._step(old - (middle - start), middle, end, whole=False), self._hash(start, middle)]

    def _hash(self, start: int, end: int) -> bytes:
        """The hash over the leaves from `start` to `end`: of a tile where it has one, else of its halves."""
        size = end - start
        level = size.bit_length() - 1
        if size == 1 << level and level % 8 == 0:
            place = start >> level
            tile = self._tile(level // 8, place // _WIDTH)
            return tile[place % _WIDTH * _HASH :][:_HASH]
        middle = start + (1 << (size - 1).bit_length() - 1)
        return node(self._hash(start, middle), self._hash(middle, end))

    def _tile(self, level: int, number: int) -> bytes:
        """One tile; the last of a level has as many hashes as the tree of `size` has complete subtrees for it."""
        if (known := self._tiles.get((level, number))) is not None:
            return known
        width = min(_WIDTH, (self.size >> 8 * level) - number * _WIDTH)
        place = f"/api/v2/tile/{level}/{_numbered(number)}"
        # A log may have filled the tile since, and need not keep the partial one (tlog-tiles.md, "Partial tiles").
        data = self._get(f"{place}.p/{width}", optional=True) if width < _WIDTH else b""
        data = data or self._get(place)
        if len(data) < width * _HASH:
            raise EnvironmentLacks(f"the log {self.url} gives too few hashes for {place}")
        self._tiles[level, number] = data
        return data

    def _get(self, path: str, asked: dict[str, str] | None = None, *, optional: bool = False) -> bytes:
        try:
            response = self._pool.request("GET", f"{self.url.rstrip('/')}{path}", fields=asked, preload_content=False)
            data = response.read(_LARGEST + 1)
            response.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise EnvironmentLacks(f"the log {self.url} cannot be asked: {said(error)}") from None
        if response.status == _FOUND and len(data) <= _LARGEST:
            return data
        if optional:
            return b""
        raise EnvironmentLacks(f"the log {self.url} does not prove that it only grew: it answers {response.status}")


def _numbered(number: int) -> str:
    """The number of a tile in a path: groups of three digits, all but the last with an x in front."""
    groups = []
    while True:
        number, rest = divmod(number, 1000)
        groups.append(f"{rest:03}")
        if not number:
            return "/".join([*(f"x{group}" for group in reversed(groups[1:])), groups[0]])
