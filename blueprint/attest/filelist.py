"""The canonical list of a tree's files: what is signed, and what is compared.

One row a file, sorted by the bytes of the path: its path, SHA-256, size in bytes, and mode as Git spells it. The digest
of a tree is the SHA-256 of that list in RFC 8785 form. `.attestations/` is left out, for it holds the signatures; there
is no other exception, so whatever lies in a tree is either in its list or a fault.
"""

# Strings and plain system calls below, not Path objects: a tree has 10,000 files.

from __future__ import annotations

import os
import stat
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, NamedTuple

import orjson

from blueprint.attest.attributes import changing
from blueprint.errors import EnvironmentLacks, UsageError
from blueprint.finding import Finding, Source
from blueprint.tree import paths
from blueprint.tree.lock import NAME as LOCK
from blueprint.tree.scan import SIGNATURES

SUFFIX: Final = ".sigstore.json"
LARGEST_BUNDLE: Final = 64 * 2**20
"""Bytes; the list of about 300,000 files."""

PLAIN: Final = "100644"
EXECUTABLE: Final = "100755"

_FOUND: Final = ("blob", "size")
"""What `git cat-file --batch` says behind the name of an object that is there; else one word, such as `missing`."""

_OF_ANOTHER: Final = frozenset(
    ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_CONFIG_PARAMETERS")
)
"""What Git tells its hooks (git rev-parse --local-env-vars): the repository is the one in which the tree lies."""

Mode = Literal["100644", "100755"]


class Row(NamedTuple):
    """One file. Permissions of group and others are not part of the mode, as in Git."""

    path: str
    sha256: str
    size: int
    mode: str


class Fault(NamedTuple):
    """What keeps a tree from having a list: `code` is that of the rule."""

    code: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in a tree: its rows, what is wrong with it, and its bundles (file name → bytes).

    `where` is how messages call the tree; `folder` is its path in the repository, "" where that is not known.
    """

    where: str
    rows: tuple[Row, ...]
    faults: tuple[Fault, ...] = ()
    bundles: Mapping[str, bytes] = field(default_factory=dict)
    folder: str = ""
    objects: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Path → bytes of the lock, and of files that speak of Argo CD or of the signatures' own folder."""

    @property
    def digest(self) -> str:
        """64 hexadecimal digits of the SHA-256 of the list."""
        return digest(self.rows)

    def finding(self, code: str, path: str, message: str, *, fix: str = "") -> Finding:
        """Something about one file of the tree, or about the tree where `path` is ""."""
        return Finding(
            code, f"{path} {message}".strip(), Source(f"{self.where}/{path}" if path else self.where), fix=fix
        )


def canonical(value: object) -> bytes:
    """RFC 8785 for what we write: keys are ASCII, numbers whole (orjson sorts by UTF-8, the RFC by UTF-16)."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest(rows: Sequence[Row]) -> str:
    """The digest of a list, 64 hexadecimal digits."""
    return sha256(canonical(as_dicts(rows))).hexdigest()


def as_dicts(rows: Sequence[Row]) -> list[dict[str, object]]:
    """The rows as JSON has them."""
    return [{"path": path, "sha256": sha, "size": size, "mode": mode} for path, sha, size, mode in rows]


def of_folder(root: Path) -> Listing:
    """The list of a folder as it lies on the disk. Raises UsageError where `root` is none, OSError as reading does."""
    if root.is_symlink() or not root.is_dir():
        raise UsageError("this is no folder", where=str(root), hint="name the rendered tree, such as rendered/")
    found = _Found(str(root))
    for path, status in _walk(str(root), found):
        place = f"{root}/{path}"
        if not stat.S_ISREG(status.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "no regular file"
            found.faults.append(Fault("SIG205", path, f"is {kind}: what it leads to is not signed"))
            continue
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            # One system call where it gives the size of a moment ago. A file may have grown, and above 2 GiB a call
            # gives less than was asked for (read(2)): what is not read would not be covered.
            data = os.read(handle, status.st_size + 1)
            while more := os.read(handle, 1 << 20) if len(data) != status.st_size else b"":
                data += more
        finally:
            os.close(handle)
        found.add(path, data, EXECUTABLE if status.st_mode & stat.S_IXUSR else PLAIN)
    return found.listing()


def of_commit(repository: Path, revision: str, folder: str) -> Listing:
    """The list of a folder as a commit holds it: blobs, untouched by filters, line ends and other checkout settings.

    `folder` is relative to the top of the repository. Raises UsageError for what is not there, EnvironmentLacks
    without Git.
    """
    folder = folder.strip("/")
    commit = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    name = commit.decode().strip()
    prefix = f"{folder}/" if folder not in ("", ".") else ""
    listed = _git(repository, "ls-tree", "-r", "-z", "--full-tree", name).split(b"\0")
    found = _Found(f"{revision}:{folder}")
    wanted: list[tuple[str, str, str]] = []
    for line in filter(None, listed):
        head, _, raw = line.partition(b"\t")
        mode, _, blob = head.decode().split(" ")
        path = raw.decode("utf-8", "surrogateescape")
        if path.startswith(prefix):
            wanted.append((path.removeprefix(prefix), mode, blob))
        elif path.rpartition("/")[2] == ".gitattributes" and prefix.startswith(path.removesuffix(".gitattributes")):
            wanted.append((f"../{path}", mode, blob))
    if not any(not path.startswith("../") for path, _, _ in wanted):
        raise UsageError(f"nothing lies in {folder or '.'} in revision {revision}", where=str(repository))
    above: list[bytes] = []
    contents = _blobs(repository, [blob for _, mode, blob in wanted if mode in (PLAIN, EXECUTABLE)])
    for path, mode, _ in wanted:
        if mode not in (PLAIN, EXECUTABLE):
            kind = "a symbolic link" if mode == "120000" else "a submodule"
            found.faults.append(Fault("SIG205", path, f"is {kind}: what it leads to is not signed"))
        elif path.startswith("../"):
            above.append(next(contents))
        else:
            found.add(path, next(contents), mode)
    names = [row.path for row in found.rows]
    lines = changing(above, names, found.attributes)
    found.faults += [Fault("SIG207", "", f"a .gitattributes above has {line!r}") for line in lines]
    return found.listing(prefix.removesuffix("/"))


class _Found:
    """Collects rows, bundles and faults of one tree."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.rows: list[Row] = []
        self.faults: list[Fault] = []
        self.bundles: dict[str, bytes] = {}
        self.objects: dict[str, bytes] = {}
        self.attributes: list[bytes] = []

    def add(self, path: str, data: bytes, mode: str) -> None:
        """A regular file."""
        if path.startswith(f"{SIGNATURES}/"):
            self._signature(path, data, mode)
            return
        if not _is_text(path):
            self.faults.append(Fault("SIG206", paths.shown(path), "has a name that is no UTF-8, or cannot be printed"))
            return
        self.rows.append(Row(path, sha256(data).hexdigest(), len(data), mode))
        if path.rpartition("/")[2] == ".gitattributes":
            self.attributes.append(data)
        if path == LOCK or SIGNATURES.encode() in data or (b"argoproj.io" in data and b"Application" in data):
            self.objects[path] = data

    def _signature(self, path: str, data: bytes, mode: str) -> None:
        name = path.removeprefix(f"{SIGNATURES}/")
        if "/" in name or not name.endswith(SUFFIX) or mode != PLAIN or not _is_text(name):
            message = f"lies among the signatures: only *{SUFFIX} may, and it is not covered by any"
            self.faults.append(Fault("SIG208", paths.shown(path), message))
        elif len(data) > LARGEST_BUNDLE:
            self.faults.append(Fault("SIG208", path, f"is larger than {LARGEST_BUNDLE // 2**20} MiB"))
        else:
            self.bundles[name] = data

    def listing(self, folder: str = "") -> Listing:
        """What was found, sorted."""
        names = [row.path for row in self.rows]
        for first, second in paths.twins(names):
            message = f"is one file with {first} where the file system ignores case or Unicode form"
            self.faults.append(Fault("SIG206", second, message))
        for name in sorted(name for name, count in Counter(names).items() if count > 1):
            self.faults.append(
                Fault("SIG206", name, "stands twice in the commit: which one is read, each tool decides")
            )
        lines = changing(self.attributes, names)
        self.faults += [Fault("SIG207", "", f"a .gitattributes has {line!r}") for line in lines]
        rows = tuple(sorted(self.rows, key=lambda row: row.path.encode()))
        return Listing(self.where, rows, tuple(sorted(self.faults)), self.bundles, folder, self.objects)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return path.isprintable()


def _walk(root: str, found: _Found) -> Iterator[tuple[str, os.stat_result]]:
    """Every file, link and special file below `root`; a fault for each `.git`, and each folder that holds nothing."""
    pending = [""]
    while pending:
        folder = pending.pop()
        empty = True
        with os.scandir(f"{root}/{folder}") as entries:
            for entry in entries:
                empty = False
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name.casefold() == ".git":
                        found.faults.append(Fault("SIG203", path, "is a Git folder inside of the tree"))
                    else:
                        pending.append(path)
                else:
                    yield path, entry.stat(follow_symlinks=False)
        if empty and folder and folder != SIGNATURES:
            found.faults.append(Fault("SIG203", f"{folder}/", "is an empty folder, which no commit can hold"))


def _git(repository: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Run Git without the settings of the machine or of the repository that could change what is read."""
    command = ["git", "--no-replace-objects", "-c", "core.fsmonitor=false", *arguments]
    own = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER}
    environment = own | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(command, cwd=repository, input=given, capture_output=True, check=False, env=environment)
    except FileNotFoundError:
        raise EnvironmentLacks("git is not installed", hint="install git, or name a folder") from None
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip() or "no such revision"
        raise UsageError(f"git {arguments[0]}: {reason}", where=str(repository))
    return done.stdout


def _blobs(repository: Path, names: Sequence[str]) -> Iterator[bytes]:
    """The contents of blobs, in order."""
    output = _git(repository, "cat-file", "--batch", given="\n".join(names).encode()) if names else b""
    position = 0
    for _ in names:
        end = output.index(b"\n", position) + 1
        name, *kind = output[position:end].split()
        if len(kind) != len(_FOUND):
            hint = "git fetch --refetch"
            raise UsageError(f"{name.decode()} of this commit is not there", where=str(repository), hint=hint)
        size = int(kind[-1])
        yield output[end : end + size]
        position = end + size + 1


def top_of(tree: Path) -> tuple[Path, str]:
    """The top of the work tree of Git in which a folder lies, there or not, and the folder's path in it.

    Raises UsageError where it lies in none, and for a link that a work tree holds: which folder of another commit is
    judged would be for whoever committed the link to say.
    """
    place = Path(os.path.abspath(tree))  # noqa: PTH100 - Path.resolve follows the links that are looked for
    for each in (place, *place.parents):
        if each.is_symlink() and _held(each.parent):
            hint = "name the folder that it leads to"
            message = "this is a link of a work tree: a commit holds the link, not the tree"
            raise UsageError(message, where=str(each), hint=hint)
    top = _top(next(each for each in (place, *place.parents) if each.is_dir()))
    return top, place.resolve().relative_to(top).as_posix()


def in_repository(tree: Path) -> str:
    """The path of a folder in its repository, "" where it lies in none, or nothing can tell."""
    try:
        return tree.resolve().relative_to(_top(tree)).as_posix()
    except (UsageError, EnvironmentLacks, ValueError):
        return ""


def _top(folder: Path) -> Path:
    return Path(_git(folder, "rev-parse", "--show-toplevel").decode().removesuffix("\n"))


def _held(folder: Path) -> bool:
    """Whether a work tree holds a folder."""
    try:
        _top(folder)
    except UsageError:
        return False
    return True
