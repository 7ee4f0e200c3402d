"""Do something at the n-th system call of a run: die, or fail."""

import os
import signal
from collections.abc import Callable
from contextlib import contextmanager
from unittest import mock

from blueprint.tree import exchange

CALLS = ("open", "write", "close", "fsync", "fchmod", "chmod", "mkdir", "rmdir", "rename", "unlink", "link", "scandir")


@contextmanager
def tripwire(number: int, act: Callable[[], None]):
    """Call `act` in place of the system call `number` (from 0); a write has then written half.

    Yields the names of the calls so far.
    """
    called: list[str] = []

    def wire(name, real):
        def call(*args, **kwargs):
            called.append(name)
            if len(called) - 1 == number:
                if name == "write":
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                if name == "close":  # closes even when it fails
                    real(*args)
                act()
            return real(*args, **kwargs)

        return call

    patches = [mock.patch.object(os, name, wire(name, getattr(os, name))) for name in CALLS]
    patches.append(mock.patch.object(exchange, "_exchange", wire("exchange", exchange._exchange)))
    for patch in patches:
        patch.start()
    try:
        yield called
    finally:
        for patch in patches:
            patch.stop()


def die() -> None:
    """As a kill from outside: nothing of ours runs afterwards."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(run: Callable[[], object]) -> bool:
    """Run in a forked process; whether it lived to the end. A Python error there is an error here."""
    child = os.fork()
    if not child:
        try:
            run()
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child raised"
    return not os.WIFSIGNALED(status)
