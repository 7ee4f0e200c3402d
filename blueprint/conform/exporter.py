"""Serves series on a port of loopback, in Prometheus' text format."""

from __future__ import annotations

import http.server
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from blueprint.promql import Select, read, selects


@dataclass(slots=True)
class Exporter(ABC):
    """Answers `/metrics` on `port` while it is entered."""

    port: int
    _server: http.server.ThreadingHTTPServer | None = field(default=None, init=False, repr=False)

    @abstractmethod
    def text(self, now: float) -> str:
        """What is exposed at a moment (monotonic seconds)."""

    def __enter__(self) -> Self:
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = exporter.text(time.monotonic()).encode()
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


@dataclass(slots=True)
class Loads(Exporter):
    """What runs under loads: for each series (as `named` writes it) its value, or what it grows by in a second if it is
    one of `counters`; a series that is taken out of `values` is no longer exposed.
    """

    counters: frozenset[str] = frozenset()
    values: dict[str, float] = field(default_factory=dict)
    _totals: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _last: float | None = field(default=None, init=False, repr=False)

    def text(self, now: float) -> str:
        """The values of gauges as they are, and how far the counters came since they were asked last."""
        passed, self._last = now - (now if self._last is None else self._last), now
        exposed = dict(self.values)
        for name in self.counters & exposed.keys():
            self._totals[name] = exposed[name] = self._totals.get(name, 0.0) + exposed[name] * passed
        return written(exposed)


def written(values: dict[str, float]) -> str:
    """Series in the text format."""
    return "".join(f"{name} {value:.3f}\n" for name, value in values.items())


def selected(query: str) -> Iterable[Select]:
    """The series that a query selects; none of one that is no PromQL."""
    parsed = read(query)
    return [] if parsed.tree is None else [select for select, _ in selects(parsed.tree)]


def shortened(query: str, window: str) -> str:
    """The query with short windows: minutes of a cluster are seconds here."""
    return re.sub(r"\[\d+m\]", f"[{window}]", query)


def fixed(select: Select) -> dict[str, str]:
    """The labels that a selector names with their value."""
    return {m.label: m.value for m in select.matchers if m.op == "=" and not m.filled}


def named(metric: str, labels: dict[str, str]) -> str:
    """A series: its metric with its labels."""
    text = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
    return f"{metric}{{{text}}}"
