"""One program in the background, on a leash, with a log, a pid file and bounded waits."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from blueprint.conform import leash
from blueprint.errors import EnvironmentLacks

GRACE = 5.0
_POLL = 0.05


class NotReady(EnvironmentLacks):
    """A program ended, or did not do in time what was waited for; the message says what, and ends with its log."""


class Daemon:
    """A running program: `<folder>/<name>.log` has its output, `<folder>/<name>.pid` its process id.

    It ends with `stop()`, or when this process ends in any way, SIGKILL included. The leash and the program share a
    process group of their own, so a terminal's Ctrl-C reaches only the caller, who stops them in order.
    """

    def __init__(
        self, name: str, command: Sequence[str | Path], folder: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.pid_file = folder / f"{name}.pid"
        words = [sys.executable, "-I", "-S", leash.__file__, self.pid_file, str(GRACE), *command]
        with self.log.open("ab") as log:
            self._leash = subprocess.Popen(
                [str(word) for word in words],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether the program still runs."""
        return self._leash.poll() is None

    def tail(self, lines: int = 8) -> str:
        """The last lines of its log, each cut at 400 characters."""
        text = self.log.read_text("utf-8", "replace") if self.log.exists() else ""
        return "\n".join(line[:400] for line in text.splitlines()[-lines:])

    def wait(self, what: str, ready: Callable[[], bool], seconds: float) -> None:
        """Return once `ready()` holds; raise NotReady when the program ends or the seconds are over."""
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.alive:
                raise NotReady(f"{self.name} ended with code {self._leash.returncode} before {what}\n{self.tail()}")
            if time.monotonic() > deadline:
                raise NotReady(f"waited {seconds:g} s for {what} of {self.name}\n{self.tail()}")
            time.sleep(_POLL)

    def stop(self) -> None:
        """Ask it to end, wait, then insist. Safe to call twice."""
        if self._leash.stdin is not None:
            self._leash.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._leash.wait(GRACE + 2)
        if self._leash.returncode is None or self._leash.returncode < 0:  # it hangs, or was killed and left the program
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._leash.pid, signal.SIGKILL)
            self._leash.wait()
        self.pid_file.unlink(missing_ok=True)


def free_ports(count: int) -> list[int]:
    """Loopback TCP ports that nobody listens on now; all are held open together so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
