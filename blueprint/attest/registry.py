"""Read from an OCI registry: manifests, blobs, and what refers to an image. Nothing is ever written.

Source: opencontainers/distribution-spec v1.1 (pull, "Listing Referrers", the tag of registries without that API).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import urllib3

from blueprint.attest.refusal import Refused, said
from blueprint.check.images import image
from blueprint.errors import UsageError

LARGEST: Final = 8 * 2**20
"""Bytes of a manifest or of a bundle."""

_ACCEPT: Final = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_FOUND, _UNAUTHORISED, _MISSING = 200, 401, 404
_CHALLENGE: Final = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Reference:
    """An image by its digest: the host of the registry, the repository there, and `sha256:<64 hex>`."""

    host: str
    repository: str
    digest: str

    def __str__(self) -> str:
        return f"{self.host}/{self.repository}@{self.digest}"


def reference(text: str) -> Reference:
    """Read a reference that must carry its digest. Raises Refused (SIG401): a tag may be moved after it was judged."""
    host, repository, _, digest = parts(text)
    if not digest.startswith("sha256:"):
        raise Refused("SIG401", f"{text} is not named by a digest", fix="write registry/name@sha256:<64 hex digits>")
    return Reference(host, repository, digest)


def named(text: str) -> str:
    """An image, or a prefix of images, with the one name of its registry.

    Hosts ignore case, ports may begin with zeros, and those of HTTP and HTTPS need not be said: whoever compares
    prefixes as text lets the others pass.
    """
    host, slash, rest = text.partition("/")
    name, colon, port = host.lower().partition(":")
    port = port.lstrip("0")
    return f"{name}{colon}{port}{slash}{rest}" if port not in ("", "443", "80") else f"{name}{slash}{rest}"


def parts(text: str) -> tuple[str, str, str, str]:
    """Host, repository, tag and digest of an image that names its registry. Raises Refused (SIG401)."""
    found = image(text)
    host, slash, repository = found.repository.partition("/")
    if found.problem or not slash or not (set(host) & set(".:") or host == "localhost"):
        raise Refused("SIG401", f"{text!r} is no image with its registry" + f": {found.problem}" * bool(found.problem))
    return host, repository, found.tag, found.digest


class Registry:
    """A client of registries: `plain` are hosts that are asked without TLS, `authority` a PEM file of a CA.

    `credentials` is a config.json of Docker, whose secrets go to the host that they are for and nowhere else.
    """

    def __init__(
        self,
        *,
        plain: Collection[str] = (),
        authority: Path | None = None,
        credentials: Path | None = None,
        seconds: float = 5.0,
    ) -> None:
        self._plain = frozenset(plain)
        self._auths = _auths(credentials)
        self._pool = urllib3.PoolManager(
            ca_certs=str(authority) if authority else None,
            cert_reqs="CERT_REQUIRED",
            timeout=urllib3.Timeout(total=seconds),
            retries=urllib3.Retry(1, redirect=3, raise_on_status=False),
            maxsize=16,
        )

    def resolve(self, host: str, repository: str, tag: str) -> str:
        """The digest that a tag has now. Raises Refused (SIG402)."""
        data = self._get(host, repository, f"manifests/{tag}")
        if data is None:
            raise Refused("SIG402", f"{host}/{repository}:{tag} is not in the registry")
        return f"sha256:{sha256(data).hexdigest()}"

    def manifest(self, ref: Reference, digest: str) -> dict[str, Any]:
        """A manifest whose digest was checked. Raises Refused (SIG402)."""
        return _json(self._checked(ref, "manifests", digest))

    def blob(self, ref: Reference, digest: str) -> bytes:
        """A blob whose digest was checked. Raises Refused (SIG402)."""
        return self._checked(ref, "blobs", digest)

    def referrers(self, ref: Reference) -> list[dict[str, Any]]:
        """Descriptors of what refers to an image, by the API or by the tag that stands in for it; none is no error."""
        data = self._get(ref.host, ref.repository, f"referrers/{ref.digest}")
        if data is None:
            data = self._get(ref.host, ref.repository, f"manifests/{ref.digest.replace(':', '-')}")
        rows = _json(data).get("manifests") if data is not None else []
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []

    def _checked(self, ref: Reference, kind: str, digest: str) -> bytes:
        data = self._get(ref.host, ref.repository, f"{kind}/{digest}")
        if data is None:
            raise Refused("SIG402", f"{ref.host}/{ref.repository} has no {digest}")
        if digest != f"sha256:{sha256(data).hexdigest()}":
            raise Refused("SIG402", f"the registry gave something else for {digest}")
        return data

    def _get(self, host: str, repository: str, path: str) -> bytes | None:
        """The body, None where there is nothing. Raises Refused (SIG402) where the registry does not say either."""
        scheme = "http" if host in self._plain else "https"
        url = f"{scheme}://{host}/v2/{repository}/{path}"
        headers = {"Accept": _ACCEPT, "User-Agent": "blueprint"}
        try:
            response = self._ask(url, headers)
            if response.status == _UNAUTHORISED and (granted := self._granted(host, repository, response.headers)):
                response.release_conn()
                response = self._ask(url, headers | {"Authorization": granted})
            try:
                if response.status == _MISSING:
                    return None
                if response.status != _FOUND:
                    raise Refused("SIG402", f"{host} answers {response.status} for {repository}")
                data = response.read(LARGEST + 1)
            finally:
                response.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise Refused("SIG402", f"{host} cannot be asked: {said(error)}") from None
        if len(data) > LARGEST:
            raise Refused("SIG402", f"{host} has more than {LARGEST // 2**20} MiB for {path}")
        return data

    def _ask(self, url: str, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        return self._pool.request("GET", url, headers=headers, preload_content=False)

    def _granted(self, host: str, repository: str, headers: Mapping[str, str]) -> str:
        """The Authorization header that a challenge asks for, "" where there is none to give."""
        challenge = headers.get("WWW-Authenticate", "")
        basic = self._auths.get(host)
        scheme, _, rest = challenge.partition(" ")
        if scheme.lower() == "basic":
            return f"Basic {basic}" if basic else ""
        fields = dict(_CHALLENGE.findall(rest))
        realm = fields.get("realm", "")
        if scheme.lower() != "bearer" or not realm.startswith("https://" if host not in self._plain else "http"):
            return ""
        given = {"Authorization": f"Basic {basic}"} if basic else {}
        asked = {"service": fields.get("service", ""), "scope": f"repository:{repository}:pull"}
        response = self._pool.request("GET", realm, fields=asked, headers=given)
        token = _json(response.data).get("token") or _json(response.data).get("access_token")
        return f"Bearer {token}" if response.status == _FOUND and isinstance(token, str) else ""


def _json(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused("SIG402", "the registry gave no JSON") from None
    if not isinstance(document, dict):
        raise Refused("SIG402", "the registry gave no object")
    return document


def _auths(file: Path | None) -> dict[str, str]:
    """Host → base64 of user and password; the file's words are in no message."""
    if file is None:
        return {}
    try:
        rows = json.loads(file.read_bytes())["auths"]
        return {host: _basic(row) for host, row in rows.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UsageError("this is no config.json with credentials", where=str(file)) from None


def _basic(row: Mapping[str, str]) -> str:
    if "auth" in row:
        return str(row["auth"])
    return base64.b64encode(f"{row['username']}:{row['password']}".encode()).decode()
