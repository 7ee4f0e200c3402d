"""Keys and certificates of the authorities."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

ORGANISATION = "sigstore.example.com"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def spki(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def key_id(key: ec.EllipticCurvePublicKey) -> bytes:
    """How logs are named: SHA-256 of the public key (RFC 6962 §3.2)."""
    return hashlib.sha256(spki(key)).digest()


def sign(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    return key.sign(data, ec.ECDSA(hashes.SHA256()))


def der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


@dataclass(frozen=True, slots=True)
class Holder:
    """A certificate with its key."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def certify(
    name: str, *, by: Holder | None = None, authority: bool = True, usage: x509.ObjectIdentifier | None = None
) -> Holder:
    """A new key and its certificate: a root, an intermediate authority, or a leaf for one usage."""
    key = new_key()
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANISATION),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    issuer, signer = (by.certificate.subject, by.key) if by else (subject, key)
    start = datetime.now(UTC) - timedelta(days=30)
    builder = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=3650))
        .add_extension(x509.BasicConstraints(authority, 0 if authority and by else None), critical=True)
        .add_extension(
            x509.KeyUsage(not authority, False, False, False, False, authority, authority, False, False), critical=True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if usage:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=not authority)
    return Holder(key, builder.sign(signer, hashes.SHA256()))
