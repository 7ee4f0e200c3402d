"""The image gate: what it answers, what it keeps, and that it refuses whatever goes wrong."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as bounded
from hypothesis import strategies as st

from blueprint.attest.images import Signature
from blueprint.attest.refusal import Refused
from blueprint.errors import UsageError
from blueprint.runtime.configuration import load
from blueprint.runtime.gate import API_VERSION, Gate, main
from blueprint.runtime.gateconfig import GateConfig
from blueprint.runtime.guard import Bounds
from blueprint.runtime.service import Counters, Service
from tests.attest.oci import FakeRegistry, provenance, signature
from tests.attest.sigstore.pki import certify
from tests.attest.world import MALLORY, RENDERER, Office
from tests.runtime.conftest import Keys, write_pair

IMAGE = "registry.example.com/serving/vllm@sha256:" + "a" * 64


def settings(keys: Keys, **more: Any) -> GateConfig:
    given = {
        "address": "127.0.0.1",
        "port": 0,
        "statusPort": 0,
        "tls": {"certificate": str(keys.certificate), "key": str(keys.key)},
        "trustedRoot": "root.json",
        "signers": [{"subject": RENDERER, "issuer": "https://token.example.com"}],
        "prefixes": ["registry.example.com/"],
    }
    return GateConfig.model_validate(given | more, strict=False)


def signed(image: str, age: timedelta = timedelta(0)) -> Signature:
    built = datetime.now(UTC) - age
    return Signature(image, RENDERER, "https://token.example.com", datetime.now(UTC), 7, built)


def under(name: str, host: str = "registry.example.com") -> str:
    """An image by its digest."""
    return f"{host}/{name}@sha256:{'b' * 64}"


def request(*images: object) -> bytes:
    return json.dumps({"apiVersion": API_VERSION, "kind": "ProviderRequest", "request": {"keys": images}}).encode()


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_answer_has_who_and_when(keys: Keys) -> None:
    gate = Gate(settings(keys), signed)
    response = gate.respond(request(IMAGE))
    assert (response["kind"], response["response"]["systemError"]) == ("ProviderResponse", "")
    (item,) = response["response"]["items"]
    assert item["key"] == IMAGE
    assert item["value"]["identity"] == RENDERER
    assert item["value"]["digest"] == "sha256:" + "a" * 64
    assert item["value"]["signedAt"].endswith("Z")


def test_each_failure_is_an_error_of_its_image(keys: Keys) -> None:
    def verify(image: str) -> Signature:
        if "good" in image:
            return signed(image)
        if "odd" in image:
            raise RuntimeError("-----BEGIN PRIVATE KEY-----\nabc")
        raise Refused("SIG403", "no signature")

    gate = Gate(settings(keys), verify)
    names = [under(name) for name in ("good", "bad", "odd")]
    names += [under("good", "elsewhere.example.com"), "registry.example.com/good:1", "a/" * 9000]
    items = gate.respond(request(*names))["response"]["items"]
    assert ["value" in item for item in items] == [True, False, False, False, False, False]
    assert [item.get("error", "")[:6] for item in items] == ["", "SIG403", "SIG402", "SIG404", "SIG401", "SIG401"]
    assert "PRIVATE" not in json.dumps(items)
    assert len(items[-1]["error"]) < 1000


def test_what_names_no_image_takes_no_room(keys: Keys) -> None:
    """Whoever may create pods chooses the keys: they must not fill the memory, nor a line of the log."""
    gate = Gate(settings(keys), signed)
    for number in range(50):
        gate.answer(f"registry.example.com/{'x' * 100_000}{number}")
        gate.answer(f"registry.example.com/a\nERROR forged {number}")
    assert not gate._cache
    gate.answer(IMAGE)
    assert list(gate._cache) == [IMAGE]


@pytest.mark.parametrize("host", ["Registry.EXAMPLE.com", "registry.example.com:443", "registry.example.com:0443"])
def test_a_registry_has_many_names_here_too(keys: Keys, host: str) -> None:
    gate = Gate(settings(keys), signed)
    assert gate.answer(under("good", host)).signature
    assert gate.answer(under("good", "registry.example.com:444")).code == "SIG404"


def test_an_answer_is_of_its_own_key_alone(keys: Keys) -> None:
    """The same digest in another repository, by another host or with a tag is asked about anew."""
    asked: list[str] = []

    def verify(image: str) -> Signature:
        asked.append(image)
        if "stranger" in image:
            raise Refused("SIG403", "no signature")
        return signed(image)

    gate = Gate(settings(keys), verify)
    assert gate.answer(under("friend")).signature
    assert not gate.answer(under("stranger")).signature
    assert gate.answer(under("friend:1")).signature
    assert gate.answer(under("friend")).signature
    assert asked == [under("friend"), under("stranger"), under("friend:1")]


def test_a_request_has_an_end(keys: Keys) -> None:
    clock = Clock()

    def verify(image: str) -> Signature:
        clock.now += 4
        return signed(image)

    gate = Gate(settings(keys, limits={"answer": "10s"}), verify, clock)
    names = [under(str(number)) for number in range(5)]
    items = gate.respond(request(*names))["response"]["items"]
    assert ["value" in item for item in items] == [True, True, True, False, False]
    assert "no time left" in items[-1]["error"]
    assert "value" in gate.respond(request(names[-1]))["response"]["items"][0]


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b'{"kind": "ProviderRequest"}', request(1), b'{"kind": "Other"}', b"[" * 100_000),
        request(*["x"] * 200),
        b'{"kind": "ProviderRequest", "request": {"keys": "x"}}',
        b'{"kind": "ProviderRequest", "request": [1]}',
        b'{"kind": "ProviderRequest", "request": "x"}',
    ],
)
def test_what_is_not_understood_is_a_system_error(keys: Keys, body: bytes) -> None:
    response = Gate(settings(keys), signed).respond(body)["response"]
    assert response["systemError"]
    assert response["items"] == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6) | st.just(IMAGE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@bounded(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    asked=_JSON, keys_=_JSON | st.lists(st.text(max_size=30) | st.just(IMAGE), max_size=4), raw=st.binary(max_size=40)
)
def test_whatever_is_asked_has_an_answer(keys: Keys, asked: Any, keys_: Any, raw: bytes) -> None:
    """Never an exception, and a value for an image that is signed alone."""
    gate = Gate(settings(keys), signed)
    bodies = [{"kind": "ProviderRequest", "request": body} for body in (asked, {"keys": keys_})]
    for data in (raw, *(json.dumps(body).encode() for body in bodies)):
        response = gate.respond(data)["response"]
        assert not (response["systemError"] and response["items"])
        assert {item["key"] for item in response["items"] if "value" in item} <= {IMAGE}


def test_answers_are_kept_for_a_while(keys: Keys) -> None:
    clock, asked = Clock(), []

    def verify(image: str) -> Signature:
        asked.append(image)
        if "bad" in image:
            raise Refused("SIG403", "no signature")
        return signed(image)

    gate = Gate(settings(keys, cache={"signed": "5m", "refused": "10s", "entries": 2}), verify, clock)
    bad = under("bad")
    for _ in range(3):
        gate.answer(IMAGE)
        gate.answer(bad)
    assert asked == [IMAGE, bad]
    clock.now += 11
    gate.answer(IMAGE)
    gate.answer(bad)
    assert asked == [IMAGE, bad, bad], "a refusal is asked again soon, so that a signature that comes late counts"
    clock.now += 301
    gate.answer(IMAGE)
    assert asked[-1] == IMAGE
    for number in range(5):
        gate.answer(under(str(number)))
    gate.answer(IMAGE)
    assert asked[-1] == IMAGE, "the cache is bounded"


def test_a_kept_signature_grows_old(keys: Keys) -> None:
    asked = []

    def verify(image: str) -> Signature:
        asked.append(image)
        return signed(image, timedelta(seconds=59, milliseconds=900))

    gate = Gate(settings(keys, maxAge="60s"), verify)
    gate.answer(IMAGE)
    time.sleep(0.15)
    gate.answer(IMAGE)
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"signers": []}, "signers"),
        ({"signers": [{"subject": RENDERER}]}, "issuer"),
        ({"signers": [{"subject": "", "issuer": "x"}]}, "subject"),
        ({"prefixes": []}, "prefixes"),
        ({"prefixes": [""]}, "prefixes"),
        ({"maxAge": "soon"}, "maxAge"),
        ({"anybody": True}, "anybody"),
        ({"trustedRoot": None}, "trustedRoot"),
    ],
)
def test_configurations_that_accept_anybody(keys: Keys, tmp_path: Path, change: dict[str, Any], says: str) -> None:
    file = tmp_path / "gate.yaml"
    given = json.loads(settings(keys).model_dump_json(by_alias=True)) | {"cache": {}, "registries": {}, "limits": {}}
    file.write_text(json.dumps(given))
    assert load(GateConfig, file).signers[0].subject == RENDERER
    file.write_text(json.dumps(given | change))
    with pytest.raises(UsageError) as caught:
        load(GateConfig, file)
    assert says in caught.value.diagnostics()


def test_counters_are_what_prometheus_reads() -> None:
    counters = Counters()
    counters.add("answers_total", result="signed")
    counters.add("answers_total", result="signed")
    counters.add("requests_total")
    assert counters.text().splitlines() == [
        "# TYPE blueprint_image_gate_answers_total counter",
        'blueprint_image_gate_answers_total{result="signed"} 2',
        "# TYPE blueprint_image_gate_requests_total counter",
        "blueprint_image_gate_requests_total 1",
    ]


# --- over the network


class Caller:
    """Gatekeeper's side."""

    def __init__(self, port: int, keys: Keys, *, caller: bool = False) -> None:
        self.port = port
        self.context = ssl.create_default_context(cafile=str(keys.authority))
        if caller:
            self.context.load_cert_chain(keys.caller, keys.caller_key)

    def post(self, body: bytes, path: str = "/verify", **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=5)
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


@pytest.fixture
def service(keys: Keys) -> Iterator[Service]:
    config = settings(keys, limits={"concurrent": 4})
    with Service(config, Gate(config, signed)) as running:
        yield running


def status(service: Service, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", service.status_port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_it_serves_over_tls(service: Service, keys: Keys) -> None:
    code, body = Caller(service.port, keys).post(request(IMAGE))
    assert code == 200
    assert json.loads(body)["response"]["items"][0]["value"]["identity"] == RENDERER
    assert status(service, "/healthz") == (200, "ok\n")
    assert status(service, "/readyz")[0] == 200
    assert status(service, "/secrets")[0] == 404
    assert 'answers_total{result="signed"} 1' in status(service, "/metrics")[1]


def test_it_is_strict_about_requests(service: Service, keys: Keys) -> None:
    caller = Caller(service.port, keys)
    assert caller.post(b"{}", "/other")[0] == 404
    with suppress(OSError):  # the answer may come, and the connection end, before everything is sent
        assert caller.post(b"x" * (300 * 1024))[0] == 413
    assert json.loads(caller.post(b"{")[1])["response"]["systemError"]
    old = ssl.create_default_context(cafile=str(keys.authority))
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    caller.context = old
    with pytest.raises(ssl.SSLError):
        caller.post(request(IMAGE))
    plain = socket.create_connection(("127.0.0.1", service.port), timeout=5)
    plain.sendall(b"POST / HTTP/1.1\r\n\r\n")
    assert b"200" not in plain.recv(100)
    plain.close()
    caller = Caller(service.port, keys)
    assert caller.post(request(IMAGE))[0] == 200


def dripped(connection: socket.socket, data: bytes, ended: threading.Event) -> bool:
    """Send a byte every twentieth of a second, for ever; whether that was cut off."""
    for byte in itertools.chain(data, itertools.repeat(ord("a"))):
        try:
            connection.sendall(bytes([byte]))
            connection.settimeout(0.05)
            if connection.recv(1) == b"":
                return True
        except TimeoutError:
            if ended.is_set():
                return False
        except OSError:
            return True
    return False


HELLO = b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc"
"""The beginning of a long handshake."""


@contextmanager
def slow_callers(port: int, count: int, data: bytes = HELLO, keys: Keys | None = None) -> Iterator[list[bool]]:
    """Callers that begin something and never end it, with `keys` a request within TLS; each says if it was cut off."""
    ended, cut = threading.Event(), list[bool]()

    def call() -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            if keys is None:
                cut.append(dripped(connection, data, ended))
                return
            context = ssl.create_default_context(cafile=str(keys.authority))
            with context.wrap_socket(connection, server_hostname="127.0.0.1") as secure:
                cut.append(dripped(secure, data, ended))

    threads = [threading.Thread(target=call, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield cut
    finally:
        ended.set()
        for thread in threads:
            thread.join(timeout=10)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("what", ["a handshake", "a header", "a body", "a probe"])
def test_callers_that_drip_are_cut_off_and_hold_up_nobody(
    keys: Keys, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time, and the request never does."""
    monkeypatch.setattr("blueprint.runtime.service._STATUS", Bounds(waiting=4, arrival=1.0, working=4, answer=1.0))
    config = settings(keys, limits={"concurrent": 2, "waiting": 4, "arrival": "1s"})
    with Service(config, Gate(config, signed)) as running:
        slow: tuple[Any, ...] = {
            "a handshake": (running.port, 3),
            "a header": (running.port, 3, b"POST /verify HTTP/1.1\r\nX: ", keys),
            "a body": (running.port, 3, b"POST / HTTP/1.1\r\nContent-Length: 9999\r\n\r\n", keys),
            "a probe": (running.status_port, 3, b"GET /healthz HTTP/1.1\r\nX: "),
        }[what]
        with slow_callers(*slow) as cut:
            for _ in range(5):
                assert Caller(running.port, keys).post(request(IMAGE))[0] == 200
                assert status(running, "/healthz") == (200, "ok\n")
            until(lambda: len(cut) == 3)
        assert cut == [True] * 3
        assert "timed_out_total 3" in status(running, "/metrics")[1]


def test_more_slow_callers_than_there_is_room_for_keep_nobody_out(keys: Keys) -> None:
    """Not the next caller is sent away, but the one that has waited longest without asking anything."""
    config = settings(keys, limits={"concurrent": 2, "waiting": 4, "arrival": "60s"})
    with Service(config, Gate(config, signed)) as running, slow_callers(running.port, 12) as cut:
        until(lambda: len(cut) >= 8)
        for _ in range(3):
            assert Caller(running.port, keys).post(request(IMAGE))[0] == 200
            assert status(running, "/healthz") == (200, "ok\n")
        assert "evicted_total" in status(running, "/metrics")[1]
        assert "timed_out_total" not in status(running, "/metrics")[1]


def test_no_more_are_answered_at_once_than_the_limit(keys: Keys) -> None:
    go, inside = threading.Event(), threading.Semaphore(0)

    def verify(image: str) -> Signature:
        inside.release()
        assert go.wait(20)
        return signed(image)

    config = settings(keys, limits={"concurrent": 2})
    found: list[int] = []
    with Service(config, Gate(config, verify)) as running:
        threads = [
            threading.Thread(
                target=lambda n=n: found.append(Caller(running.port, keys).post(request(under(str(n))))[0])
            )
            for n in range(2)
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert inside.acquire(timeout=20)
        assert Caller(running.port, keys).post(request(IMAGE))[0] == 503
        assert status(running, "/readyz")[0] == 200
        go.set()
        for thread in threads:
            thread.join(timeout=20)
        assert found == [200, 200]
        assert Caller(running.port, keys).post(request(IMAGE))[0] == 200
        assert "turned_away_total 1" in status(running, "/metrics")[1]


@pytest.mark.parametrize("length", ["-1", "\u00b2", "1_0", "9" * 5000, "0x10", ""])
def test_lengths_that_are_none(service: Service, keys: Keys, length: str) -> None:
    context = ssl.create_default_context(cafile=str(keys.authority))
    with (
        socket.create_connection(("127.0.0.1", service.port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(f"POST /verify HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode("latin-1"))
        assert b" 411 " in connection.recv(100)
    assert Caller(service.port, keys).post(request(IMAGE))[0] == 200


def test_callers_need_a_certificate_where_an_authority_is_named(keys: Keys) -> None:
    tls = {"certificate": str(keys.certificate), "key": str(keys.key), "clientAuthority": str(keys.authority)}
    config = settings(keys, tls=tls)
    with Service(config, Gate(config, signed)) as running:
        assert Caller(running.port, keys, caller=True).post(request(IMAGE))[0] == 200
        with pytest.raises(OSError):
            Caller(running.port, keys).post(request(IMAGE))


def test_a_renewed_certificate_is_taken_up(keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blueprint.runtime.service._RELOAD", 0.0)
    other = certify("next authority")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(keys.certificate.read_bytes())
    key.write_bytes(keys.key.read_bytes())
    config = settings(keys, tls={"certificate": str(certificate), "key": str(key)})
    with Service(config, Gate(config, signed)) as running:
        assert Caller(running.port, keys).post(request(IMAGE))[0] == 200
        certificate.write_bytes(b"half written")
        assert Caller(running.port, keys).post(request(IMAGE))[0] == 200
        write_pair(other, certificate, key)
        with pytest.raises(ssl.SSLError):
            Caller(running.port, keys).post(request(IMAGE))


def test_the_program_verifies_what_a_registry_holds(keys: Keys, office: Office, tmp_path: Path) -> None:
    """From the command line to the registry and back: signed in, unsigned and wrongly signed refused."""
    with FakeRegistry.running() as registry:
        good, bad, other, undated = (registry.image(f"serving/{name}") for name in ("good", "bad", "other", "undated"))
        registry.refer(good, signature(office, good))
        registry.refer(good, provenance(office, good))
        registry.refer(other, signature(office, other, MALLORY))
        (tmp_path / "root.json").write_text(json.dumps(office.store.trusted_root()))
        given = {
            "address": "127.0.0.1",
            "port": 0,
            "statusPort": 0,
            "tls": {"certificate": str(keys.certificate), "key": str(keys.key)},
            "trustedRoot": str(tmp_path / "root.json"),
            "signers": [{"subject": RENDERER, "issuer": office.store.issuer}],
            "prefixes": [f"{registry.host}/"],
            "maxAge": "1h",
            "registries": {"plainHttp": [registry.host], "timeout": "20s"},
        }
        (tmp_path / "gate.json").write_text(json.dumps(given))
        program = subprocess.Popen(
            [sys.executable, "-m", "blueprint.runtime.gate", str(tmp_path / "gate.json")],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        try:
            assert program.stderr is not None
            line = program.stderr.readline()
            port = int(line.split("listening on ")[1].split(",")[0])
            tag = f"{registry.host}/serving/good:1"
            registry.refer(undated, signature(office, undated))
            code, body = Caller(port, keys).post(request(good, bad, other, tag, undated))
            items = json.loads(body)["response"]["items"]
            assert code == 200
            assert items[0]["value"]["issuer"] == office.store.issuer
            assert [item.get("error", "")[:6] for item in items] == ["", "SIG403", "SIG104", "SIG401", "SIG105"]
        finally:
            program.send_signal(signal.SIGTERM)
            rest = program.communicate(timeout=10)[1]
        assert program.returncode == 0, rest


def test_the_program_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main([str(tmp_path / "nowhere.yaml")]) == 2
    (tmp_path / "gate.yaml").write_text("signers: []\n")
    assert main([str(tmp_path / "gate.yaml")]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_threads_share_a_gate(keys: Keys) -> None:
    gate = Gate(settings(keys, cache={"entries": 3}), signed)
    threads = [threading.Thread(target=lambda: [gate.answer(under(str(n % 7))) for n in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 'answers_total{result="signed"} 800' in gate.counters.text()
