"""No secret is ever written: tokens, passwords and keys are planted, verbs run well and badly, and all is searched.

The services here are hostile: they answer with everything that they were sent.
"""

from __future__ import annotations

import base64
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, PublicFormat

from blueprint.attest.sign import PASSWORD, TOKEN
from blueprint.runtime.gate import Gate
from blueprint.runtime.gateconfig import GateConfig
from tests.attest.oci import FakeRegistry, signature
from tests.attest.test_verbs import Shell, platform, shell  # noqa: F401 - fixtures
from tests.attest.world import RENDERER
from tests.loopback import http_server

PULL, KEY_PASSWORD = "correct-horse-battery", "staple-of-the-key"


@dataclass
class Vault:
    """The planted secrets, and the files in which they may lie."""

    shell: Shell
    secrets: list[str]
    own: set[Path] = field(default_factory=set)

    def plant(self, name: str, data: bytes) -> str:
        (self.shell.folder / name).write_bytes(data)
        self.own.add(self.shell.folder / name)
        return name

    def search(self, text: str) -> None:
        """Neither in words nor in any file: as it is, in base64, for a URL, or the part of a token that signs it."""
        forms = {form for secret in self.secrets for form in _forms(secret)}
        assert [form for form in forms if form in text] == []
        for file in self.shell.folder.rglob("*"):
            if file.is_file() and file not in self.own:
                data = file.read_bytes()
                assert [form for form in forms if form.encode() in data] == [], file


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    yield base64.b64encode(secret.encode()).decode().rstrip("=")
    yield secret[len(secret) // 2 :]


@pytest.fixture
def vault(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Vault:  # noqa: F811
    token = (shell.folder / "token").read_text()
    held = Vault(
        shell, [token, token.rpartition(".")[2], PULL, f"robot:{PULL}", KEY_PASSWORD], {shell.folder / "token"}
    )
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(KEY_PASSWORD.encode()))
    held.plant("key.pem", pem)
    held.secrets.append(pem.decode().splitlines()[1])
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (shell.folder / "key.pub").write_bytes(public)
    monkeypatch.setenv(PASSWORD, KEY_PASSWORD)
    return held


@contextmanager
def echo(status: int) -> Iterator[str]:
    """A service that answers with what it was sent, headers and all."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            data = str(self.headers).encode() + body
            self.send_response(status, f"no: {self.headers.get('Authorization', '')}")
            self.send_header("WWW-Authenticate", f'Bearer realm="http://{self.headers["Host"]}/token",service="x"')
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

    with http_server(Handler) as server:
        yield f"127.0.0.1:{server.server_port}"


Run = Callable[[Vault], str]


def _sign(*more: str, code: int = 0) -> Run:
    return lambda vault: vault.shell.run("sign", "platform/rendered", *more, code=code)


def _with(name: str, data: Callable[[Vault], bytes], run: Run) -> Run:
    def both(vault: Vault) -> str:
        vault.plant(name, data(vault))
        return run(vault)

    return both


def _hostile(vault: Vault) -> str:
    """Every service of the Sigstore answers 400 with the token that it got."""
    said = ""
    for status in (400, 401, 500):
        with echo(status) as host:
            config = vault.shell.office.store.trust_config().replace(vault.shell.office.store.url, f"http://{host}")
            (vault.shell.folder / "hostile.json").write_text(config)
            said += vault.shell.run(
                *("sign", "platform/rendered", "--trust-config", "hostile.json", "--identity-token", "token"), code=3
            )
    return said


def _registry(vault: Vault) -> str:
    """A registry that asks for a login, then fails with it; and one that works."""
    said = ""
    for status in (400, 401, 403, 500):
        with echo(status) as host:
            auth = {"auths": {host: {"username": "robot", "password": PULL}}}
            vault.plant("config.json", json.dumps(auth).encode())
            given = ["--plain-http", host, "--registry-config", "config.json"]
            said += vault.shell.run("images", "lock", f"{host}/a/b:1", *vault.shell.who, *given, code=1)
    with FakeRegistry.running() as registry:
        image = registry.image("serving/vllm", "1")
        registry.refer(image, signature(vault.shell.office, image))
        registry.token = "a-pull-token"
        auth = {"auths": {registry.host: {"auth": base64.b64encode(f"robot:{PULL}".encode()).decode()}}}
        vault.plant("config.json", json.dumps(auth).encode())
        given = ["--plain-http", registry.host, "--registry-config", "config.json"]
        said += vault.shell.run("images", "lock", f"{registry.host}/serving/vllm:1", *vault.shell.who, *given)
    return said


def _gate(vault: Vault) -> str:
    """The gate's answers, and its log."""
    with echo(500) as host:
        auth = {"auths": {host: {"username": "robot", "password": PULL}}}
        given = {
            "tls": {"certificate": "-", "key": "-"},
            "trustedRoot": str(vault.shell.folder / "root.json"),
            "signers": [{"subject": RENDERER, "issuer": vault.shell.office.store.issuer}],
            "prefixes": [f"{host}/"],
            "registries": {
                "plainHttp": [host],
                "credentials": str(vault.shell.folder / vault.plant("config.json", json.dumps(auth).encode())),
            },
        }
        gate = Gate.of(GateConfig.model_validate(given, strict=False))
        request = {"kind": "ProviderRequest", "request": {"keys": [f"{host}/a@sha256:{'0' * 64}"]}}
        return json.dumps(gate.respond(json.dumps(request).encode())) + gate.counters.text()


KEYLESS = ("--trust-config", "trust.json", "--identity-token", "token")
RUNS: dict[str, Run] = {
    "sign by an identity": _sign(*KEYLESS),
    "sign by an identity, for programs": _sign(*KEYLESS, "-o", "json"),
    "sign by a key": _sign("--key", "key.pem"),
    "sign by a key, verify by it": lambda vault: (
        _sign("--key", "key.pem")(vault) + vault.shell.run("verify", "platform/rendered", "--key", "key.pub")
    ),
    "verify, with a ledger": lambda vault: (
        _sign(*KEYLESS)(vault) + vault.shell.verify("--log", "ledger", "-o", "sarif")
    ),
    "take the token for a key": _sign("--key", "token", code=2),
    "take the key for a token": _sign("--trust-config", "trust.json", "--identity-token", "key.pem", code=2),
    "take the token for a trust config": _sign("--trust-config", "token", "--identity-token", "token", code=2),
    "take the key for a public key": lambda vault: vault.shell.run(
        "verify", "platform/rendered", "--key", "key.pem", code=2
    ),
    "take the token for a ledger of images": lambda vault: vault.shell.run(
        "images", "check", "platform/rendered", "--lock", "token", code=2
    ),
    "take the token for the cluster's objects": lambda vault: (
        _sign(*KEYLESS)(vault)
        + vault.shell.run(
            *("credential", "issue", "platform/rendered", "--cluster", "lab", "--objects", "token"),
            *vault.shell.who[:4],
            *KEYLESS,
            code=1,
        )
    ),
    "a token that has ended": _with(
        "token",
        lambda vault: vault.shell.office.store.token(RENDERER, exp=1_700_000_000, iat=1_600_000_000).encode(),
        _sign(*KEYLESS, code=2),
    ),
    # Cut where its signature begins: one in sixteen of those cut inside it still reads as one, and Fulcio refuses that.
    "a token that was cut": _with(
        "token", lambda vault: (vault.shell.folder / "token").read_bytes().rpartition(b".")[0], _sign(*KEYLESS, code=2)
    ),
    "a password in a config without a login": _with(
        "config.json",
        lambda vault: json.dumps({"auths": {"a": {"password": PULL}}, "x": PULL}).encode(),
        lambda vault: vault.shell.run(
            "images", "lock", "a.example.com/b:1", *vault.shell.who, "--registry-config", "config.json", code=2
        ),
    ),
    "services that answer with the token": _hostile,
    "registries that answer with the password": _registry,
    "the gate before such a registry": _gate,
}


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_written(vault: Vault, name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    said = RUNS[name](vault)
    vault.search(said + caplog.text)


def test_the_search_finds_what_is_there(vault: Vault) -> None:
    """The twin that must fail: each secret, in each form, in words and in a file."""
    for secret in vault.secrets:
        for form in _forms(secret):
            with pytest.raises(AssertionError):
                vault.search(f"signed by {form}.")
    (vault.shell.folder / "platform/rendered/lab/token.yaml").write_text(vault.secrets[0])
    with pytest.raises(AssertionError):
        vault.search("")


def test_a_wrong_password_is_not_repeated(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, f"{KEY_PASSWORD}-not")
    vault.secrets.append(f"{KEY_PASSWORD}-not")
    vault.search(vault.shell.run("sign", "platform/rendered", "--key", "key.pem", code=2))


def test_a_process_that_fails_in_a_way_nobody_knew_shows_no_values(vault: Vault, tmp_path: Path) -> None:
    """A traceback has no values of variables in it, and the environment stays where it is."""
    token = (vault.shell.folder / "token").read_text()
    code = (
        "import blueprint.attest.sign as sign\n"
        "def broken(token, password): raise RuntimeError('broken')\n"
        "sign.identity_token = lambda *given, **more: broken(*given[1:], 'x')\n"
        "from blueprint.cli import main\nmain()\n"
    )
    command = [sys.executable, "-c", code, "sign", "platform/rendered", "--trust-config", "trust.json"]
    environment = {"PATH": "/usr/bin:/bin", TOKEN: token, PASSWORD: KEY_PASSWORD, "HOME": str(tmp_path)}
    done = subprocess.run(
        command, cwd=vault.shell.folder, env=environment, capture_output=True, text=True, check=False, input=""
    )
    assert done.returncode != 0
    assert "broken" in done.stderr
    vault.search(done.stdout + done.stderr)
