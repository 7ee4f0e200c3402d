"""The time stamp authority: RFC 3161 answers, CMS by hand, so that a test can choose the time.

Sources: RFC 3161 §2.4 (request, TSTInfo), RFC 5652 §5 (SignedData), RFC 5816 (ESSCertIDv2).
"""

from __future__ import annotations

import hashlib
import itertools
from datetime import UTC, datetime, timedelta

from cryptography.x509.oid import ExtendedKeyUsageOID
from rfc3161_client import _rust

from tests.attest.sigstore import der
from tests.attest.sigstore.pki import certify, sign
from tests.attest.sigstore.pki import der as encoded

_SHA256 = der.sequence(der.oid("2.16.840.1.101.3.4.2.1"))
_TST_INFO = der.oid("1.2.840.113549.1.9.16.1.4")
_SIGNED_DATA = der.oid("1.2.840.113549.1.7.2")
_ECDSA_SHA256 = der.sequence(der.oid("1.2.840.10045.4.3.2"))
_POLICY = der.oid("1.3.6.1.4.1.57264.2")


class TimeStampAuthority:
    """`offset` moves its clock; `down` makes it fail, as an authority that is not there does."""

    def __init__(self) -> None:
        self.root = certify("time stamp root")
        self.leaf = certify("time stamps", by=self.root, authority=False, usage=ExtendedKeyUsageOID.TIME_STAMPING)
        self.serials = itertools.count(1)
        self.offset = timedelta(0)
        self.down = False

    def answer(self, query: bytes) -> bytes:
        """What POST /api/v1/timestamp answers."""
        if self.down:
            raise RuntimeError("the authority is down")
        request = _rust.parse_timestamp_request(query)
        info = self._info(request.message_imprint.message, request.nonce)
        return der.sequence(der.sequence(der.integer(0)), self._token(info))

    def _info(self, digest: bytes, nonce: int | None) -> bytes:
        return der.sequence(
            der.integer(1),
            _POLICY,
            der.sequence(_SHA256, der.octets(digest)),
            der.integer(next(self.serials)),
            der.time(datetime.now(UTC) + self.offset),
            b"" if nonce is None else der.integer(nonce),
        )

    def _token(self, info: bytes) -> bytes:
        certificate = self.leaf.certificate
        issuer = encoded_name(certificate.issuer.public_bytes(), certificate.serial_number)
        ess = der.sequence(der.sequence(der.sequence(der.octets(hashlib.sha256(encoded(certificate)).digest()))))
        attributes = [
            der.sequence(der.oid("1.2.840.113549.1.9.3"), der.set_of(_TST_INFO)),
            der.sequence(der.oid("1.2.840.113549.1.9.4"), der.set_of(der.octets(hashlib.sha256(info).digest()))),
            der.sequence(der.oid("1.2.840.113549.1.9.16.2.47"), der.set_of(ess)),
        ]
        signature = sign(self.leaf.key, der.set_of(*attributes))
        signer = der.sequence(
            der.integer(1),
            issuer,
            _SHA256,
            der.tlv(0xA0, *sorted(attributes)),
            _ECDSA_SHA256,
            der.octets(signature),
        )
        signed = der.sequence(
            der.integer(3),
            der.set_of(_SHA256),
            der.sequence(_TST_INFO, der.tlv(0xA0, der.octets(info))),
            der.tlv(0xA0, encoded(certificate)),
            der.set_of(signer),
        )
        return der.sequence(_SIGNED_DATA, der.tlv(0xA0, signed))


def encoded_name(name: bytes, serial: int) -> bytes:
    """IssuerAndSerialNumber."""
    return der.sequence(name, der.integer(serial))
