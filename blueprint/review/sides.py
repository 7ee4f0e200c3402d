"""The two sides of a review: files by path, and of these only what must be read.

A file that is the same on both sides is read when somebody asks for what lies around a change, and then once for both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from blueprint.check.helm import CHART
from blueprint.check.kustomization import FILES as KUSTOMIZATIONS
from blueprint.check.parse import Reading, read_bytes
from blueprint.check.read import SUFFIXES, read
from blueprint.check.revision import Revision, revision
from blueprint.errors import UsageError
from blueprint.finding import Finding
from blueprint.objects import Manifest
from blueprint.spec.files import FOLDERS, inputs, whole
from blueprint.tree.lock import NAME as LOCK
from blueprint.tree.lock import parse as parse_lock
from blueprint.tree.scan import read as data
from blueprint.tree.scan import scan

TREE = "rendered"
"""The folder of a platform that its tree is in."""

_OBJECT = re.compile(rb"""^(?:kind|"kind"|  "kind"): """, re.MULTILINE)


class Library:
    """Files as objects, each read once however many sides hold the same bytes at the same path."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, bytes], Reading] = {}
        self._held: dict[tuple[bytes, ...], dict[bytes, bool]] = {}

    def holds(self, data: bytes, words: tuple[bytes, ...]) -> bool:
        """Whether one of the words stands in a file; looked for once in what both sides hold."""
        known = self._held.setdefault(words, {})
        if (found := known.get(data)) is None:
            found = known[data] = any(word in data for word in words)
        return found

    def read(self, path: str, data: bytes) -> Reading:
        """What one file holds."""
        key = (path, data)
        if (found := self._read.get(key)) is None:
            found = self._read[key] = Reading()
            read_bytes(data, path, found)
        return found


@dataclass(slots=True)
class Side:
    """One side: `name` as it was asked for, `place` the path in the repository that the files are below.

    `files` are those that may hold objects, by path below the place; `built` is what Kustomize and Helm made of them,
    where there is something to build. `clusters` are the folders that a lock says are clusters. `specs` is the digest
    of the specs beside a tree, `made` those that the lock says its clusters were made of.
    """

    name: str
    place: str
    files: dict[str, bytes]
    library: Library
    built: Reading | None = None
    clusters: frozenset[str] = frozenset()
    specs: str = ""
    made: frozenset[str] = frozenset()
    _whole: Reading | None = field(default=None, repr=False)

    @property
    def whole(self) -> Reading:
        """Everything, read when it is asked for."""
        if self.built is not None:
            return self.built
        if self._whole is None:
            self._whole = self.holding(())
        return self._whole

    def holding(self, words: Sequence[bytes]) -> Reading:
        """What the files hold in which one of the words stands; all files where there is none."""
        if self.built is not None:
            return self.built
        wanted = tuple(words)
        return self.of(p for p, data in self.files.items() if not wanted or self.library.holds(data, wanted))

    def holding_all(self, words: Sequence[bytes]) -> Reading:
        """What the files hold in which every one of the words stands."""
        if self.built is not None:
            return self.built
        holds = self.library.holds
        return self.of(p for p, data in self.files.items() if all(holds(data, (word,)) for word in words))

    def of(self, paths: Iterator[str]) -> Reading:
        """What some of the files hold."""
        together = Reading()
        for path in sorted(paths):
            one = self.library.read(path, self.files[path])
            together.manifests += one.manifests
            together.aside += one.aside
            together.findings += one.findings
            together.marked |= one.marked
        return together

    def count(self, path: str) -> int:
        """How many objects a file seems to hold, without reading it."""
        return len(_OBJECT.findall(self.files[path]))


@dataclass(slots=True)
class Sides:
    """Base and head, and what of them must be read: the files that are not the same on both."""

    base: Side
    head: Side
    changed: list[str]
    moved: dict[str, str]
    """Files of the head that stand elsewhere in the base, letter by letter: head path → base path."""
    unchanged: int
    """Objects in files that are the same on both sides."""

    def manifests(self) -> tuple[list[Manifest], list[Manifest]]:
        """The objects that may differ, of the base and of the head."""
        if self.base.built is not None or self.head.built is not None:
            return self.base.whole.manifests, self.head.whole.manifests
        pair = []
        for side in (self.base, self.head):
            pair.append(side.of(path for path in self.changed if path in side.files).manifests)
        return pair[0], pair[1]

    def findings(self) -> list[Finding]:
        """What is wrong with reading the files that changed."""
        return self.head.of(path for path in self.changed if path in self.head.files).findings


@contextmanager
def sides(base: str, head: str) -> Iterator[Sides]:
    """Open both sides: a folder, a file, a revision of Git, or `REVISION:PATH`.

    Raises UsageError for what is none of these.
    """
    library = Library()
    with ExitStack() as stack:
        opened = [stack.enter_context(_opened(name)) for name in (base, head)]
        # Beside a platform's tree, specs alone are a platform without one, and no manifests.
        trees = any(_is_platform(top) for top, _ in opened)
        old, new = (
            _side(name, top, place, library, tree=trees and (top / FOLDERS[0]).is_dir())
            for name, (top, place) in zip((base, head), opened, strict=True)
        )
        yield compared(old, new)


def compared(old: Side, new: Side) -> Sides:
    """Find what differs, by bytes alone."""
    changed = sorted(p for p in old.files.keys() | new.files.keys() if old.files.get(p) != new.files.get(p))
    old.files.update({path: new.files[path] for path in old.files.keys() & new.files.keys() - set(changed)})
    gone = {old.files[path]: path for path in changed if path not in new.files}
    moved = {p: gone[new.files[p]] for p in changed if p not in old.files and new.files[p] in gone}
    differs = set(changed)
    unchanged = sum(new.count(path) for path in new.files if path not in differs)
    return Sides(old, new, changed, moved, unchanged)


@contextmanager
def _opened(name: str) -> Iterator[tuple[Path, str]]:
    """Where the files of a side lie, and their path in the repository."""
    path = Path(name)
    if name and path.exists():
        yield path, name
        return
    asked, below = _asked(name)
    with asked.files(below) as folder:
        yield folder / below[0], below[0]


def _asked(name: str) -> tuple[Revision, list[str]]:
    asked, below = revision([name])
    if asked is not None:
        return asked, below
    try:
        asked, below = revision(["."], name)
    except UsageError:
        hint = "write a folder, a revision such as main, or REVISION:PATH"
        raise UsageError(f"{name} is no folder and no revision of Git", hint=hint) from None
    assert asked is not None  # noqa: S101 - a name was given
    return asked, below


def _side(name: str, top: Path, place: str, library: Library, *, tree: bool) -> Side:
    """One side; `tree`: it is a platform, of which the tree counts, be there one or not."""
    specs = inputs(whole(top)) if tree else ""
    if tree:
        top, place = top / TREE, f"{place}/{TREE}"
    files = dict(_files(top)) if top.exists() else {}
    side = Side(name, "" if os.path.normpath(place) == "." else os.path.normpath(place), files, library)
    side.clusters = frozenset(_clusters(top))
    side.specs, side.made = specs, frozenset(_made(top)) if specs else frozenset()
    if top.is_dir() and any(PurePath(path).name in (*KUSTOMIZATIONS, CHART) for path in files):
        side.built = read([Path()], base=top, build=True)
    side.files = {path: data for path, data in files.items() if path.endswith(SUFFIXES)}
    return side


def _files(top: Path) -> Iterator[tuple[str, bytes]]:
    """Path below the top and bytes of every file that may hold objects, without hidden ones."""
    if not top.is_dir():
        yield top.name, top.read_bytes()
        return
    wanted = (*KUSTOMIZATIONS, CHART)
    for path, stamp in scan(top).files.items():
        *folders, name = path.split("/")
        if not (name.endswith(SUFFIXES) or name in wanted):
            continue
        if not any(step.startswith(".") or step == "node_modules" for step in (*folders, name)):
            yield path, data(str(top), path, stamp.size)


def _is_platform(top: Path) -> bool:
    """Whether specs lie here with their rendered tree."""
    return (top / FOLDERS[0]).is_dir() and (top / TREE / LOCK).is_file()


def _clusters(top: Path) -> Iterator[str]:
    """The folders of clusters, where a lock says that the folders beside it are some."""
    if (top / LOCK).is_file():
        yield from (each.name for each in top.iterdir() if each.is_dir() and not each.name.startswith("."))


def _made(top: Path) -> Iterator[str]:
    """The digests of the inputs that the clusters of a tree were made of."""
    if (top / LOCK).is_file():
        lock, _ = parse_lock((top / LOCK).read_bytes())
        yield from (part.made.inputs for part in lock.clusters.values())
