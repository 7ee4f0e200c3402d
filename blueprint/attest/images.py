"""Whether an image is signed: by whom, for which digest, and when. The one answer for CI, the lock file and the gate.

Signatures are bundles that refer to the image, as `cosign sign` of version 3 leaves them; `.sig` tags are not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from blueprint.attest.bundle import MEDIA_TYPE, Proof, Prover
from blueprint.attest.evidence import written
from blueprint.attest.refusal import Refused
from blueprint.attest.registry import Reference, Registry, reference
from blueprint.attest.statement import PAYLOAD_TYPE, STATEMENTS
from blueprint.attest.verify import in_time

SIGNATURE: Final = "https://sigstore.dev/cosign/sign/v1"
"""The predicate of `cosign sign` (cosign v3.1.3 pkg/types)."""
_MOST: Final = 16
"""Bundles of one image that are looked at."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature of an image that holds."""

    image: str
    identity: str
    issuer: str
    signed_at: datetime
    log_index: int | None

    def document(self) -> dict[str, Any]:
        """The same as JSON: what the gate answers, and what the lock keeps."""
        return {
            "digest": self.image.rpartition("@")[2],
            "identity": self.identity,
            "issuer": self.issuer,
            "signedAt": written(self.signed_at),
            "logIndex": self.log_index,
        }


def verify_image(
    text: str, registry: Registry, prover: Prover, *, max_age: timedelta | None = None, now: datetime | None = None
) -> Signature:
    """The newest signature of an image by one of the prover's identities. Raises Refused with the best reason why not.

    SIG401 a tag, SIG402 the registry, SIG403 no signature; else the reason that the last bundle was refused for.
    """
    now = now or datetime.now(UTC)
    image = reference(text)
    found: list[Signature] = []
    reasons: list[Refused] = []
    for data in _bundles(image, registry):
        try:
            found.append(_signature(text, image, prover.prove(data), max_age, now))
        except Refused as refused:
            reasons.append(refused)
    if found:
        return max(found, key=lambda one: one.signed_at)
    raise reasons[-1] if reasons else Refused("SIG403", f"{text} has no signature", fix="cosign sign")


def _bundles(image: Reference, registry: Registry) -> Iterator[bytes]:
    """Bundles that refer to an image. A manifest must say itself that this image is its subject."""
    seen = 0
    for row in registry.referrers(image):
        if row.get("artifactType") not in (None, MEDIA_TYPE):
            continue
        if (seen := seen + 1) > _MOST:
            return
        manifest = registry.manifest(image, str(row.get("digest")))
        subject = manifest.get("subject")
        if not isinstance(subject, dict) or subject.get("digest") != image.digest:
            continue
        for layer in manifest.get("layers") or ():
            if isinstance(layer, dict) and layer.get("mediaType") == MEDIA_TYPE:
                yield registry.blob(image, str(layer.get("digest")))


def _signature(text: str, image: Reference, proof: Proof, max_age: timedelta | None, now: datetime) -> Signature:
    try:
        statement = json.loads(proof.payload)
    except (ValueError, RecursionError):
        raise Refused("SIG108", "the bundle's payload is no JSON") from None
    if proof.payload_type != PAYLOAD_TYPE or not isinstance(statement, dict):
        raise Refused("SIG108", "the bundle holds no in-toto statement")
    if statement.get("_type") not in STATEMENTS or statement.get("predicateType") != SIGNATURE:
        raise Refused("SIG108", f"the bundle is a {statement.get('predicateType')!r}, not a signature of an image")
    match statement.get("subject"):
        case [{"digest": {"sha256": str(digest)}}] if f"sha256:{digest}" == image.digest:
            pass
        case _:
            raise Refused("SIG108", f"the signature is not for {image.digest} alone")
    if proof.signed_at is None:
        raise Refused("SIG105", "no trusted authority says when the image was signed")
    in_time(proof, max_age, now)
    return Signature(text, proof.signer, proof.issuer, proof.signed_at, proof.logged.index if proof.logged else None)
