"""Whether an image is signed: by whom, for which digest, and when. The one answer for CI, the lock file and the gate.

Signatures are bundles that refer to the image, as `cosign sign` of version 3 leaves them; `.sig` tags are not read.
How old an image may be counts from the end of its build, as its signers say it in SLSA provenance: of all that they
sign, this is what Kyverno can read, too, and both gates give one verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from blueprint.attest import registry as registries
from blueprint.attest.bundle import MEDIA_TYPE, Proof, Prover
from blueprint.attest.conversation import Conversation, Over
from blueprint.attest.evidence import moment, written
from blueprint.attest.refusal import Refused
from blueprint.attest.registry import Reference, Registry, reference
from blueprint.attest.statement import PAYLOAD_TYPE, STATEMENTS
from blueprint.attest.verify import in_time
from blueprint.spec.policy import CLOCK_SKEW

SIGNATURE: Final = "https://sigstore.dev/cosign/sign/v1"
"""The predicate of `cosign sign` (cosign v3.1.3 pkg/types)."""
BUILD: Final = "https://slsa.dev/provenance/v1"
"""The predicate that says when a build ended, in runDetails.metadata.finishedOn (slsa.dev/spec/v1.0/provenance)."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
"""What CEL takes for a time, as Kyverno reads it (go time.RFC3339)."""
_MOST: Final = 32
"""Bundles of one image that are looked at: whoever may push can attach any number."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature of an image that holds, and when its build ended, None where no signer says so."""

    image: str
    identity: str
    issuer: str
    signed_at: datetime
    log_index: int | None
    built_at: datetime | None = None

    def document(self) -> dict[str, Any]:
        """The same as JSON: what the gate answers, and what the lock keeps."""
        return {
            "digest": self.image.rpartition("@")[2],
            "identity": self.identity,
            "issuer": self.issuer,
            "signedAt": written(self.signed_at),
            "logIndex": self.log_index,
            "builtAt": None if self.built_at is None else written(self.built_at),
        }


def verify_image(
    text: str, registry: Registry, prover: Prover, *, max_age: timedelta | None = None, now: datetime | None = None
) -> Signature:
    """The newest signature of an image by one of the prover's identities. Raises Refused with the best reason why not.

    SIG401 a tag, SIG402 the registry, SIG403 no signature, SIG105 and SIG106 the time; else the reason that the last
    bundle was refused for. What cannot be read or believed hides nothing that can.
    """
    now = now or datetime.now(UTC)
    image = reference(text)
    found: list[Signature] = []
    built: list[datetime | None] = []
    reasons: list[Refused] = []
    with registry.conversation() as asked:
        for data in _bundles(image, asked):
            try:
                if isinstance(data, Refused):
                    raise data
                proof = prover.prove(data)
                statement = _statement(proof)
                if statement.get("predicateType") == BUILD:
                    built += _built(statement, image)
                else:
                    found.append(_signature(text, image, proof, statement, now))
            except Refused as refused:
                reasons.append(refused)
    if not found:
        raise _best(reasons) if reasons else Refused("SIG403", f"{text} has no signature", fix="cosign sign")
    newest = max(found, key=lambda one: one.signed_at)
    # Of several the last one counts, as for Kyverno (kyverno sdk imagedataloader AddVerifiedIntotoPayloads).
    ended = built[-1] if built else None
    recent(text, ended, max_age, now)
    return Signature(text, newest.identity, newest.issuer, newest.signed_at, newest.log_index, ended)


def recent(text: str, built_at: datetime | None, max_age: timedelta | None, now: datetime) -> None:
    """Hold the end of a build to a window. Raises Refused (SIG105, SIG106)."""
    if max_age is None:
        return
    if built_at is None:
        message = f"{text} is signed, but no signer says in SLSA provenance when its build ended"
        raise Refused("SIG105", message, fix="cosign attest --type slsaprovenance1, with finishedOn")
    if built_at >= now + CLOCK_SKEW:
        raise Refused("SIG106", f"the build of {text} ended at {written(built_at)}, which is in the future")
    if built_at <= now - max_age:
        message = f"the build of {text} ended at {written(built_at)}, more than {max_age} ago"
        raise Refused("SIG106", message, fix="build the image again")


def _best(reasons: list[Refused]) -> Refused:
    """What was read and is not believed says more than what could not be read."""
    return next((reason for reason in reversed(reasons) if reason.code != "SIG402"), reasons[-1])


def _bundles(image: Reference, asked: Conversation) -> Iterator[bytes | Refused]:
    """Bundles that refer to an image, or why one cannot be had. A manifest must say itself that this is its subject."""
    rows = [row for row in registries.referrers(asked, image) if row.get("artifactType") in (None, MEDIA_TYPE)]
    for row in rows[:_MOST]:
        try:
            manifest = registries.manifest(asked, image, row.get("digest"))
            if (digest := _layer(manifest, image)) is not None:
                yield registries.blob(asked, image, digest)
        except Over as over:
            yield over
            return
        except Refused as refused:
            yield refused


def _layer(manifest: dict[str, Any], image: Reference) -> object:
    """The digest of the first bundle in a manifest, None where there is none or it is about another image."""
    subject, layers = manifest.get("subject"), manifest.get("layers")
    if not isinstance(subject, dict) or subject.get("digest") != image.digest or not isinstance(layers, list):
        return None
    ours = [row for row in layers if isinstance(row, dict) and row.get("mediaType") == MEDIA_TYPE]
    return ours[0].get("digest", "") if ours else None


def _statement(proof: Proof) -> dict[str, Any]:
    try:
        statement = json.loads(proof.payload)
    except (ValueError, RecursionError):
        raise Refused("SIG108", "the bundle's payload is no JSON") from None
    if proof.payload_type != PAYLOAD_TYPE or not isinstance(statement, dict):
        raise Refused("SIG108", "the bundle holds no in-toto statement")
    if not isinstance(statement.get("_type"), str) or statement["_type"] not in STATEMENTS:
        raise Refused("SIG108", "the bundle holds no in-toto statement")
    return statement


def _signature(text: str, image: Reference, proof: Proof, statement: dict[str, Any], now: datetime) -> Signature:
    if statement.get("predicateType") != SIGNATURE:
        raise Refused("SIG108", f"the bundle is a {statement.get('predicateType')!r}, not a signature of an image")
    match statement.get("subject"):
        case [{"digest": {"sha256": str(digest)}}] if f"sha256:{digest}" == image.digest:
            pass
        case _:
            raise Refused("SIG108", f"the signature is not for {image.digest} alone")
    if proof.signed_at is None:
        raise Refused("SIG105", "no trusted authority says when the image was signed")
    in_time(proof, None, now)
    return Signature(text, proof.signer, proof.issuer, proof.signed_at, proof.logged.index if proof.logged else None)


def _built(statement: dict[str, Any], image: Reference) -> list[datetime | None]:
    """When the build ended of which provenance is; nothing for that of other images."""
    subjects = statement.get("subject")
    named = [row.get("digest") for row in subjects if isinstance(row, dict)] if isinstance(subjects, list) else []
    if not any(isinstance(digest, dict) and f"sha256:{digest.get('sha256')}" == image.digest for digest in named):
        return []
    value: Any = statement
    for key in ("predicate", "runDetails", "metadata", "finishedOn"):
        value = value.get(key) if isinstance(value, dict) else None
    return [moment(value) if isinstance(value, str) and _TIME.fullmatch(value) else None]
