"""Asking a registry: where a password goes, how long it may take, and that every answer is a value."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blueprint.attest.bundle import MEDIA_TYPE
from blueprint.attest.conversation import Over, _realm
from blueprint.attest.images import verify_image
from blueprint.attest.refusal import Refused
from blueprint.attest.registry import Registry
from blueprint.errors import UsageError
from tests.attest.oci import FakeRegistry, signature
from tests.attest.world import Office

PASSWORD = base64.b64encode(b"robot:secret").decode()


@contextmanager
def two() -> Iterator[tuple[FakeRegistry, FakeRegistry]]:
    with FakeRegistry.running() as first, FakeRegistry.running() as second:
        yield first, second


def client(folder: Path, *plain: FakeRegistry, of: FakeRegistry, seconds: float = 5.0) -> Registry:
    """A client that has a password for one registry."""
    file = folder / "config.json"
    file.write_text(json.dumps({"auths": {of.host: {"auth": PASSWORD}}}))
    return Registry(plain=[one.host for one in plain], credentials=file, seconds=seconds)


def moved(place: str) -> tuple[int, bytes, dict[str, str]]:
    return 307, b"", {"Location": place}


def challenge(text: str) -> tuple[int, bytes, dict[str, str]]:
    return 401, b"{}", {"WWW-Authenticate": text}


def test_a_password_goes_to_its_registry_and_not_where_it_redirects_to(tmp_path: Path) -> None:
    with two() as (mine, other):
        mine.put(b"here")
        # Basic, at the registry itself.
        mine.given["/v2/app/blobs/a"] = challenge('Basic realm="x"')
        with client(tmp_path, mine, other, of=mine).conversation() as asked, pytest.raises(Refused, match="401"):
            asked.get(mine.host, "app", "blobs/a")
        assert mine.authorized == ["", f"Basic {PASSWORD}"]
        # A redirect: the other host gets nothing, even where it asks.
        mine.token = "a-pull-token"
        (tmp_path / "b").mkdir()
        mine.given["/v2/app/blobs/b"] = moved(f"http://{other.host}/cdn/b")
        other.given["/cdn/b"] = challenge('Basic realm="x"')
        with client(tmp_path, mine, other, of=mine).conversation() as asked:
            asked._granted[mine.host, "app"] = "Bearer a-pull-token"
            with pytest.raises(Refused, match="401"):
                asked.get(mine.host, "app", "blobs/b")
            other.given["/cdn/b"] = (200, b"there", {})
            assert asked.get(mine.host, "app", "blobs/b") == b"there"
        assert mine.authorized[-1] == "Bearer a-pull-token"
        assert set(other.authorized) == {""}
        # A redirect within the registry keeps what was granted.
        mine.given["/v2/app/blobs/c"] = moved("/v2/app/blobs/d")
        mine.given["/v2/app/blobs/d"] = (200, b"d", {})
        with client(tmp_path, mine, of=mine).conversation() as asked:
            asked._granted[mine.host, "app"] = "Bearer a-pull-token"
            assert asked.get(mine.host, "app", "blobs/c") == b"d"
        assert mine.authorized[-1] == "Bearer a-pull-token"


@pytest.mark.parametrize(
    "realm",
    ["http://{other}/token", "ftp://{mine}/token", "//{other}/token", "http://user@{mine}/token", "", "http://[::1/"],
)
def test_a_token_server_that_gets_no_password(tmp_path: Path, realm: str) -> None:
    with two() as (mine, other):
        text = realm.format(mine=mine.host, other=other.host)
        mine.given["/v2/app/blobs/a"] = challenge(f'Bearer realm="{text}",service="x"')
        with client(tmp_path, mine, other, of=mine).conversation() as asked, pytest.raises(Refused, match="401"):
            asked.get(mine.host, "app", "blobs/a")
        assert mine.requests == ["/v2/app/blobs/a"]
        assert other.requests == []
        # The registry's own token server is asked with it.
        mine.given["/v2/app/blobs/a"] = challenge(f'Bearer realm="http://{mine.host}/token",service="x"')
        with client(tmp_path, mine, other, of=mine).conversation() as asked, pytest.raises(Refused, match="401"):
            asked.get(mine.host, "app", "blobs/a")
        assert f"Basic {PASSWORD}" in mine.authorized


@pytest.mark.parametrize(
    ("realm", "asked"),
    [
        ("https://auth.example.com/token", True),
        ("https://r.example.com/token", True),
        ("https://R.example.com:443/token", True),
        ("http://r.example.com/token", False),
        ("http://auth.example.com/token", False),
        ("https://169.254.169.254/token", False),
        ("https://10.0.0.1/token", False),
        ("https://[::1]/token", False),
        ("https://8.8.8.8/token", True),
        ("https://user:word@auth.example.com/token", False),
        ("https://auth.example.com:x/token", False),
        ("file:///etc/passwd", False),
    ],
)
def test_token_servers(realm: str, asked: bool) -> None:
    assert (_realm(realm, "https", "r.example.com") is not None) is asked


def test_a_token_server_is_not_followed_elsewhere(tmp_path: Path) -> None:
    with two() as (mine, other):
        mine.given["/v2/app/blobs/a"] = challenge(f'Bearer realm="http://{mine.host}/move"')
        mine.given["/move?service=&scope=repository%3Aapp%3Apull"] = moved(f"http://{other.host}/token")
        with client(tmp_path, mine, other, of=mine).conversation() as asked, pytest.raises(Refused, match="401"):
            asked.get(mine.host, "app", "blobs/a")
        assert other.requests == []


def test_nothing_is_asked_without_tls_that_was_not_named(tmp_path: Path) -> None:
    with two() as (mine, other):
        mine.given["/v2/app/blobs/a"] = moved(f"http://{other.host}/a")
        other.given["/a"] = (200, b"a", {})
        with client(tmp_path, mine, of=mine).conversation() as asked, pytest.raises(Refused, match="without TLS"):
            asked.get(mine.host, "app", "blobs/a")
        assert other.requests == []
        with client(tmp_path, mine, other, of=mine).conversation() as asked:
            assert asked.get(mine.host, "app", "blobs/a") == b"a"


@pytest.mark.parametrize("place", ["", "mailto:a@b", "http://a@b/", "http://[::1/", "/v2/app/blobs/a", "http://"])
def test_redirects_to_nowhere(tmp_path: Path, place: str) -> None:
    with FakeRegistry.running() as mine:
        mine.given["/v2/app/blobs/a"] = moved(place)
        with client(tmp_path, mine, of=mine).conversation() as asked, pytest.raises(Refused):
            asked.get(mine.host, "app", "blobs/a")
        mine.given["/v2/app/blobs/a"] = (200, b"a", {})
        with client(tmp_path, mine, of=mine).conversation() as asked:
            assert asked.get(mine.host.upper(), "app", "blobs/a") == b"a"


@pytest.mark.parametrize(
    "config",
    ["[]", '{"auths": 5}', '{"auths": {"x": 5}}', '{"auths": {"x": {"auth": "é"}}}', '{"auths": {"x": {"auth": 5}}}'],
)
def test_files_with_passwords_that_cannot_be_read(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(UsageError):
        Registry(credentials=tmp_path / "config.json")
    key = "https://R.example.com/v2/"
    (tmp_path / "config.json").write_text(json.dumps({"auths": {key: {"username": "robot", "password": "secret"}}}))
    assert Registry(credentials=tmp_path / "config.json")._manners.passwords == {"r.example.com": PASSWORD}


@contextmanager
def dripping(*pieces: bytes) -> Iterator[str]:
    """A server that gives the pieces, and then a byte every twentieth of a second for ever."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                try:
                    for piece in pieces:
                        connection.sendall(piece)
                    while not ended.wait(0.05):
                        connection.sendall(b"a")
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


@pytest.mark.parametrize(
    "pieces",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\nX: ",),
        (b"",),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",),
    ],
    ids=["body", "header", "status", "chunk"],
)
def test_a_registry_that_drips_is_left_in_time(pieces: tuple[bytes, ...]) -> None:
    with dripping(*pieces) as host, Registry(plain=[host], seconds=0.5).conversation() as asked:
        with pytest.raises(Over, match="cannot be asked"):
            asked.get(host, "app", "blobs/a")
        with pytest.raises(Over):
            asked.get(host, "app", "blobs/a")


def test_a_large_answer_is_not_read_to_its_end(tmp_path: Path) -> None:
    with FakeRegistry.running() as mine:
        mine.given["/v2/app/blobs/a"] = (200, b" " * (8 * 2**20 + 1), {})
        mine.given["/v2/app/blobs/b"] = (200, b" " * (8 * 2**20), {})
        with client(tmp_path, mine, of=mine).conversation() as asked:
            with pytest.raises(Refused, match="8 MiB"):
                asked.get(mine.host, "app", "blobs/a")
            for _ in range(3):
                assert asked.get(mine.host, "app", "blobs/b")
            with pytest.raises(Over, match="more about one image"):
                asked.get(mine.host, "app", "blobs/b")


def test_a_connection_that_was_kept_and_ended_is_opened_again(tmp_path: Path) -> None:
    with FakeRegistry.running() as mine:
        mine.given["/v2/app/blobs/a"] = (200, b"a", {"Connection": "close"})
        with client(tmp_path, mine, of=mine).conversation() as asked:
            for _ in range(3):
                assert asked.get(mine.host, "app", "blobs/a") == b"a"
            for connection in asked._open.values():
                connection.sock._sock.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]
            assert asked.get(mine.host, "app", "blobs/a") == b"a"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_KEYS = ("mediaType", "artifactType", "digest", "size", "annotations", "subject", "layers", "manifests")
_VALUES = _JSON | st.sampled_from([MEDIA_TYPE, "sha256:" + "0" * 64])
_OBJECT = st.dictionaries(st.sampled_from(_KEYS), _VALUES | st.lists(st.dictionaries(st.sampled_from(_KEYS), _VALUES)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    listing=_OBJECT | _JSON, row=_OBJECT, manifest=_OBJECT | _JSON, raw=st.binary(max_size=16), which=st.integers(0, 3)
)
def test_every_answer_is_a_value(
    world: FakeRegistry, office: Office, listing: Any, row: Any, manifest: Any, raw: bytes, which: int
) -> None:
    """Of lists, of rows, of manifests and of bytes that are none of these, with a good signature before and behind."""
    image = world.image(f"fuzz/{which}")
    name, _, digest = image.removeprefix(f"{world.host}/").partition("@")
    world.referrers[name, digest] = []
    if which == 0:
        world.given[f"/v2/{name}/referrers/{digest}"] = (200, json.dumps(listing).encode(), {})
    elif which == 1:
        world.given[f"/v2/{name}/referrers/{digest}"] = (200, raw, {})
    else:
        data = raw if which == 3 else json.dumps(manifest).encode()
        given = row | {"digest": world.put(data), "artifactType": MEDIA_TYPE}
        world.referrers[name, digest] = [row, given]
    asked = Registry(plain=[world.host])
    with pytest.raises(Refused):
        verify_image(image, asked, office.prover())
    world.given.clear()
    world.refer(image, SIGNED.setdefault(image, signature(office, image)))
    assert verify_image(image, asked, office.prover())


SIGNED: dict[str, bytes] = {}


@pytest.fixture(scope="module")
def world() -> Iterator[FakeRegistry]:
    with FakeRegistry.running() as running:
        yield running
