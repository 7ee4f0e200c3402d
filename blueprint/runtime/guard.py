"""An HTTP server that slow callers cannot fill: each call has an end, and who came first and asks nothing makes room.

A timeout of a socket is one of each wait, and a caller that sends a byte a second never reaches it. Here a call as a
whole has to be over in time: first to arrive (its handshake and its request), then to be answered.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

_LOOK: Final = 0.1
"""Seconds between looks at the ends of calls."""


@dataclass(slots=True)
class _Call:
    connection: socket.socket
    ends: float
    working: bool = False
    """Whether its request is there and being answered."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many callers may be without a request, and how many be answered, and for how many seconds each."""

    waiting: int
    arrival: float
    working: int
    answer: float


class Guarded(ThreadingHTTPServer):
    """A thread for each call, within bounds. `count` is told what happened to whom."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BaseHTTPRequestHandler],
        bounds: Bounds,
        count: Callable[[str], None],
    ) -> None:
        self.bounds, self.count = bounds, count
        self._calls: dict[int, _Call] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        super().__init__(address, handler)
        threading.Thread(target=self._watch, daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base has it
        """Take a call in; the one that waits longest goes where too many wait."""
        call = _Call(request, time.monotonic() + self.bounds.arrival)
        with self._lock:
            waiting = [key for key, other in self._calls.items() if not other.working]
            for key in waiting[: max(0, len(waiting) + 1 - self.bounds.waiting)]:
                _cut(self._calls.pop(key))
                self.count("evicted_total")
            self._calls[id(request)] = call
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as the base has it
        """The end of every call, whatever came of it."""
        with self._lock:
            self._calls.pop(id(request), None)
        super().shutdown_request(request)

    def begin(self, request: Any) -> bool:  # noqa: ANN401 - a socket
        """The request is there: whether it may be answered, which has its own end."""
        with self._lock:
            call = self._calls.get(id(request))
            if call is None:  # it was cut off
                return False
            if sum(other.working for other in self._calls.values()) >= self.bounds.working:
                self.count("turned_away_total")
                return False
            call.working, call.ends = True, time.monotonic() + self.bounds.answer
            return True

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base has it
        """A caller that goes away is nothing to print a traceback for."""
        self.count("connections_lost_total")

    def server_close(self) -> None:
        """Stop listening, and watching."""
        self._closed.set()
        super().server_close()

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK):
            now = time.monotonic()
            with self._lock:
                for key in [key for key, call in self._calls.items() if call.ends <= now]:
                    _cut(self._calls.pop(key))
                    self.count("timed_out_total")


def _cut(call: _Call) -> None:
    """End a connection under the thread that waits for it. Not through TLS, whose state is that thread's."""
    try:
        socket.socket.shutdown(call.connection, socket.SHUT_RDWR)
    except OSError:
        return
