"""A registry in memory, and images that somebody signed as cosign 3 does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

from blueprint.attest.bundle import MEDIA_TYPE
from blueprint.attest.evidence import written
from blueprint.attest.images import BUILD, SIGNATURE
from tests.attest.world import RENDERER, Office
from tests.loopback import http_server

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class FakeRegistry:
    """Repositories in memory; `modern` answers the referrers API, otherwise there is only the tag for it."""

    def __init__(self, host: str, *, modern: bool = True) -> None:
        self.host, self.modern = host, modern
        self.blobs: dict[str, bytes] = {}
        self.tags: dict[tuple[str, str], str] = {}
        self.referrers: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.requests: list[str] = []
        self.token = ""
        self.broken = False
        #: Answers that stand before all others, by path: status, body and headers.
        self.given: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.authorized: list[str] = []

    @classmethod
    @contextmanager
    def running(cls, *, modern: bool = True) -> Iterator[FakeRegistry]:
        with http_server(BaseHTTPRequestHandler) as server:
            registry = cls(f"127.0.0.1:{server.server_port}", modern=modern)
            server.RequestHandlerClass = _handler(registry)
            yield registry

    def put(self, data: bytes) -> str:
        self.blobs[_digest(data)] = data
        return _digest(data)

    def image(self, name: str, tag: str = "") -> str:
        """A new image; returns its reference by digest."""
        digest = self.put(json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "layers": [], "name": name}).encode())
        if tag:
            self.tags[name, tag] = digest
        return f"{self.host}/{name}@{digest}"

    def refer(self, image: str, bundle: bytes, *, subject: str = "", media_type: str = MEDIA_TYPE) -> str:
        """Attach a bundle to an image; returns the digest of the bundle."""
        name, _, digest = image.removeprefix(f"{self.host}/").partition("@")
        layer = {"mediaType": media_type, "digest": self.put(bundle), "size": len(bundle)}
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": media_type,
            "layers": [layer],
            "subject": {"mediaType": MANIFEST, "digest": subject or digest, "size": 1},
        }
        data = json.dumps(manifest).encode()
        row = {"mediaType": MANIFEST, "digest": self.put(data), "size": len(data), "artifactType": media_type}
        self.referrers.setdefault((name, digest), []).append(row)
        return str(layer["digest"])

    def find(self, path: str) -> bytes | None:
        _, _, rest = path.partition("/v2/")
        name, _, last = rest.rpartition("/")
        name, _, kind = name.rpartition("/")
        if kind == "referrers" or (kind == "manifests" and last.startswith("sha256-")):
            if (kind == "referrers") is not self.modern:
                return None
            rows = self.referrers.get((name, last.replace("-", ":")), [])
            return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": rows}).encode()
        return self.blobs.get(self.tags.get((name, last), last))


def _handler(registry: FakeRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            registry.requests.append(self.path)
            registry.authorized.append(self.headers.get("Authorization", ""))
            status, data, headers = 200, registry.find(self.path), {}
            if self.path.startswith("/token"):
                data = json.dumps({"token": registry.token}).encode()
            elif registry.token and self.headers.get("Authorization") != f"Bearer {registry.token}":
                status, data = 401, b"{}"
                realm = f'Bearer realm="http://{registry.host}/token",service="x"'
                headers = {"WWW-Authenticate": realm}
            if registry.broken:
                status, data = 500, b"oh"
            if data is None:
                status, data = 404, b"{}"
            if self.path in registry.given:
                status, data, headers = registry.given[self.path]
            self.send_response(status)
            for key, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(data)

    return Handler


def signature(
    office: Office,
    image: str,
    identity: str = RENDERER,
    *,
    predicate: str = SIGNATURE,
    digests: tuple[str, ...] = (),
    says: object = None,
) -> bytes:
    """The bundle that `cosign sign` leaves for an image."""
    wanted = digests or (image.rpartition(":")[2],)
    document = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "", "digest": {"sha256": digest}} for digest in wanted],
        "predicateType": predicate,
        "predicate": {} if says is None else says,
    }
    return office.sign(json.dumps(document).encode(), identity)


def provenance(
    office: Office, image: str, age: timedelta = timedelta(0), identity: str = RENDERER, *, finished: object = None
) -> bytes:
    """The bundle that `cosign attest --type slsaprovenance1` leaves for an image whose build ended so long ago."""
    ended = written(datetime.now(UTC) - age) if finished is None else finished
    says = {"buildDefinition": {}, "runDetails": {"builder": {"id": identity}, "metadata": {"finishedOn": ended}}}
    return signature(office, image, identity, predicate=BUILD, says=says)
