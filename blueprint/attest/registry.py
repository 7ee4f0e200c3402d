"""Read from an OCI registry: manifests, blobs, and what refers to an image. Nothing is ever written.

Source: opencontainers/distribution-spec v1.1 (pull, "Listing Referrers", the tag of registries without that API).
"""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from blueprint.attest.conversation import Conversation, Manners, canonical, parsed
from blueprint.attest.refusal import Refused
from blueprint.check.images import image
from blueprint.errors import UsageError

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


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
    if not _DIGEST.fullmatch(digest):
        raise Refused("SIG401", f"{text} is not named by a digest", fix="write registry/name@sha256:<64 hex digits>")
    return Reference(host, repository, digest)


def named(text: str) -> str:
    """An image, or a prefix of images, with the one name of its registry.

    Hosts ignore case, ports may begin with zeros, and those of HTTP and HTTPS need not be said: whoever compares
    prefixes as text lets the others pass.
    """
    host, slash, rest = text.partition("/")
    return f"{canonical(host)}{slash}{rest}"


def parts(text: str) -> tuple[str, str, str, str]:
    """Host, repository, tag and digest of an image that names its registry. Raises Refused (SIG401)."""
    found = image(text)
    host, slash, repository = found.repository.partition("/")
    if found.problem or not slash or not (set(host) & set(".:") or host == "localhost"):
        raise Refused("SIG401", f"{text!r} is no image with its registry" + f": {found.problem}" * bool(found.problem))
    return host, repository, found.tag, found.digest


class Registry:
    """A client of registries: `plain` are hosts that are asked without TLS, `authority` a PEM file of a CA.

    `credentials` is a config.json of Docker, whose secrets go to the host that they are for and to the token server
    that it declares. `seconds` is how long all requests about one image may take.
    """

    def __init__(
        self,
        *,
        plain: Collection[str] = (),
        authority: Path | None = None,
        credentials: Path | None = None,
        seconds: float = 30.0,
    ) -> None:
        try:
            context = ssl.create_default_context(cafile=str(authority) if authority else None)
        except (OSError, ssl.SSLError):
            raise UsageError("this is no certificate of an authority", where=str(authority)) from None
        self._manners = Manners(frozenset(map(canonical, plain)), context, _passwords(credentials), seconds)

    def conversation(self) -> Conversation:
        """A new conversation, about one image."""
        return Conversation(self._manners)


def resolve(asked: Conversation, host: str, repository: str, tag: str) -> str:
    """The digest that a tag has now. Raises Refused (SIG402)."""
    data = asked.get(host, repository, f"manifests/{tag}")
    if data is None:
        raise Refused("SIG402", f"{host}/{repository}:{tag} is not in the registry")
    return f"sha256:{sha256(data).hexdigest()}"


def manifest(asked: Conversation, ref: Reference, digest: object) -> dict[str, Any]:
    """A manifest, whose bytes have the digest. Raises Refused (SIG402)."""
    return parsed(_checked(asked, ref, "manifests", digest))


def blob(asked: Conversation, ref: Reference, digest: object) -> bytes:
    """A blob, whose bytes have the digest. Raises Refused (SIG402)."""
    return _checked(asked, ref, "blobs", digest)


def referrers(asked: Conversation, ref: Reference) -> list[dict[str, Any]]:
    """Descriptors of what refers to an image, by the API or by the tag that stands in for it; none is no error."""
    data = asked.get(ref.host, ref.repository, f"referrers/{ref.digest}")
    if data is None:
        data = asked.get(ref.host, ref.repository, f"manifests/{ref.digest.replace(':', '-')}")
    rows = parsed(data).get("manifests") if data is not None else []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _checked(asked: Conversation, ref: Reference, kind: str, digest: object) -> bytes:
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise Refused("SIG402", f"{ref.host}/{ref.repository} names something by no SHA-256 digest")
    data = asked.get(ref.host, ref.repository, f"{kind}/{digest}")
    if data is None:
        raise Refused("SIG402", f"{ref.host}/{ref.repository} has no {digest}")
    if digest != f"sha256:{sha256(data).hexdigest()}":
        raise Refused("SIG402", f"the registry gave something else for {digest}")
    return data


def _passwords(file: Path | None) -> dict[str, str]:
    """Host → base64 of user and password; the file's words are in no message."""
    if file is None:
        return {}
    try:
        rows = json.loads(file.read_bytes())["auths"]
        return {_host(host): _basic(row) for host, row in rows.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UsageError("this is no config.json with credentials", where=str(file)) from None


def _host(text: str) -> str:
    """The host of a key, which may be an address as docker login writes it: `https://registry.example.com/v2/`."""
    return canonical(text.rpartition("://")[2].partition("/")[0])


def _basic(row: Mapping[str, str]) -> str:
    if "auth" in row:
        return base64.b64encode(base64.b64decode(row["auth"], validate=True)).decode()
    return base64.b64encode(f"{row['username']}:{row['password']}".encode()).decode()
