"""The Sigstores of tests/attest, and certificates for a service on loopback."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.attest.conftest import foreign, office, signed_tree, tree  # noqa: F401 - fixtures
from tests.attest.sigstore.pki import Holder, certify, new_key


class Keys(NamedTuple):
    """PEM files of a service and of a caller, and of the authority of both."""

    authority: Path
    certificate: Path
    key: Path
    caller: Path
    caller_key: Path


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    authority = certify("gate authority")
    found = Keys(*(folder / name for name in ("ca.crt", "tls.crt", "tls.key", "caller.crt", "caller.key")))
    found.authority.write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    write_pair(authority, found.certificate, found.key)
    write_pair(authority, found.caller, found.caller_key)
    return found


def write_pair(authority: Holder, certificate: Path, key: Path) -> None:
    """A certificate for 127.0.0.1."""
    own = new_key()
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "image-gate")]))
        .issuer_name(authority.certificate.subject)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), False)
        .sign(authority.key, SHA256())
    )
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    key.write_bytes(own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
