"""One conversation with a registry, for one question: bounded in time, bytes and requests, careful with passwords.

A password goes to the registry that it is for, and to the token server that this registry itself declares; to no host
that it redirects to, and never over HTTP unless the registry was named as one without TLS. These are the rules of
google/go-containerregistry v0.21.8 pkg/v1/remote/transport/bearer.go (matchesHost, validateRealmURL); beyond them we
ask no redirected host for a token, and follow no redirect of a token server.
"""

from __future__ import annotations

import io
import ipaddress
import json
import re
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from types import TracebackType
from typing import IO, Any, Final
from urllib.parse import SplitResult, urlencode, urljoin, urlsplit

from blueprint.attest.refusal import Refused, said

LARGEST: Final = 8 * 2**20
"""Bytes of a manifest or of a bundle."""
_ALL: Final = 32 * 2**20
"""Bytes of all answers."""
_REQUESTS: Final = 128
_REDIRECTS: Final = 3
_TOKEN: Final = 64 * 2**10

_ACCEPT: Final = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_FOUND, _UNAUTHORISED, _MISSING = 200, 401, 404
_MOVED: Final = (301, 302, 303, 307, 308)
_CHALLENGE: Final = re.compile(r'(\w+)="([^"]*)"')
_HEADER: Final = re.compile(r"[\x21-\x7e]{1,16384}")


class Over(Refused):
    """The conversation is over: whatever else is asked in it is refused, too."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How registries are asked: hosts without TLS, whom to believe, passwords by host, and how long it may take."""

    plain: frozenset[str]
    context: ssl.SSLContext
    passwords: Mapping[str, str]
    seconds: float


def canonical(host: str) -> str:
    """The one name of a host: in lower case, its port without zeros before it, and without that of HTTP or HTTPS."""
    name, colon, port = host.lower().partition(":")
    port = port.lstrip("0")
    return f"{name}{colon}{port}" if port not in ("", "443", "80") else name


class Conversation:
    """Requests that end together; a context that closes what it opened. For one thread."""

    def __init__(self, manners: Manners) -> None:
        self._manners, self._ends = manners, time.monotonic() + manners.seconds
        self._requests, self._bytes = _REQUESTS, _ALL
        self._open: dict[tuple[str, str], HTTPConnection] = {}
        self._granted: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Conversation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._open.values():
            connection.close()

    def get(self, host: str, repository: str, path: str) -> bytes | None:
        """The body, None where there is nothing. Raises Refused (SIG402) where the registry does not say either."""
        try:
            return self._get(canonical(host), repository, path)
        except (OSError, HTTPException, ValueError) as error:
            kind = Over if time.monotonic() >= self._ends else Refused
            raise kind("SIG402", f"{host} cannot be asked: {said(error)}") from None

    def _get(self, host: str, repository: str, path: str) -> bytes | None:
        scheme = "http" if host in self._manners.plain else "https"
        url = f"{scheme}://{host}/v2/{repository}/{path}"
        status, data, challenge = self._follow(url, self._granted.get((host, repository), ""))
        if status == _UNAUTHORISED and challenge and (granted := self._asked_for(challenge, scheme, host, repository)):
            self._granted[host, repository] = granted
            status, data, _ = self._follow(url, granted)
        if status == _MISSING:
            return None
        if status != _FOUND:
            raise Refused("SIG402", f"{host} answers {status} for {repository}")
        if len(data) > LARGEST:
            raise Refused("SIG402", f"{host} has more than {LARGEST // 2**20} MiB for {path}")
        return data

    def _follow(self, url: str, granted: str) -> tuple[int, bytes, str]:
        """Status, body, and the challenge if it is the registry's own; redirects get no Authorization elsewhere."""
        first = here = urlsplit(url)
        for _ in range(_REDIRECTS + 1):
            own = (here.scheme, here.netloc) == (first.scheme, first.netloc)
            headers = {"Authorization": granted} if own and granted else {}
            status, data, answered = self._ask(here, headers, LARGEST)
            if status not in _MOVED:
                return status, data, (answered.getheader("WWW-Authenticate") or "") if own else ""
            here = self._next(here, answered.getheader("Location") or "")
        raise Refused("SIG402", f"{first.netloc} redirects more than {_REDIRECTS} times")

    def _next(self, here: SplitResult, location: str) -> SplitResult:
        """Where a redirect leads. TLS is not given up on the way."""
        there = urlsplit(urljoin(here.geturl(), location))
        if not there.hostname or "@" in there.netloc or there.scheme not in ("http", "https"):
            raise Refused("SIG402", f"{here.netloc} redirects to no address")
        if there.scheme == "http" and (here.scheme == "https" or canonical(there.netloc) not in self._manners.plain):
            raise Refused("SIG402", f"{here.netloc} redirects to a host without TLS")
        return there

    def _asked_for(self, challenge: str, scheme: str, host: str, repository: str) -> str:
        """The Authorization header that the registry's own challenge asks for, "" where there is none to give."""
        password = self._manners.passwords.get(host, "")
        kind, _, rest = challenge.partition(" ")
        if kind.lower() == "basic":
            return f"Basic {password}" if password else ""
        fields = dict(_CHALLENGE.findall(rest))
        if kind.lower() != "bearer" or (realm := _realm(fields.get("realm", ""), scheme, host)) is None:
            return ""
        asked = urlencode({"service": fields.get("service", ""), "scope": f"repository:{repository}:pull"})
        query = f"{realm.query}&{asked}" if realm.query else asked
        headers = {"Authorization": f"Basic {password}"} if password else {}
        status, data, _ = self._ask(realm._replace(query=query, fragment=""), headers, _TOKEN)
        answer = parsed(data) if status == _FOUND else {}
        token = answer.get("token") or answer.get("access_token")
        return f"Bearer {token}" if isinstance(token, str) and _HEADER.fullmatch(token) else ""

    def _ask(self, url: SplitResult, headers: Mapping[str, str], most: int) -> tuple[int, bytes, HTTPResponse]:
        """One answer, at most one byte more than `most` of it."""
        sent = {"Accept": _ACCEPT, "User-Agent": "blueprint", **headers}
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        key = url.scheme, url.netloc
        reused = key in self._open
        self._requests -= 1
        if self._requests < 0 or self._bytes < 0:
            raise Over("SIG402", f"{url.netloc} has more about one image than is looked at")
        try:
            return self._exchange(key, target, sent, most)
        except (OSError, HTTPException):
            # A connection that was kept may be gone by now; a new one that fails is a failure.
            if (gone := self._open.pop(key, None)) is not None:
                gone.close()
            if not reused or time.monotonic() >= self._ends:
                raise
            return self._exchange(key, target, sent, most)

    def _exchange(
        self, key: tuple[str, str], target: str, headers: Mapping[str, str], most: int
    ) -> tuple[int, bytes, HTTPResponse]:
        connection = self._open.get(key) or self._connected(key)
        connection.request("GET", target, headers=dict(headers))
        response = connection.getresponse()
        data = response.read(most + 1)
        self._bytes -= len(data)
        if connection.sock is None or not response.isclosed():
            self._open.pop(key).close()  # it ends after this answer, or what is left of the answer is not read
            response.close()
        return response.status, data, response

    def _connected(self, key: tuple[str, str]) -> HTTPConnection:
        scheme, place = key
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"more than {self._manners.seconds:g} s")
        if scheme == "http":
            connection = HTTPConnection(place, timeout=left)
        else:
            connection = HTTPSConnection(place, timeout=left, context=self._manners.context)
        self._open[key] = connection
        connection.connect()
        connection.sock = _Line(connection.sock, self._ends)
        return connection


def _realm(text: str, scheme: str, host: str) -> SplitResult | None:
    """The token server of a challenge, None for one that gets nothing: without TLS, or an address of ours inside."""
    try:
        realm = urlsplit(text)
        name = realm.hostname
        _ = realm.port
    except ValueError:
        return None
    if not name or "@" in realm.netloc or realm.scheme not in ("https", scheme):
        return None
    if canonical(realm.netloc) == host:
        return realm
    if realm.scheme != "https":
        return None
    try:
        return realm if ipaddress.ip_address(name).is_global else None
    except ValueError:
        return realm


class _Line:
    """A socket whose every wait ends with the conversation: who sends byte after byte cannot draw it out."""

    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock, self._ends, self._readers, self._closed = sock, ends, 0, False

    def makefile(self, mode: str) -> IO[bytes]:
        """What an answer is read from; `mode` is "rb"."""
        self._readers += 1
        return io.BufferedReader(_Raw(self))

    def sendall(self, data: bytes) -> None:
        """Send a request."""
        self._wait()
        self._sock.sendall(data)

    def receive(self, buffer: Any) -> int:  # noqa: ANN401 - a writable buffer
        """What there is, 0 at the end."""
        self._wait()
        return self._sock.recv_into(buffer)

    def close(self) -> None:
        """Close, once nothing reads any more."""
        self._closed = True
        if self._readers <= 0:
            self._sock.close()

    def done(self) -> None:
        """One reader less."""
        self._readers -= 1
        if self._closed:
            self.close()

    def _wait(self) -> None:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        self._sock.settimeout(left)


class _Raw(io.RawIOBase):
    def __init__(self, line: _Line) -> None:
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a writable buffer
        return self._line.receive(buffer)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._line.done()


def parsed(data: bytes) -> dict[str, Any]:
    """An object in JSON. Raises Refused (SIG402) for anything else."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused("SIG402", "the registry gave no JSON") from None
    if not isinstance(document, dict):
        raise Refused("SIG402", "the registry gave no object")
    return document
