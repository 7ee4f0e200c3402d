"""An offline Sigstore for tests: an OIDC issuer, Fulcio with embedded SCTs, Rekor v1 and v2, and a time authority.

Everything runs in this process on loopback, makes its own keys, and is trusted by nobody but its own trusted root.
sigstore-python and cosign both sign and verify against it.
"""

from tests.attest.sigstore.instance import Sigstore

__all__ = ["Sigstore"]
