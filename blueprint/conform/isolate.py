"""A network and a mount namespace of our own: nothing listens outside, and fixed paths and ports cannot collide."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
import tempfile
from functools import cache
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_MS_REC, _MS_PRIVATE, _MNT_DETACH = 0x4000, 0x40000, 2
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1


def isolate() -> str:
    """Move this thread and all that it starts into new namespaces; returns why not, "" where it is done.

    Only root may (CAP_SYS_ADMIN); call it before any thread is started. Loopback is up inside, nothing else is there.
    """
    if sys.platform != "linux":
        return "namespaces are Linux'"
    if os.geteuid() != 0:
        return "only root may make namespaces"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS | _CLONE_NEWNET) != 0:
        return f"namespaces: {os.strerror(ctypes.get_errno())}"
    try:
        _mount("none", Path("/"), "", _MS_REC | _MS_PRIVATE)  # what is mounted inside must not reach the outside
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            request = struct.pack("16sh", b"lo", 0)
            [flags] = struct.unpack_from("h", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request), 16)
            fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | _IFF_UP))
    except OSError as error:
        return f"namespaces: {error}"
    return ""


@cache
def private(path: Path) -> None:
    """Let `path` be writable for us alone, in our mount namespace; once, for overlays do not stack.

    Below /tmp it becomes an empty folder in memory. Elsewhere what lies there stays visible, and writes go to memory.
    Raises OSError where the kernel refuses.
    """
    if Path("/tmp") in path.parents:  # noqa: S108 - where programs insist on a fixed path
        path.mkdir(parents=True, exist_ok=True)
        _mount("tmpfs", path, "tmpfs", 0)
        return
    scratch = Path(tempfile.mkdtemp(prefix="blueprint-private-"))
    try:
        _mount("tmpfs", scratch, "tmpfs", 0)
        upper, work = scratch / "upper", scratch / "work"
        upper.mkdir()
        work.mkdir()
        _mount("overlay", path, "overlay", 0, f"lowerdir={path},upperdir={upper},workdir={work}")
    finally:
        # The overlay holds the memory; out of the way, so that the folder can be removed.
        ctypes.CDLL(None, use_errno=True).umount2(os.fsencode(scratch), _MNT_DETACH)
        scratch.rmdir()


def _mount(source: str, target: Path, kind: str, flags: int, options: str = "") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    words = [text.encode() if text else None for text in (source, str(target), kind)]
    if libc.mount(*words, flags, options.encode() or None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))
