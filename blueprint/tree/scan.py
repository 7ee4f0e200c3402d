"""What lies on the disk: one walk that follows no link."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from blueprint.tree import lock

WORK = ".blueprint-work"
"""The folder in the root where a journalled switch keeps its files; it exists only while one is under way."""
RUN = ".blueprint-run"
"""The file in the root that marks a run, where it cannot be beside the root."""
SIGNATURES = ".attestations"
"""Signatures over the tree: the product's own, but not part of what is signed."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Tells whether a file was touched between two looks. No ctime: a new hard link moves it."""

    inode: int
    modified_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class Scan:
    """Paths below the root, `/` between segments. The lock, `.git` and our own work are left out."""

    files: dict[str, Stamp] = field(default_factory=dict)
    others: dict[str, Stamp] = field(default_factory=dict)
    """Links, pipes, sockets and devices: what is neither a regular file nor a folder."""
    folders: set[str] = field(default_factory=set)
    lock: Stamp | None = None
    lock_is_file: bool = True
    repository: bool = False
    """Whether a Git repository (not only a work tree of one) lives inside."""
    unfinished: bool = False
    """Whether a journalled switch was interrupted here."""


def scan(root: Path) -> Scan:
    """Walk `root`; a root that does not exist is an empty tree. Raises OSError for what cannot be read."""
    files: dict[str, Stamp] = {}
    others: dict[str, Stamp] = {}
    folders: set[str] = set()
    top = str(root)
    lock_stamp, lock_is_file, repository, unfinished = None, True, False, False
    pending = [""] if root.is_dir() else []
    while pending:
        folder = pending.pop()
        with os.scandir(f"{top}/{folder}") as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                is_folder = stat.S_ISDIR(status.st_mode)
                stamp = Stamp(status.st_ino, status.st_mtime_ns, status.st_size)
                path = f"{folder}/{entry.name}" if folder else entry.name
                if path == lock.NAME:
                    lock_stamp, lock_is_file = stamp, stat.S_ISREG(status.st_mode)
                elif path == WORK and is_folder:
                    unfinished = True
                elif path == RUN:
                    continue
                elif is_folder and entry.name == ".git":
                    repository = True
                elif is_folder:
                    folders.add(path)
                    pending.append(path)
                elif stat.S_ISREG(status.st_mode):
                    files[path] = stamp
                else:
                    others[path] = stamp
    return Scan(files, others, folders, lock_stamp, lock_is_file, repository, unfinished)


def read(root: str, path: str, size: int) -> bytes:
    """The bytes of a regular file that was `size` bytes long when scanned; a link is refused (OSError)."""
    handle = os.open(f"{root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        data = os.read(handle, size + 1)
        while len(data) > size and (more := os.read(handle, 1 << 20)):
            data += more
        return data
    finally:
        os.close(handle)
