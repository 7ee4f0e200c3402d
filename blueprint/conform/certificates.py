"""Certificates for servers on loopback, of an authority that lives as long as the run."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blueprint.errors import EnvironmentLacks

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder

_DAYS = 400  # rotators renew what ends within 90 days (cert-controller pkg/rotator lookaheadInterval)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority; `bundle` is what webhook configurations want in `caBundle`."""

    folder: Path
    key: RSAPrivateKey
    certificate: Certificate

    @property
    def bundle(self) -> str:
        """Its certificate, PEM in base64."""
        return base64.b64encode((self.folder / "ca.crt").read_bytes()).decode("ascii")

    def issue(self, names: Sequence[str] = ()) -> Path:
        """A folder with tls.key, tls.crt and ca.crt of a server on 127.0.0.1 that is called `names`, too."""
        return issue(self, names)


def authority(folder: Path, names: Sequence[str] = ()) -> Authority:
    """A new authority with its files ca.crt and ca.key in `folder`; `names` are DNS names that it bears itself.

    Raises EnvironmentLacks without the package cryptography.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import rsa
    except ImportError:
        raise EnvironmentLacks(
            "certificates of webhooks need the package cryptography", hint="pip install cryptography"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0] if names else "blueprint-conform")])
    builder = _dated(x509.CertificateBuilder()).subject_name(subject).issuer_name(subject)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    usage = {"digital_signature": True, "key_cert_sign": True, "crl_sign": True}
    builder = builder.add_extension(x509.KeyUsage(**{**_NO_USAGE, **usage}), critical=True)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    made = Authority(folder, key, certificate)
    _write(folder / "ca.key", _pem(key))
    _write(folder / "ca.crt", _pem_of(certificate))
    return made


_NO_USAGE = dict.fromkeys(
    (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
        *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    ),
    False,
)


def issue(by: Authority, names: Sequence[str] = ()) -> Path:
    """A certificate for 127.0.0.1, localhost and the names, in a folder called after the first of them.

    It is a client's, too: some programs show each other the same one.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import rsa

    folder = by.folder / (names[0] if names else "localhost")
    folder.mkdir(parents=True, exist_ok=True)
    key = rsa.generate_private_key(65537, 2048)
    called = [x509.DNSName(name) for name in ("localhost", *names)]
    addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    builder = _dated(x509.CertificateBuilder())
    builder = builder.subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")]))
    builder = builder.issuer_name(by.certificate.subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.add_extension(x509.SubjectAlternativeName([*called, *addresses]), critical=False)
    uses = [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH, x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    certificate = builder.sign(by.key, hashes.SHA256())
    _write(folder / "tls.key", _pem(key))
    _write(folder / "tls.crt", _pem_of(certificate))
    _write(folder / "ca.crt", _pem_of(by.certificate))
    return folder


def _dated(builder: CertificateBuilder) -> CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return builder.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(
        now + datetime.timedelta(days=_DAYS)
    )


def _pem(key: RSAPrivateKey) -> bytes:
    """PKCS#1, which Go's older certificate rotators insist on."""
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _pem_of(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)


def _write(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)
