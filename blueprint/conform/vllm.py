"""A served model that answers nobody: it exposes the series that an analysis asks for, as if requests were answered."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType

from blueprint.promql import Select, read, selects

_REQUESTS = 20.0
"""Answers in a second."""


class Mode(StrEnum):
    """How a version answers."""

    GOOD = "good"
    SLOW = "slow"
    FAILING = "failing"
    IDLE = "idle"


_SHARE_IN_TIME = {Mode.GOOD: 0.995, Mode.SLOW: 0.5, Mode.FAILING: 0.995}
_SHARE_FAILED = {Mode.GOOD: 0.0, Mode.SLOW: 0.0, Mode.FAILING: 0.3}


@dataclass(slots=True)
class Version:
    """One version that runs: the labels of its pods, how it answers, and since when (monotonic seconds)."""

    labels: dict[str, str]
    mode: Mode
    since: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class Simulator:
    """Serves `/metrics` on a port of loopback while it is entered; the series are those that the queries select."""

    port: int
    queries: tuple[str, ...]
    versions: list[Version] = field(default_factory=list)
    _server: http.server.ThreadingHTTPServer | None = None

    def __enter__(self) -> Simulator:
        simulator = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = simulator.text(time.monotonic()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *_: object) -> None:
                """Says nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def text(self, now: float) -> str:
        """What is exposed at a moment, in Prometheus' text format."""
        lines: dict[str, float] = {}
        wanted = [select for query in self.queries for select in _selected(query)]
        for version in list(self.versions):
            if version.mode is not Mode.IDLE:
                answered = _REQUESTS * (now - version.since)
                for select in wanted:
                    lines |= dict(_samples(select, version, answered))
        return "".join(f"{name} {value:.3f}\n" for name, value in lines.items())


def _selected(query: str) -> Iterable[Select]:
    parsed = read(query)
    return [] if parsed.tree is None else [select for select, _ in selects(parsed.tree)]


def _samples(select: Select, version: Version, answered: float) -> Iterable[tuple[str, float]]:
    """Counters of one metric: of histograms the bucket that is asked for, of requests those that succeed and fail."""
    fixed = {m.label: m.value for m in select.matchers if m.op == "=" and not m.filled}
    labels = {**fixed, **version.labels}
    if select.metric.endswith("_bucket"):
        within = answered * _SHARE_IN_TIME[version.mode]
        yield _named(select.metric, labels), within
        yield _named(select.metric, {**labels, "le": "+Inf"}), answered
    elif select.metric.endswith(("_count", "_sum")):
        yield _named(select.metric, labels), answered
    elif select.metric == "istio_requests_total":
        failed = answered * _SHARE_FAILED[version.mode]
        yield _named(select.metric, {**labels, "response_code": "200"}), answered - failed
        yield _named(select.metric, {**labels, "response_code": "503"}), failed
    else:
        yield _named(select.metric, labels), 1.0


def _named(metric: str, labels: dict[str, str]) -> str:
    text = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
    return f"{metric}{{{text}}}"
