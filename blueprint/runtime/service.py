"""HTTP around the gate: TLS for Gatekeeper, and a plain port for probes and metrics. The standard library, with limits.

A connection has seconds for its handshake and its request; a thread is taken only while fewer than the limit work, and
callers beyond it are told so at once.
"""

from __future__ import annotations

import json
import os
import ssl
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from blueprint.errors import UsageError

if TYPE_CHECKING:
    from blueprint.runtime.gate import Gate
    from blueprint.runtime.gateconfig import GateConfig, Tls

_SECONDS: Final = 5.0
"""For a handshake, and for reading a request."""
_RELOAD: Final = 10.0
"""Seconds between looks at the certificate's files, which are changed while we run."""
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
        self._status = ThreadingHTTPServer((config.address, config.status_port), _status(gate))
        self._status.daemon_threads = True
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


class _Secure(ThreadingHTTPServer):
    """TLS, with the handshake in the worker's thread, so that a slow caller holds up nobody else."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, config: GateConfig, gate: Gate) -> None:
        self._tls, self._gate = config.tls, gate
        self._context = _context(config.tls)
        self._stamp, self._looked = _stamp(config.tls), time.monotonic()
        self._free = threading.BoundedSemaphore(config.limits.concurrent)
        super().__init__((config.address, config.port), _handler(config, gate))

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        connection.settimeout(_SECONDS)
        self._renew()
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base has it
        if not self._free.acquire(blocking=False):
            self._gate.counters.add("turned_away_total")
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base has it
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base has it
        try:
            request.do_handshake()
        except (OSError, ValueError):
            self._gate.counters.add("handshakes_failed_total")
            return
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base has it
        """A caller that goes away is nothing to print a traceback for."""
        self._gate.counters.add("connections_lost_total")

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
                self._gate.counters.add("certificate_reloads_failed_total")


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
        timeout = _SECONDS
        server_version, sys_version = "image-gate", ""

        def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401 - as the base has it
            """Requests are counted, not written down."""

        def do_POST(self) -> None:
            started = time.monotonic()
            length = self.headers.get("Content-Length", "")
            if self.path not in ("/", "/verify"):
                self.send_error(404)
            elif not length.isdigit():
                self.send_error(411)
            elif int(length) > config.limits.body:
                gate.counters.add("bad_requests_total")
                self.send_error(413)
            else:
                data = json.dumps(gate.respond(self.rfile.read(int(length)))).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            gate.counters.add("requests_total")
            gate.counters.add("seconds_total", time.monotonic() - started)

    return Handler


def _status(gate: Gate) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _SECONDS
        server_version, sys_version = "image-gate", ""

        def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401 - as the base has it
            """Probes are not written down."""

        def do_GET(self) -> None:
            known = {"/healthz": lambda: "ok\n", "/readyz": lambda: "ok\n", "/metrics": gate.counters.text}
            if (make := known.get(self.path)) is None:
                self.send_error(404)
                return
            data = make().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
