"""A Sigstore bundle and what it proves: by an identity through Sigstore, or by a key of one's own.

sigstore-python verifies the certificate's chain and SCT, the log's inclusion proof and checkpoint, and the signature.
What it leaves to its caller is done here: a time stamp by a trusted authority is mandatory (it would take the log's own
time instead, and pass over a token that does not verify), all tokens must hold, and the identity and the issuer are
exact (sigstore 4.5.1 verify/verifier.py `_establish_time`, `_verify_timestamp_authority`; verify/policy.py).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol

from blueprint.attest.filelist import LARGEST_BUNDLE
from blueprint.attest.refusal import Refused, said
from blueprint.attest.statement import PAYLOAD_TYPE
from blueprint.attest.trust import Identity, key_hint

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.x509 import Certificate
    from rfc3161_client import TimeStampResponse
    from sigstore.models import Bundle, TrustedRoot

MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
_PARTS: Final = frozenset({"mediaType", "verificationMaterial", "dsseEnvelope"})
_MATERIAL: Final = frozenset({"certificate", "publicKey", "tlogEntries", "timestampVerificationData"})
_ENVELOPE: Final = frozenset({"payload", "payloadType", "signatures"})
"""Closed: a bundle with a `kind` beside its parts would be a manifest to whoever reads its folder."""
_MOST_TIMES: Final = 8
"""Tokens in a bundle; we write one."""


@dataclass(frozen=True, slots=True)
class Logged:
    """Where the log holds an entry, and how large it was then: what its checkpoint says, which was verified."""

    log: str
    """Hexadecimal name of the log: SHA-256 of its key."""
    index: int
    size: int
    root: str
    """Hexadecimal root hash of the tree of that size."""
    leaf: str
    """Hexadecimal leaf hash of the entry."""
    checkpoint: str


@dataclass(frozen=True, slots=True)
class Proof:
    """A payload for which a signature holds: who signed it, when, and where that is logged.

    With a key there is no issuer and no log, and the time says at most how late it is; None where nobody stamped it.
    """

    payload: bytes
    payload_type: str
    signer: str
    issuer: str
    signed_at: datetime | None
    logged: Logged | None
    sha256: str
    """Of the bundle's bytes."""


class Prover(Protocol):
    """What turns a bundle into a proof, or raises Refused."""

    def prove(self, data: bytes) -> Proof:
        """The proof that a bundle holds."""


class ByIdentity:
    """Bundles signed through a Sigstore whose keys are `root`, by one of `identities`; no network is used."""

    def __init__(self, root: TrustedRoot, identities: Sequence[Identity]) -> None:
        from sigstore.verify import Verifier

        self._root, self._identities = root, identities
        # The library takes the log's name in a bundle for a hint, and tries every key (trust.py `Keyring.verify`).
        self.logs = {sha256(log.public_key.raw_bytes or b"").hexdigest(): log.base_url for log in root._inner.tlogs}
        """Hexadecimal name of each log that is trusted → its address."""
        self._verifier = Verifier(trusted_root=root)

    def prove(self, data: bytes) -> Proof:
        """Raises Refused: SIG102 unreadable, SIG103 to SIG107 and SIG112 for what does not hold."""
        from sigstore.errors import Error
        from sigstore.models import Bundle

        document = _read(data)
        material = document["verificationMaterial"]
        if "publicKey" in material:
            raise Refused("SIG112", "the bundle is signed by a key, and an identity is asked for")
        if not material.get("tlogEntries"):
            raise Refused("SIG107", "the bundle has no entry of a transparency log")
        if not (material.get("timestampVerificationData") or {}).get("rfc3161Timestamps"):
            raise Refused("SIG105", "the bundle has no time stamp of an authority (RFC 3161)")
        seen = _OneOf(self._identities)
        try:
            bundle = Bundle.from_json(json.dumps(document))
            payload_type, payload = self._verifier.verify_dsse(bundle, seen)
            signed_at = _time(bundle.verification_material.timestamp_verification_data, bundle.signature, self._root)
        except Refused:
            raise
        except (Error, ValueError, TypeError, AttributeError, KeyError) as error:
            raise Refused("SIG103", f"the signature does not hold: {said(error)}") from None
        logged = _logged(bundle)
        if logged.log not in self.logs:
            raise Refused("SIG103", "the entry claims to be of a log that is not in the trusted root")
        return Proof(
            payload,
            payload_type,
            seen.found.name,
            seen.found.issuer,
            signed_at,
            logged,
            sha256(data).hexdigest(),
        )


class ByKey:
    """Bundles signed by one of `keys`; with a `root` their time stamps count. The log is no part of this mode."""

    def __init__(self, keys: Sequence[EllipticCurvePublicKey], root: TrustedRoot | None = None) -> None:
        self._keys = {key_hint(key): key for key in keys}
        self._root = root

    def prove(self, data: bytes) -> Proof:
        """Raises Refused as `ByIdentity.prove` does."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.hashes import SHA256

        document = _read(data)
        material, envelope = document["verificationMaterial"], document["dsseEnvelope"]
        if "publicKey" not in material:
            raise Refused("SIG112", "the bundle is signed by an identity, and a key is asked for")
        hint = str((material["publicKey"] or {}).get("hint"))
        key = self._keys.get(hint)
        if key is None:
            raise Refused("SIG104", "the bundle is signed by another key than the ones that may")
        try:
            payload = base64.b64decode(envelope["payload"], validate=True)
            (signature,) = (base64.b64decode(one["sig"], validate=True) for one in envelope["signatures"])
            key.verify(signature, pae(envelope["payloadType"], payload), ec.ECDSA(SHA256()))
        except InvalidSignature:
            raise Refused("SIG103", "the signature does not hold for this key") from None
        except (ValueError, KeyError, TypeError) as error:
            raise Refused("SIG103", f"the signature cannot be read: {said(error)}") from None
        return Proof(
            payload,
            envelope["payloadType"],
            f"key:{hint}",
            "",
            self._signed_at(material, signature),
            None,
            sha256(data).hexdigest(),
        )

    def _signed_at(self, material: dict[str, Any], signature: bytes) -> datetime | None:
        from rfc3161_client import decode_timestamp_response

        stamps = (material.get("timestampVerificationData") or {}).get("rfc3161Timestamps")
        if self._root is None or not stamps:
            return None
        try:
            tokens = [decode_timestamp_response(base64.b64decode(one["signedTimestamp"])) for one in stamps]
        except (ValueError, KeyError, TypeError) as error:
            raise Refused("SIG105", f"a time stamp cannot be read: {said(error)}") from None
        return _verified_time(tokens, signature, self._root)


def pae(payload_type: str, payload: bytes) -> bytes:
    """What a DSSE signature is over (secure-systems-lab/dsse protocol.md, "Signature Definition")."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def claimed(data: bytes) -> str:
    """The type of predicate that a bundle claims to hold, unverified. Raises Refused (SIG102, SIG108)."""
    try:
        statement = json.loads(base64.b64decode(_read(data)["dsseEnvelope"]["payload"], validate=True))
        return str(statement["predicateType"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refused("SIG102", f"the bundle's statement cannot be read: {said(error)}") from None


def _read(data: bytes) -> dict[str, Any]:
    """The bundle as JSON: of the version we know, each key once, with a DSSE envelope.

    Fields that protobuf's JSON leaves out, as 0 or empty, are put back: the first entry of a log has them.
    """
    if len(data) > LARGEST_BUNDLE:
        raise Refused("SIG102", f"the bundle is larger than {LARGEST_BUNDLE // 2**20} MiB")
    try:
        document = json.loads(data.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Refused("SIG102", f"the bundle cannot be read: {said(error)}") from None
    if not isinstance(document, dict) or document.get("mediaType") != MEDIA_TYPE:
        raise Refused("SIG102", f"this is no bundle of type {MEDIA_TYPE}")
    material = document.get("verificationMaterial")
    if not isinstance(material, dict) or not isinstance(document.get("dsseEnvelope"), dict):
        raise Refused("SIG102", "the bundle holds no signed statement (DSSE envelope)")
    for part, fields in ((document, _PARTS), (material, _MATERIAL), (document["dsseEnvelope"], _ENVELOPE)):
        if more := sorted(part.keys() - fields):
            raise Refused("SIG102", f"the bundle holds {', '.join(more)}, which no signature covers")
    for name, kind in (("publicKey", dict), ("timestampVerificationData", dict), ("tlogEntries", list)):
        if not isinstance(material.get(name), kind | None):
            raise Refused("SIG102", f"the bundle's {name} is of another type than it must be")
    if document["dsseEnvelope"].get("payloadType") != PAYLOAD_TYPE:
        raise Refused("SIG108", f"the signed payload is not of type {PAYLOAD_TYPE}")
    for entry in material.get("tlogEntries") or ():
        if isinstance(entry, dict) and isinstance(proof := entry.get("inclusionProof"), dict):
            entry.setdefault("logIndex", "0")
            proof.setdefault("logIndex", "0")
            proof.setdefault("hashes", [])
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keyed = dict(pairs)
    if len(keyed) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return keyed


class _OneOf:
    """A policy of sigstore-python: the certificate names exactly one identity, and it is one of these."""

    def __init__(self, allowed: Sequence[Identity]) -> None:
        self._allowed = allowed
        self.found = Identity("", "")

    def verify(self, cert: Certificate) -> None:
        """Raises Refused (SIG104)."""
        from cryptography import x509
        from sigstore.errors import VerificationError
        from sigstore.verify.policy import OIDCIssuerV2

        try:
            names = list(cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
        except x509.ExtensionNotFound:
            names = []
        texts = [name.value for name in names if isinstance(name, x509.RFC822Name | x509.UniformResourceIdentifier)]
        if len(names) != 1 or len(texts) != 1:
            raise Refused("SIG104", "the certificate does not name exactly one identity")
        for identity in self._allowed:
            if identity.name != texts[0]:
                continue
            try:
                OIDCIssuerV2(identity.issuer).verify(cert)
            except VerificationError:
                continue
            self.found = identity
            return
        wanted = ", ".join(str(identity) for identity in self._allowed)
        raise Refused("SIG104", f"signed by {texts[0]!r}, or for another issuer; only {wanted} may")


def _time(data: Any, signature: bytes, root: TrustedRoot) -> datetime:  # noqa: ANN401 - has no public name
    if data is None:
        raise Refused("SIG105", "the bundle has no time stamp of an authority (RFC 3161)")
    return _verified_time(data.rfc3161_timestamps, signature, root)


def _verified_time(tokens: Sequence[TimeStampResponse], signature: bytes, root: TrustedRoot) -> datetime:
    """The latest of the times; each token must be of a trusted authority, within its time, and over this signature."""
    if not 0 < len(tokens) <= _MOST_TIMES:
        raise Refused("SIG105", f"the bundle has {len(tokens)} time stamps")
    return max(_stamped(token, signature, root) for token in tokens).astimezone(UTC)


def _stamped(token: TimeStampResponse, signature: bytes, root: TrustedRoot) -> datetime:
    from rfc3161_client import VerificationError, VerifierBuilder

    reason = "no authority of the trusted root made it"
    for authority in root.get_timestamp_authorities():
        leaf, *others = authority.certificates(allow_expired=True)
        if not others:
            continue
        builder = VerifierBuilder().tsa_certificate(leaf).add_root_certificate(others[-1])
        for certificate in others[:-1]:
            builder = builder.add_intermediate_certificate(certificate)
        try:
            builder.build().verify_message(token, signature)
        except (VerificationError, ValueError) as error:
            reason = said(error)
            continue
        moment = token.tst_info.gen_time
        start, end = authority.validity_period_start, authority.validity_period_end
        if start <= moment and (end is None or moment < end):
            return moment
        reason = "it is of a time at which the authority was not trusted"
    raise Refused("SIG105", f"a time stamp does not hold: {reason}")


def _logged(bundle: Bundle) -> Logged:
    """What the verified entry says; sigstore has checked it against its proof and checkpoint."""
    entry = bundle.log_entry._inner
    proof = entry.inclusion_proof
    # The promise of a first-generation log covers the index and the time beside the proof, and is looked at only
    # where there is a time (sigstore 4.5.1 models.py `_verify`): one without the other is covered by nothing.
    if (entry.inclusion_promise is None) is not (not entry.integrated_time):
        raise Refused("SIG103", "the entry has a promise without its time, or a time that no promise covers")
    if entry.inclusion_promise is None and entry.log_index != proof.log_index:
        raise Refused("SIG103", "the entry claims another place in the log than its proof shows")
    return Logged(
        log=entry.log_id.key_id.hex(),
        index=proof.log_index,
        size=proof.tree_size,
        root=proof.root_hash.hex(),
        leaf=sha256(b"\0" + entry.canonicalized_body).hexdigest(),
        checkpoint=proof.checkpoint.envelope if proof.checkpoint else "",
    )
