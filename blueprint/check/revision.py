"""Files as they are in a revision of Git, put into a folder of their own for the time of a check."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from blueprint.check.parse import MAX_FILE
from blueprint.check.read import SUFFIXES
from blueprint.errors import EnvironmentLacks, UsageError

_MOST = 1024 * 1024
"""Bytes of a file that is no manifest: only what Kustomize and Helm may read, and that is small."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit, as it was asked for and by its hash, and the folder of the work tree from which paths count."""

    name: str
    commit: str
    folder: Path

    @contextmanager
    def files(self, paths: Sequence[str]) -> Iterator[Path]:
        """A folder with the files below the paths as they were; gone when the context ends.

        Raises UsageError where the revision holds nothing there.
        """
        listing = _git("ls-tree", "-r", "-z", "-l", self.commit, "--", *paths, folder=self.folder)
        entries = [entry for line in listing.split(b"\0") if line and (entry := _Entry.of(line)) is not None]
        if not entries:
            raise UsageError(f"nothing is there in revision {self.name}", where=", ".join(paths))
        with tempfile.TemporaryDirectory(prefix="blueprint-") as folder:
            base = Path(folder).resolve()
            wanted = [entry for entry in entries if entry.readable]
            blobs = _blobs([entry.blob for entry in wanted], self.folder)
            for entry, data in zip(wanted, blobs, strict=True):
                entry.write(base, data)
            for entry in entries:
                if not entry.readable and entry.manifest:
                    entry.write_hollow(base)
            yield base


def revision(paths: Sequence[str], name: str | None = None) -> tuple[Revision | None, list[str]]:
    """What is asked for, and the paths in it: all from revision `name`, or written `REVISION:PATH` as Git has it.

    None where the paths are those of the work tree.

    Raises UsageError for a revision that does not exist, or for several at once.
    """
    if name is not None:
        if not (commit := _commit(name)):
            raise UsageError(f"no revision is called {name}", hint="`git log` lists revisions")
        return Revision(name, commit, Path()), list(paths)
    split = [path.partition(":") for path in paths]
    named = {before for (before, colon, _), path in zip(split, paths, strict=True) if colon and not Path(path).exists()}
    commits = {before: commit for before in named if before and (commit := _commit(before))}
    if not commits:
        return None, list(paths)
    if len(commits) > 1 or any(before not in commits for before, _, _ in split):
        raise UsageError("paths are of several revisions", hint="check one revision at a time")
    top = Path(_git("rev-parse", "--show-toplevel", folder=Path()).decode().strip() or ".")
    ((before, commit),) = commits.items()
    return Revision(before, commit, top), [after or "." for _, _, after in split]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One file of a revision."""

    path: str
    blob: str
    size: int
    link: bool

    @classmethod
    def of(cls, line: bytes) -> _Entry | None:
        """What a line of `git ls-tree -l` says; None for submodules and for paths that lead elsewhere."""
        head, _, path = line.decode("utf-8", "surrogateescape").partition("\t")
        mode, kind, blob, size = head.split()
        if kind != "blob" or any(part in ("..", ".git") for part in PurePosixPath(path).parts):
            return None
        return cls(path, blob, int(size), mode == "120000")

    @property
    def manifest(self) -> bool:
        """Whether it may hold objects."""
        return self.path.endswith(SUFFIXES)

    @property
    def readable(self) -> bool:
        """Whether it is small enough to be looked at."""
        return self.size <= (MAX_FILE if self.manifest else _MOST)

    def write(self, base: Path, data: bytes) -> None:
        """Put the file into a folder; a link only where it stays in there."""
        target = base / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not self.link:
            target.write_bytes(data)
            return
        end = data.decode("utf-8", "surrogateescape")
        try:
            inside = (target.parent / end).resolve().is_relative_to(base)
        except (OSError, RuntimeError, ValueError):  # a link to itself
            inside = False
        if inside:
            target.symlink_to(end)

    def write_hollow(self, base: Path) -> None:
        """Put in a file of the same size that takes no room, so that it is told to be too large."""
        target = base / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.truncate(self.size)


def _commit(name: str) -> str:
    """The hash of the commit that a name stands for, "" where it stands for none."""
    try:
        found = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", folder=Path())
    except UsageError:
        return ""
    return found.decode().strip()


def _blobs(names: Sequence[str], folder: Path) -> Iterator[bytes]:
    """The contents of blobs, in order."""
    output = _git("cat-file", "--batch", folder=folder, given="\n".join(names).encode())
    position = 0
    for _ in names:
        head, end = output[position : output.index(b"\n", position)], output.index(b"\n", position) + 1
        size = int(head.split()[-1])
        yield output[end : end + size]
        position = end + size + 1


def _git(*arguments: str, folder: Path, given: bytes = b"") -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, input=given, capture_output=True, check=False)
    except FileNotFoundError:
        raise EnvironmentLacks("git is not installed", hint="install git to check a revision") from None
    if done.returncode:
        raise UsageError(f"git {arguments[0]}: {done.stderr.decode('utf-8', 'replace').strip() or 'no such thing'}")
    return done.stdout
