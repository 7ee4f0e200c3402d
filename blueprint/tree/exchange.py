"""The switch of choice: build the whole new tree beside the old one, then let the kernel exchange the two.

Files that stay are hard links, so their content, inode and mtime stay too. Before the exchange the old tree is whole,
after it the new one; there is no moment between.
"""

# Strings and plain system calls, not Path objects: a tree has 10,000 files, and building the paths would cost more.
# ruff: noqa: PTH101, PTH102, PTH106, PTH108, PTH112, PTH116, S103

from __future__ import annotations

import ctypes
import errno
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from blueprint.errors import UsageError
from blueprint.tree import lock as locks
from blueprint.tree import paths
from blueprint.tree.plan import Plan
from blueprint.tree.scan import scan

_CANNOT = {
    errno.EXDEV,  # a mount point, or a folder from a lower layer of overlayfs
    errno.EBUSY,  # a mount point
    errno.EINVAL,  # a file system without RENAME_EXCHANGE
    errno.ENOSYS,
    errno.ENOTSUP,
    errno.EPERM,  # no hard links here, or not to another user's file (fs.protected_hardlinks)
    errno.EACCES,  # the folder above is not ours to write
    errno.EROFS,  # the same, when the root is a mount of its own
    errno.EMLINK,
}


class CannotExchange(Exception):
    """This place has no way to exchange two folders; nothing was changed."""


def stage_of(root: Path) -> Path:
    """Where the other tree lies while a run is under way: the new one before the exchange, the old one after it."""
    return root.parent / f".{root.name}.blueprint-stage"


def replace_tree(plan: Plan) -> None:
    """Make the tree at `plan.root` what the plan says, in one step.

    Raises CannotExchange where that is impossible, UsageError when somebody touched the tree since the plan was made,
    OSError for anything else; the old tree is then whole.
    """
    root = plan.root.resolve()
    if plan.seen.repository or root.is_mount() or _works_in(root):
        raise CannotExchange  # Git or a shell may be at work inside; it would go on in the old tree
    stage = stage_of(root)
    lock_only = root.exists() and not plan.contents and not plan.removed
    try:
        if lock_only:
            stage.mkdir()
            write_file(f"{stage}/{locks.NAME}", plan.lock, sync=True)
        else:
            _stage(plan, str(stage))
        if scan(root) != plan.seen:
            raise UsageError(
                "the tree was touched during the run; nothing was changed", where=str(root), hint="run again"
            )
        if lock_only:
            (stage / locks.NAME).rename(root / locks.NAME)
        elif root.exists():
            _exchange(stage, root)
        else:
            stage.rename(root)
    except OSError as error:
        if error.errno in _CANNOT:
            raise CannotExchange from error
        raise
    finally:
        # After a kill, or where this fails, the next run clears the stage before it does anything.
        with suppress(OSError):
            remove(stage)


def _works_in(root: Path) -> bool:
    try:
        return Path.cwd().is_relative_to(root)
    except FileNotFoundError:  # the working directory was deleted
        return False


def remove(path: Path) -> None:
    """Delete a folder and all in it, if it is there; links in it are deleted, not followed."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        _remove(str(path))


def _remove(folder: str) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                os.unlink(entry.path)
    os.rmdir(folder)


def _stage(plan: Plan, stage: str) -> None:
    """Build the new tree at `stage`: parents first, new files written, all others linked."""
    root, seen = str(plan.root), plan.seen
    gone = {*plan.removed, *plan.contents}
    staying = [path for path in (*seen.files, *seen.others) if path not in gone]
    folders = paths.remaining_folders(seen.folders, (*staying, *plan.contents), plan.removed)
    _copy_folder(root, stage)
    for folder in sorted(folders):
        _copy_folder(f"{root}/{folder}" if folder in seen.folders else "", f"{stage}/{folder}")
    for path in staying:
        os.link(f"{root}/{path}", f"{stage}/{path}", follow_symlinks=False)
    for path, data in plan.contents.items():
        write_file(f"{stage}/{path}", data)
    write_file(f"{stage}/{locks.NAME}", plan.lock, sync=True)


def write_file(path: str, data: bytes, *, sync: bool = False) -> None:
    """Create `path`, which must not exist, with mode 0644 whatever the umask is."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.fchmod(handle, 0o644)
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)


def _copy_folder(old: str, new: str) -> None:
    """Create the folder `new`: mode 0755, or the mode and owner of `old` where there was one."""
    os.mkdir(new, 0o755)
    if not old or not os.path.isdir(old):
        os.chmod(new, 0o755)
        return
    there, here = os.stat(old), os.stat(new)
    if (there.st_uid, there.st_gid) != (here.st_uid, here.st_gid):
        with suppress(PermissionError):
            os.chown(new, there.st_uid, there.st_gid)
    os.chmod(new, there.st_mode & 0o7777)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders in one step: renameat2(2) on Linux, renamex_np(2) on macOS; OSError ENOSYS where neither is."""
    a, b = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            failed = _libc().renamex_np(a, b, ctypes.c_uint(2))  # RENAME_SWAP, <sys/stdio.h>
        else:
            here = ctypes.c_int(-100)  # AT_FDCWD, <fcntl.h>
            failed = _libc().renameat2(here, a, here, b, ctypes.c_uint(2))  # RENAME_EXCHANGE, <stdio.h>
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(other)) from None
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))
