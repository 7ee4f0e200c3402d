"""What a throw-away API server needs to know of secrets, made without a cryptography library."""

from __future__ import annotations

import base64
import secrets

# The order of NIST P-256 (FIPS 186-4, D.1.2.3); a private key is a number from 1 to one less.
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def ec_private_key() -> str:
    """A fresh P-256 private key as PEM, in the form of RFC 5915 without the optional public key.

    Go computes the public key from it (crypto/x509 ParseECPrivateKey), so one file serves a kube-apiserver both to
    sign and to verify the tokens of service accounts.
    """
    number = (secrets.randbelow(_P256_ORDER - 1) + 1).to_bytes(32, "big")
    curve = bytes.fromhex("a00a06082a8648ce3d030107")
    fields = b"\x02\x01\x01" + b"\x04\x20" + number + curve
    body = base64.b64encode(b"\x30" + bytes([len(fields)]) + fields).decode("ascii")
    lines = "\n".join(body[start : start + 64] for start in range(0, len(body), 64))
    return f"-----BEGIN EC PRIVATE KEY-----\n{lines}\n-----END EC PRIVATE KEY-----\n"
