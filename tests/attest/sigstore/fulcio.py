"""The certificate authority: a short-lived certificate for the identity in a token, with an embedded SCT.

Sources: sigstore/fulcio docs/oid-info.md, docs/certificate-specification.md; RFC 6962 §3.2, §3.3 (SCTs).
"""

from __future__ import annotations

import base64
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.attest.sigstore import der
from tests.attest.sigstore.pki import Holder, certify, key_id, new_key, pem, sign

_SCT_LIST = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_FULCIO = "1.3.6.1.4.1.57264.1"
_LIFETIME = timedelta(minutes=10)


class Fulcio:
    """`offset` moves the time that its certificates begin at."""

    def __init__(self, issuer: str, oidc: ec.EllipticCurvePublicKey) -> None:
        self.issuer, self.oidc = issuer, oidc
        self.root = certify("fulcio root")
        self.intermediate = certify("fulcio", by=self.root, usage=ExtendedKeyUsageOID.CODE_SIGNING)
        self.ct_key = new_key()
        self.offset = timedelta(0)

    def answer(self, request: dict[str, Any], bearer: str) -> dict[str, Any]:
        """What POST /api/v2/signingCert answers."""
        token = bearer or request["credentials"]["oidcIdentityToken"]
        claims = jwt.decode(token, self.oidc, algorithms=["ES256"], audience="sigstore", issuer=self.issuer)
        if csr := request.get("certificateSigningRequest"):
            asked = x509.load_pem_x509_csr(base64.b64decode(csr))
            assert asked.is_signature_valid
            public = asked.public_key()
        else:
            proof = request["publicKeyRequest"]
            public = load_pem_public_key(proof["publicKey"]["content"].encode())
            assert isinstance(public, ec.EllipticCurvePublicKey)
            signature = base64.b64decode(proof["proofOfPossession"])
            public.verify(signature, claims["sub"].encode(), ec.ECDSA(hashes.SHA256()))
        leaf = self.issue(public, claims["sub"], claims["iss"])
        chain = [leaf, self.intermediate.certificate, self.root.certificate]
        return {"signedCertificateEmbeddedSct": {"chain": {"certificates": [pem(one) for one in chain]}}}

    def issue(self, public: Any, identity: str, issuer: str) -> x509.Certificate:
        """A certificate of `public` for an identity and issuer."""
        builder = self._builder(public, identity, issuer)
        bare = builder.sign(self.intermediate.key, hashes.SHA256()).tbs_certificate_bytes
        return builder.add_extension(self._sct(bare), critical=False).sign(self.intermediate.key, hashes.SHA256())

    def _builder(self, public: Any, identity: str, issuer: str) -> x509.CertificateBuilder:
        authority: Holder = self.intermediate
        mail = "@" in identity and "://" not in identity
        name = x509.RFC822Name(identity) if mail else x509.UniformResourceIdentifier(identity)
        start = (datetime.now(UTC) + self.offset).replace(microsecond=0)
        builder = (
            x509.CertificateBuilder(authority.certificate.subject, x509.Name([]), public, x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + _LIFETIME)
            .add_extension(x509.KeyUsage(True, *[False] * 8), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False
            )
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
        )
        for arc, value in ((1, issuer.encode()), (8, der.utf8(issuer))):
            known = x509.ObjectIdentifier(f"{_FULCIO}.{arc}")
            builder = builder.add_extension(x509.UnrecognizedExtension(known, value), critical=False)
        return builder

    def _sct(self, certificate: bytes) -> x509.UnrecognizedExtension:
        """The log's promise over the certificate without it; the extension must come last."""
        moment = int(datetime.now(UTC).timestamp() * 1000)
        issuer = key_id(self.intermediate.key.public_key())
        signed = struct.pack("!BBQH32s", 0, 0, moment, 1, issuer) + len(certificate).to_bytes(3, "big")
        signature = sign(self.ct_key, signed + certificate + b"\0\0")
        promise = struct.pack("!B32sQH", 0, key_id(self.ct_key.public_key()), moment, 0)
        promise += b"\x04\x03" + struct.pack("!H", len(signature)) + signature
        promises = struct.pack("!H", len(promise)) + promise
        return x509.UnrecognizedExtension(_SCT_LIST, der.octets(struct.pack("!H", len(promises)) + promises))
