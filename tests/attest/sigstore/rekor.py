"""The transparency logs.

Sources: sigstore/rekor openapi.yaml (v1), sigstore/rekor-tiles CLIENTS.md (v2), C2SP tlog-checkpoint (the signed note).
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from datetime import UTC, datetime
from typing import Any

import rfc8785

from tests.attest.sigstore.merkle import Tree, root_of
from tests.attest.sigstore.pki import b64, key_id, new_key, sign


class Log:
    """A log with its key. `host` names it in checkpoints: the host of its address without the port, as cosign asks."""

    def __init__(self, host: str, suffix: str = "") -> None:
        self.host, self.origin = host, host + suffix
        self.key, self.tree, self.lock = new_key(), Tree(), threading.Lock()

    @property
    def id(self) -> bytes:
        return key_id(self.key.public_key())

    def checkpoint(self, size: int | None = None) -> str:
        """The signed note over the tree, or over how it was at a size."""
        size = len(self.tree.leaves) if size is None else size
        note = f"{self.origin}\n{size}\n{b64(self.tree.root(size))}\n"
        return f"{note}\n\u2014 {self.host} {b64(self.id[:4] + sign(self.key, note.encode()))}\n"


class RekorV1(Log):
    """Rekor v1: entries carry a time and a promise."""

    def __init__(self, host: str) -> None:
        super().__init__(host, " - 1234567890")

    def answer(self, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """What POST /api/v1/log/entries answers, with the entry's name."""
        body = rfc8785.dumps(_stored(request))
        with self.lock:
            index = self.tree.add(body)
            entry = {
                "body": b64(body),
                "integratedTime": int(datetime.now(UTC).timestamp()),
                "logID": self.id.hex(),
                "logIndex": index,
            }
            proof = {
                "logIndex": index,
                "treeSize": len(self.tree.leaves),
                "rootHash": self.tree.root().hex(),
                "hashes": [one.hex() for one in self.tree.inclusion(index)],
                "checkpoint": self.checkpoint(),
            }
            promise = b64(sign(self.key, rfc8785.dumps(entry)))
            name = f"{1:016x}{self.tree.leaves[index].hex()}"
        return name, {name: entry | {"verification": {"signedEntryTimestamp": promise, "inclusionProof": proof}}}

    def proof(self, old: int, new: int) -> dict[str, Any]:
        """What GET /api/v1/log/proof answers."""
        tree = Tree()
        tree.leaves = self.tree.leaves[:new]
        return {"rootHash": tree.root().hex(), "hashes": [one.hex() for one in tree.consistency(old)]}


class RekorV2(Log):
    """Rekor v2: one kind of entry, no time, the proof at once, and the tree as tiles."""

    def tile(self, path: str) -> bytes | None:
        """What GET /api/v2/tile/… answers (C2SP tlog-tiles.md); None for a tile that the tree does not have."""
        level, _, rest = path.partition("/")
        number, _, width = rest.partition(".p/")
        span = 256 ** int(level)
        first = int(number.replace("x", "").replace("/", "")) * 256
        wanted = int(width or 256)
        starts = [start * span for start in range(first, first + wanted)]
        if starts[-1] + span > len(self.tree.leaves):
            return None
        return b"".join(root_of(self.tree.leaves[start : start + span]) for start in starts)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What POST /api/v2/log/entries answers."""
        asked = request["hashedRekordRequestV002"]
        verifier = {"keyDetails": "PKIX_ECDSA_P256_SHA_256"} | asked["signature"]["verifier"]
        spec = {
            "data": {"algorithm": "SHA2_256", "digest": asked["digest"]},
            "signature": {"content": asked["signature"]["content"], "verifier": verifier},
        }
        kind = {"kind": "hashedrekord", "version": "0.0.2"}
        body = rfc8785.dumps({"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": {"hashedRekordV002": spec}})
        with self.lock:
            index = self.tree.add(body)
            return {
                "logIndex": str(index),
                "logId": {"keyId": b64(self.id)},
                "kindVersion": kind,
                "inclusionProof": {
                    "logIndex": str(index),
                    "treeSize": str(len(self.tree.leaves)),
                    "rootHash": b64(self.tree.root()),
                    "hashes": [b64(one) for one in self.tree.inclusion(index)],
                    "checkpoint": {"envelope": self.checkpoint()},
                },
                "canonicalizedBody": b64(body),
            }


def _stored(request: dict[str, Any]) -> dict[str, Any]:
    """A proposed entry as v1 stores it: of a DSSE envelope only digests and signatures."""
    proposed = request["spec"].get("proposedContent")
    if request["kind"] != "dsse" or proposed is None:
        return request
    envelope = json.loads(proposed["envelope"])
    payload = base64.b64decode(envelope["payload"])
    verifier = proposed["verifiers"][0]
    spec = {
        "envelopeHash": {"algorithm": "sha256", "value": hashlib.sha256(proposed["envelope"].encode()).hexdigest()},
        "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
        "signatures": [{"signature": one["sig"], "verifier": verifier} for one in envelope["signatures"]],
    }
    return {"apiVersion": "0.0.1", "kind": "dsse", "spec": spec}
