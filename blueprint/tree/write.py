"""Write a tree: the old one, or the new one, never a mix."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from blueprint.errors import EnvironmentLacks, UsageError
from blueprint.tree import exchange, journal, paths
from blueprint.tree.guard import exclusive, is_marked
from blueprint.tree.lock import Made
from blueprint.tree.plan import Plan, check_root, plan

_HINTS = {
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "the quota of that disk is used up",
    errno.EFBIG: "a limit on the size of files is set (ulimit -f)",
    errno.EROFS: "that place is mounted read-only",
    errno.EACCES: "check the owner and the mode of that place",
    errno.EPERM: "check the owner, the mode and the attributes of that place",
    errno.ENAMETOOLONG: "choose a shorter path for the tree",
}


def write(
    root: Path,
    files: Mapping[str, bytes],
    made: Mapping[str, Made],
    *,
    partial: bool = False,
    overwrite: bool = False,
    check_only: bool = False,
) -> Plan:
    """Make the tree at `root` hold `files`, and say what that took; arguments and result are those of `plan`.

    Nothing is written when the plan is refused, when it changes nothing, or with `check_only`. A kill at any moment
    leaves the old tree or the new one (where folders cannot be exchanged: one that the next run completes, see
    `journal`). Raises UsageError when another run holds the tree or somebody touched it meanwhile, EnvironmentLacks
    for a disk that is full, read-only or otherwise at fault; the tree is then as it was, unless the message says else.
    """
    with _explained(root):
        if check_only:
            return plan(root, files, made, partial=partial, overwrite=overwrite)
        check_root(root)
        place = root.resolve()
        place.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(place):
            _clear(place)
            planned = plan(root, files, made, partial=partial, overwrite=overwrite)
            if planned.changes and not planned.refused:
                _check_writable(planned)
                try:
                    exchange.replace_tree(planned)
                except exchange.CannotExchange:
                    journal.replace_files(planned)
            return planned


def recover(root: Path) -> None:
    """Finish or clear away what an interrupted run left, so that the tree can be read. Raises as `write` does."""
    check_root(root)
    place = root.resolve()
    if not (os.path.lexists(exchange.stage_of(place)) or is_marked(place) or journal.is_pending(place)):
        return
    with _explained(root), exclusive(place):
        _clear(place)


def tidy(root: Path) -> None:
    """As `recover`, for a run that may have nothing else to do: a few looks at the disk where nothing was left.

    What belongs to a run that is alive stays, and so does what cannot be removed; neither is an error of this run,
    and one that writes is told by `write`.
    """
    with suppress(UsageError, EnvironmentLacks):
        recover(root)


def _clear(place: Path) -> None:
    exchange.remove(exchange.stage_of(place))
    journal.finish(place)


def _check_writable(planned: Plan) -> None:
    """Exchanging folders needs no right to write inside them, yet who made them read-only meant it."""
    touched = paths.folders_of((*planned.contents, *planned.removed)) & planned.seen.folders
    for folder in ("", *sorted(touched)) if planned.root.exists() else ():
        if not os.access(planned.root / folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(planned.root / folder))


@contextmanager
def _explained(root: Path) -> Iterator[None]:
    """Turn what the operating system refuses into one error for a person."""
    try:
        yield
    except OSError as error:
        what = f"{error.strerror} ({error.filename})" if error.filename else str(error.strerror or error)
        message = f"the tree cannot be read or written, and is as it was: {what}"
        raise EnvironmentLacks(message, where=str(root), hint=_HINTS.get(error.errno or 0, "")) from error
