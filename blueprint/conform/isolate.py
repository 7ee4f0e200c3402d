"""A network and a mount namespace of our own: nothing listens outside, and fixed paths and ports cannot collide."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
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
    # What is mounted inside must not reach the outside.
    if libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        return f"mount namespace: {os.strerror(ctypes.get_errno())}"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh", b"lo", 0)
        [flags] = struct.unpack_from("h", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | _IFF_UP))
    return ""


def private(path: Path, folder: Path) -> None:
    """Make `path` (below /tmp or /etc) show `folder` inside our mount namespace; it is made where it is missing.

    Raises OSError where the mount is refused.
    """
    path.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    bind = 0x1000
    if libc.mount(os.fsencode(folder), os.fsencode(path), None, bind, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
