"""Whom to believe: trusted roots, identities with their issuers, and keys. There is no default that accepts anybody."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blueprint.attest.refusal import said
from blueprint.errors import EnvironmentLacks, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from sigstore.models import ClientTrustConfig, TrustedRoot

_LARGEST: Final = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Identity:
    """Who may have signed: the one name in the certificate, and the issuer that vouched for it, both exact."""

    name: str
    issuer: str

    def __str__(self) -> str:
        return f"{self.name} (issuer {self.issuer})"


def identities(names: Sequence[str], issuers: Sequence[str]) -> tuple[Identity, ...]:
    """Pairs of `--identity` and `--issuer` in the order in which they are given; one issuer may stand for all.

    Raises UsageError where one of the two is missing, empty or a pattern.
    """
    if not names or not issuers:
        hint = "give --identity and --issuer, both exactly as in the certificate"
        raise UsageError("nobody is named who may have signed", hint=hint)
    if len(issuers) not in (1, len(names)):
        raise UsageError("--issuer is given neither once nor once for each --identity")
    for text in (*names, *issuers):
        if not text.strip() or any(sign in text for sign in "*\n\0"):
            raise UsageError(f"{text!r} is no exact identity or issuer", hint="patterns are not taken")
    each = issuers if len(issuers) > 1 else [*issuers] * len(names)
    return tuple(Identity(name, issuer) for name, issuer in zip(names, each, strict=True))


def trusted_root(file: Path | None) -> TrustedRoot:
    """The keys of a Sigstore instance: from a trusted root or a client trust config, offline; else the public one's.

    Raises UsageError for a file that is neither, EnvironmentLacks where the public root cannot be fetched.
    """
    from sigstore.errors import Error
    from sigstore.models import TrustedRoot

    if file is None:
        return _public().trusted_root
    if b"clienttrustconfig" in _read(file):
        return trust_config(file).trusted_root
    try:
        return TrustedRoot.from_file(str(file))
    except (Error, ValueError, KeyError) as error:
        raise UsageError(f"this is no trusted root: {said(error)}", where=str(file)) from None


def trust_config(file: Path | None) -> ClientTrustConfig:
    """Where to sign and whom to trust: a client trust config, or the public instance's."""
    from sigstore.errors import Error
    from sigstore.models import ClientTrustConfig

    if file is None:
        return _public()
    try:
        config = ClientTrustConfig.from_json(_read(file).decode())
        _ = config.trusted_root, config.signing_config
    except (Error, ValueError, KeyError) as error:
        hint = "a client trust config holds a trusted root and a signing config"
        raise UsageError(f"this is no client trust config: {said(error)}", where=str(file), hint=hint) from None
    return config


def public_key(file: Path) -> EllipticCurvePublicKey:
    """An ECDSA public key in PEM, such as cosign.pub. Raises UsageError for anything else."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_read(file))
    except ValueError as error:
        raise UsageError(f"this is no public key in PEM: {said(error)}", where=str(file)) from None
    if not isinstance(key, EllipticCurvePublicKey):
        raise UsageError("this is no ECDSA key", where=str(file))
    return key


def key_hint(key: EllipticCurvePublicKey) -> str:
    """How bundles name a key: base64 of the SHA-256 of its DER form, as cosign writes it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    encoded = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(sha256(encoded).digest()).decode()


def _read(file: Path) -> bytes:
    if not file.is_file():
        raise UsageError("no such file", where=str(file))
    if file.stat().st_size > _LARGEST:
        raise UsageError(f"larger than {_LARGEST // 2**20} MiB", where=str(file))
    return file.read_bytes()


def _public() -> ClientTrustConfig:
    from sigstore.models import ClientTrustConfig

    try:
        return ClientTrustConfig.production()
    except Exception as error:
        hint = "name a trusted root that you have: --trusted-root FILE"
        raise EnvironmentLacks(f"the public Sigstore's keys cannot be fetched: {said(error)}", hint=hint) from None
