"""All services behind one HTTP server, and the documents by which clients trust and find them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl

import jwt
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.attest.sigstore.fulcio import Fulcio
from tests.attest.sigstore.pki import ORGANISATION, b64, der, key_id, new_key, spki
from tests.attest.sigstore.rekor import RekorV1, RekorV2
from tests.attest.sigstore.tsa import TimeStampAuthority
from tests.loopback import http_server


class Sigstore:
    """One instance at `url`; two instances trust each other in nothing."""

    def __init__(self, url: str) -> None:
        self.url, self.issuer = url, f"{url}/oidc"
        self.oidc_key = new_key()
        self.fulcio = Fulcio(self.issuer, self.oidc_key.public_key())
        host = url.partition("//")[2].partition(":")[0]
        self.rekor1, self.rekor2 = RekorV1(host), RekorV2(host)
        self.tsa = TimeStampAuthority()
        self.requests: list[str] = []
        """Paths that were asked for, so that a test can show that verifying asks for none."""

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Sigstore]:
        """An instance on a free port of loopback, until the context ends."""
        with http_server(BaseHTTPRequestHandler) as server:
            store = cls(f"http://127.0.0.1:{server.server_port}")
            server.RequestHandlerClass = _handler(store)
            yield store

    def token(self, identity: str, **claims: Any) -> str:
        """An identity token that Fulcio here accepts for five minutes."""
        now = int(datetime.now(UTC).timestamp())
        body = {"iss": self.issuer, "sub": identity, "aud": "sigstore", "iat": now, "nbf": now - 5, "exp": now + 300}
        return jwt.encode(body | claims, self.oidc_key, algorithm="ES256", headers={"kid": "1"})

    def trusted_root(self) -> dict[str, Any]:
        """The trusted root (media type …trustedroot+json;version=0.1)."""
        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [self._log(self.rekor1.key, self.url), self._log(self.rekor2.key, self.url)],
            "certificateAuthorities": [
                self._authority(self.fulcio.intermediate.certificate, self.fulcio.root.certificate)
            ],
            "ctlogs": [self._log(self.fulcio.ct_key, f"{self.url}/ct")],
            "timestampAuthorities": [self._authority(self.tsa.leaf.certificate, self.tsa.root.certificate)],
        }

    def signing_config(self, *, rekor: int = 2, tsa: bool = True) -> dict[str, Any]:
        """Where to sign (media type …signingconfig.v0.2+json)."""
        times = [self._service(f"{self.url}/api/v1/timestamp")] if tsa else []
        return {
            "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
            "caUrls": [self._service(self.url)],
            "oidcUrls": [self._service(self.issuer)],
            "rekorTlogUrls": [self._service(self.url, rekor)],
            "rekorTlogConfig": {"selector": "ANY"},
            "tsaUrls": times,
            "tsaConfig": {"selector": "ANY"},
        }

    def trust_config(self, *, rekor: int = 2, tsa: bool = True) -> str:
        """Both in one document, as `--trust-config` of sigstore-python and of blueprint reads it."""
        return json.dumps(
            {
                "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
                "trustedRoot": self.trusted_root(),
                "signingConfig": self.signing_config(rekor=rekor, tsa=tsa),
            }
        )

    @property
    def _since(self) -> dict[str, str]:
        return {"start": (datetime.now(UTC) - timedelta(days=29)).strftime("%Y-%m-%dT%H:%M:%SZ")}

    def _service(self, url: str, version: int = 1) -> dict[str, Any]:
        return {"url": url, "majorApiVersion": version, "validFor": self._since, "operator": ORGANISATION}

    def _log(self, key: ec.EllipticCurvePrivateKey, url: str) -> dict[str, Any]:
        public = key.public_key()
        details = {"rawBytes": b64(spki(public)), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": self._since}
        return {
            "baseUrl": url,
            "hashAlgorithm": "SHA2_256",
            "publicKey": details,
            "logId": {"keyId": b64(key_id(public))},
            "operator": ORGANISATION,
        }

    def _authority(self, *chain: x509.Certificate) -> dict[str, Any]:
        return {
            "subject": {"organization": ORGANISATION, "commonName": "sigstore"},
            "uri": self.url,
            "certChain": {"certificates": [{"rawBytes": b64(der(one))} for one in chain]},
            "validFor": self._since,
            "operator": ORGANISATION,
        }


def _handler(store: Sigstore) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def answer(self, status: int, body: Any, kind: str = "application/json", **headers: str) -> None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            store.requests.append(self.path)
            if self.path.endswith("/.well-known/openid-configuration"):
                paths = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "keys"}
                self.answer(200, {"issuer": store.issuer} | {k: f"{store.issuer}/{v}" for k, v in paths.items()})
            elif self.path.endswith("/publicKey"):
                public = store.rekor1.key.public_key()
                self.answer(200, public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
            elif self.path.startswith("/api/v2/tile/"):
                tile = store.rekor2.tile(self.path.removeprefix("/api/v2/tile/"))
                self.answer(404, {}) if tile is None else self.answer(200, tile, "application/octet-stream")
            elif self.path.startswith("/api/v1/log/proof?"):
                asked = dict(parse_qsl(self.path.partition("?")[2]))
                self.answer(200, store.rekor1.proof(int(asked["firstSize"]), int(asked["lastSize"])))
            else:
                self.answer(404, {"code": 404, "message": "no such path"})

        def do_POST(self) -> None:
            store.requests.append(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                if self.path == "/api/v2/signingCert":
                    bearer = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
                    self.answer(200, store.fulcio.answer(json.loads(raw), bearer))
                elif self.path == "/api/v1/log/entries":
                    name, entry = store.rekor1.answer(json.loads(raw))
                    self.answer(201, entry, Location=f"{self.path}/{name}", ETag=name)
                elif self.path == "/api/v2/log/entries":
                    self.answer(201, store.rekor2.answer(json.loads(raw)))
                elif self.path == "/api/v1/timestamp":
                    self.answer(201, store.tsa.answer(raw), "application/timestamp-reply")
                else:
                    self.answer(404, {"code": 404, "message": "no such path"})
            except Exception as error:
                self.answer(400, {"code": 400, "message": f"{type(error).__name__}: {error}"})

    return Handler
