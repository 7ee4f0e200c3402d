"""One run at a time on a tree."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from blueprint.errors import UsageError
from blueprint.tree.scan import RUN


@contextmanager
def exclusive(root: Path) -> Iterator[None]:
    """Hold the tree at `root` for this process, or raise UsageError at once when another run holds it.

    The hold is flock(2) on a file beside the root, so the kernel ends it with the process, however that dies. It is
    inside the root where the folder above cannot be written (a mounted volume). Raises OSError where neither can.
    """
    path, handle = _held(root)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # while still held: whoever opened the file before finds it gone and opens the next
        with suppress(OSError):
            os.close(handle)


def is_marked(root: Path) -> bool:
    """Whether a run holds the tree at `root`, or died while it did: a killed run leaves its file, not its hold."""
    return any(os.path.lexists(path) for path in _marks(root))


def _marks(root: Path) -> tuple[Path, Path]:
    return root.parent / f".{root.name}{RUN}", root / RUN


def _held(root: Path) -> tuple[Path, int]:
    beside, inside = _marks(root)
    try:
        return beside, _lock(beside)
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS} or not root.is_dir():
            raise
    return inside, _lock(inside)


def _lock(path: Path) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(path, handle):
                return handle
        except BlockingIOError:
            os.close(handle)
            raise UsageError(
                "another run is writing this tree", where=str(path), hint="wait until it has ended"
            ) from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _same(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False
