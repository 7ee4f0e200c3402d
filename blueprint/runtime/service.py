"""HTTP around the gate: TLS for Gatekeeper, and a plain port for probes and metrics. The standard library, with limits.

Who may be how slow, and how many at once, is in `guard`: whatever callers do, Gatekeeper and the probes are heard.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from blueprint.errors import UsageError
from blueprint.runtime.guard import Bounds, Guarded

if TYPE_CHECKING:
    from blueprint.runtime.gate import Gate
    from blueprint.runtime.gateconfig import GateConfig, Tls

_STATUS: Final = Bounds(waiting=32, arrival=5.0, working=32, answer=5.0)
"""Of probes and of Prometheus."""
_RELOAD: Final = 10.0
"""Seconds between looks at the certificate's files, which are changed while we run."""
_WRITING: Final = 5.0
"""Seconds for a caller to take its answer."""
_LENGTH: Final = re.compile(r"[0-9]{1,9}")
_PREFIX: Final = "blueprint_image_gate_"


class Counters:
    """Counters for Prometheus, by name and labels."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count something."""
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += amount  # type: ignore[assignment]

    def text(self) -> str:
        """The exposition format, version 0.0.4."""
        with self._lock:
            rows = sorted(self._counts.items())
        lines = []
        for name in dict.fromkeys(name for (name, _), _ in rows):
            lines.append(f"# TYPE {_PREFIX}{name} counter")
            for (other, labels), value in rows:
                if other == name:
                    shown = ",".join(f'{key}="{text}"' for key, text in labels)
                    lines.append(f"{_PREFIX}{name}{{{shown}}} {value:g}" if shown else f"{_PREFIX}{name} {value:g}")
        return "".join(f"{line}\n" for line in lines)


class Service:
    """The two servers of a gate; a context that ends them."""

    def __init__(self, config: GateConfig, gate: Gate) -> None:
        self._gate = gate
        self._secure = _Secure(config, gate)
        self._status = Guarded(
            (config.address, config.status_port),
            _status(gate),
            _STATUS,
            lambda name: gate.counters.add(f"status_{name}"),
        )
        self._threads = [
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
            for server in (self._secure, self._status)
        ]

    @property
    def port(self) -> int:
        """Where Gatekeeper asks."""
        return self._secure.server_port

    @property
    def status_port(self) -> int:
        """Where probes ask."""
        return self._status.server_port

    def __enter__(self) -> Service:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in (self._secure, self._status):
            server.shutdown()
            server.server_close()


class _Secure(Guarded):
    """TLS, with the handshake in the worker's thread, so that a slow caller holds up nobody else."""

    def __init__(self, config: GateConfig, gate: Gate) -> None:
        self._tls = config.tls
        self._context = _context(config.tls)
        self._stamp, self._looked = _stamp(config.tls), time.monotonic()
        limits = config.limits
        bounds = Bounds(
            limits.waiting, limits.arrival.total_seconds(), limits.concurrent, limits.answer.total_seconds() + _WRITING
        )
        super().__init__((config.address, config.port), _handler(config, gate), bounds, gate.counters.add)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        connection.settimeout(self.bounds.arrival + _WRITING)  # `Guarded` ends it before
        self._renew()
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base has it
        try:
            request.do_handshake()
        except (OSError, ValueError):
            self.count("handshakes_failed_total")
            return
        super().finish_request(request, client_address)

    def _renew(self) -> None:
        """Take up a certificate that was renewed on the disk; one that cannot be read yet is taken later."""
        now = time.monotonic()
        if now - self._looked < _RELOAD:
            return
        self._looked = now
        stamp = _stamp(self._tls)
        if stamp != self._stamp:
            try:
                self._context, self._stamp = _context(self._tls), stamp
            except UsageError:
                self.count("certificate_reloads_failed_total")


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(tls.certificate, tls.key)
        if tls.client_authority:
            context.load_verify_locations(tls.client_authority)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError):
        raise UsageError("the certificate or its key cannot be read", where=tls.certificate) from None
    return context


def _stamp(tls: Tls) -> tuple[int, ...]:
    files = (tls.certificate, tls.key, tls.client_authority)
    return tuple(os.stat(file).st_mtime_ns if file and Path(file).exists() else 0 for file in files)  # noqa: PTH116


def _handler(config: GateConfig, gate: Gate) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = config.limits.arrival.total_seconds() + _WRITING
        server_version, sys_version = "image-gate", ""

        def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401 - as the base has it
            """Requests are counted, not written down."""

        def do_POST(self) -> None:
            started = time.monotonic()
            length = self.headers.get("Content-Length", "")
            if self.path not in ("/", "/verify"):
                self.send_error(404)
            elif not _LENGTH.fullmatch(length):
                self.send_error(411)
            elif int(length) > config.limits.body:
                gate.counters.add("bad_requests_total")
                self.send_error(413)
            else:
                self._answer(self.rfile.read(int(length)))
            gate.counters.add("requests_total")
            gate.counters.add("seconds_total", time.monotonic() - started)

        def _answer(self, body: bytes) -> None:
            if not isinstance(self.server, Guarded) or not self.server.begin(self.request):
                self.send_error(503)
                return
            _send(self, json.dumps(gate.respond(body)).encode(), "application/json")

    return Handler


def _send(handler: BaseHTTPRequestHandler, data: bytes, kind: str) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _status(gate: Gate) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _STATUS.arrival + _WRITING
        server_version, sys_version = "image-gate", ""

        def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401 - as the base has it
            """Probes are not written down."""

        def do_GET(self) -> None:
            known = {"/healthz": lambda: "ok\n", "/readyz": lambda: "ok\n", "/metrics": gate.counters.text}
            if (make := known.get(self.path)) is None:
                self.send_error(404)
                return
            _send(self, make().encode(), "text/plain; version=0.0.4; charset=utf-8")

    return Handler
