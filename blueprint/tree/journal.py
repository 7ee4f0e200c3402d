"""The other switch, for places that cannot exchange folders: write beside, commit a journal, then move file by file.

Before the journal is there the old tree is whole. Afterwards the run is decided: whatever interrupts it, the next run
(or `recover`) reads the journal and finishes it. Until then a reader who does not ask may see both old and new files.
"""

# Plain system calls, as in `exchange`.
# ruff: noqa: PTH101, PTH102, PTH104, PTH106, PTH108, PTH114, S103

from __future__ import annotations

import errno
import json
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from blueprint.errors import EnvironmentLacks, UsageError
from blueprint.tree import lock as locks
from blueprint.tree import paths
from blueprint.tree.exchange import remove, write_file
from blueprint.tree.plan import Plan
from blueprint.tree.scan import WORK

_JOURNAL = "journal"
_STAYS = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EBUSY}
"""Why a folder is not removed, and rightly so: in use, gone already, a file by now, a mount point."""


def replace_files(plan: Plan) -> None:
    """Make the tree at `plan.root` what the plan says.

    Raises OSError before the decision, and the old tree is then whole; EnvironmentLacks or UsageError after it.
    """
    work = plan.root / WORK
    work.mkdir(mode=0o755)
    try:
        writes = {str(number): path for number, path in enumerate((*plan.contents, locks.NAME))}
        for name, path in writes.items():
            write_file(f"{work}/{name}", plan.contents.get(path, plan.lock))
        emptied = sorted(paths.folders_of(plan.removed), reverse=True)
        document = {"write": writes, "remove": plan.removed, "folders": emptied}
        write_file(f"{work}/new", json.dumps(document).encode(), sync=True)
        os.rename(f"{work}/new", f"{work}/{_JOURNAL}")
    except BaseException:
        with suppress(OSError):
            remove(work)
        raise
    finish(plan.root)


def is_pending(root: Path) -> bool:
    """Whether a journalled run was interrupted at `root`."""
    return (root / WORK).is_dir() and not (root / WORK).is_symlink()


def finish(root: Path) -> None:
    """Finish the run that was decided here, or clear away one that was not; nothing to do is fine.

    Every step may be repeated. Raises UsageError for a journal that we did not write, EnvironmentLacks where a step
    fails; the journal then stays, and the next call goes on.
    """
    work = root / WORK
    if not is_pending(root):
        return
    try:
        if (work / _JOURNAL).exists():
            _apply(root, _read(work / _JOURNAL))
            os.unlink(work / _JOURNAL)
        remove(work)
    except OSError as error:
        message = f"the run stopped while it moved files into place: {error.strerror} ({error.filename})"
        raise EnvironmentLacks(
            message, where=str(root), hint="clear the cause and run again: it goes on there"
        ) from error


def _apply(root: Path, document: dict[str, Any]) -> None:
    for path in document["remove"]:
        _check_parents(root, path)
        with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            if not stat.S_ISDIR(os.lstat(f"{root}/{path}").st_mode):
                os.unlink(f"{root}/{path}")
    for folder in document["folders"]:
        try:
            os.rmdir(f"{root}/{folder}")
        except OSError as error:
            if error.errno not in _STAYS:
                raise
    for name, path in document["write"].items():
        _make_parents(root, path)
        with suppress(FileNotFoundError):  # moved by the run that was interrupted
            os.rename(f"{root}/{WORK}/{name}", f"{root}/{path}")


def _read(journal: Path) -> dict[str, Any]:
    """The journal, held to what `replace_files` writes: it may have come with a repository."""
    try:
        document: dict[str, Any] = json.loads(journal.read_bytes())
        names, touched = [*document["write"]], [*document["write"].values(), *document["remove"]]
        touched += [f"{folder}/x" for folder in document["folders"]]
        if all(re.fullmatch("[0-9]+", name) for name in names):
            faults = [paths.fault(path) for path in touched if path != locks.NAME]
            if not any(faults):
                return document
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    hint = f"restore the tree from Git and delete {journal.parent.name}"
    raise UsageError("the journal of an interrupted run is damaged", where=str(journal), hint=hint)


def _check_parents(root: Path, path: str) -> None:
    for folder in paths.ancestors(path):
        if os.path.islink(f"{root}/{folder}"):
            message = f"{folder} is a symbolic link by now, so {path} cannot be moved into place"
            raise UsageError(message, where=str(root), hint="remove the link and run again")


def _make_parents(root: Path, path: str) -> None:
    _check_parents(root, path)
    for folder in reversed([*paths.ancestors(path)]):
        with suppress(FileExistsError):
            os.mkdir(f"{root}/{folder}")
            os.chmod(f"{root}/{folder}", 0o755)
