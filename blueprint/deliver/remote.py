"""A Git repository behind an address, seen through a private bare one that lives as long as a run.

Nothing of the user's is touched: no work tree, no index, no branch, no hook of theirs. A push moves a branch in one
step or not at all, so a kill at any moment leaves the remote whole; what it leaves here is a temporary folder.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from blueprint.deliver.git import Git, GitFailed, Setting, plain
from blueprint.errors import UsageError
from blueprint.tree import paths
from blueprint.tree.exchange import write_file

_MOVED = ("fetch first", "non-fast-forward", "stale info", "failed to update ref", "cannot lock ref", "incorrect old")
"""Words of a rejected push that mean: somebody else was faster (git-push(1), receive-pack)."""

_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+@-]*")


class Pushed(StrEnum):
    """What became of one reference of a push."""

    DONE = "done"
    MOVED = "moved"  # somebody else was faster: look again
    REFUSED = "refused"  # a rule of the remote, a hook, a right that is missing


@dataclass(frozen=True, slots=True)
class Remote:
    """The repository at `address`; made by `open_remote`."""

    address: str
    git: Git
    folder: Path

    @staticmethod
    @contextmanager
    def open(address: str, settings: Sequence[Setting] = ()) -> Iterator[Remote]:
        """A remote for the time of the context. Raises UsageError for an address that is none."""
        if not address or address.startswith("-"):
            raise UsageError(f"{address!r} is no address of a Git repository")
        with tempfile.TemporaryDirectory(prefix="blueprint-deliver-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            git = Git(folder, settings)
            git("init", "--quiet", "--bare", "--template=", "private.git")
            if Path(address).exists():
                address = str(Path(address).resolve())  # it counts from where the user is, git runs elsewhere
            git.folder = folder / "private.git"
            yield Remote(address, git, folder)

    @property
    def shown(self) -> str:
        """The address without a token in it."""
        return plain(self.address)

    def tip(self, branch: str, depth: int = 1) -> str:
        """Fetch a branch and `depth` commits of its history (0: all); the commit it is at, "" where it is not there."""
        return self.fetch(f"refs/heads/{branch}", depth)

    def fetch(self, reference: str, depth: int = 1) -> str:
        """Fetch a reference; the object it names, "" where the remote has none of that name."""
        deep = [f"--depth={depth}"] if depth else ["--unshallow"] if self._shallow() else []
        arguments = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", *deep]
        code, _, said = self.git.run(*arguments, self.address, f"+{reference}:refs/fetched")
        if code == 0:
            return self.git("rev-parse", "--verify", "refs/fetched").decode().strip()
        if "couldn't find remote ref" in said:
            return ""
        raise GitFailed("fetch", f"{self.shown}: {said}")

    def _shallow(self) -> bool:
        return (self.git.folder / "shallow").exists()

    def references(self, *patterns: str) -> dict[str, str]:
        """Names and objects of the references that match, as the remote tells them now."""
        lines = self.git("ls-remote", "--quiet", self.address, *patterns).decode().splitlines()
        return {name: oid for oid, _, name in (line.partition("\t") for line in lines)}

    def unpack(self, treeish: str, path: str = "") -> Path:
        """Put the files of a tree, or below a path of it, into a new folder, byte by byte: no filter, no line ends.

        Links become links; submodules are left out.
        """
        target = Path(tempfile.mkdtemp(dir=self.folder))
        listing = self.git("ls-tree", "-r", "-z", "--full-tree", f"{treeish}:{path}" if path else treeish)
        files: dict[str, tuple[str, str]] = {}
        for line in filter(None, listing.split(b"\0")):
            head, _, name = line.decode("utf-8", "surrogateescape").partition("\t")
            mode, kind, oid = head.split()
            if kind == "blob":
                files[name] = (mode, oid)
        folders = paths.folders_of(files)
        for name in files:
            # A tree made by hand can hold what no checkout would: it must not write outside of the folder.
            if name in folders or {"..", ".git", ""} & set(name.split("/")):
                raise UsageError(f"the tree holds {name!r}, which no file can be called", where=self.shown)
        for folder in sorted(folders):
            (target / folder).mkdir()
        contents = self._blobs([oid for _, oid in files.values()])
        for (name, (mode, _)), data in zip(files.items(), contents, strict=True):
            if mode == "120000":
                (target / name).symlink_to(os.fsdecode(data))
            else:
                write_file(f"{target}/{name}", data)
        return target

    def has(self, treeish: str, path: str) -> bool:
        """Whether there is something at the path."""
        return self.git.run("cat-file", "-e", f"{treeish}:{path}")[0] == 0

    def read(self, treeish: str, path: str) -> bytes:
        """The bytes of one file, b"" where there is none."""
        code, output, _ = self.git.run("cat-file", "blob", f"{treeish}:{path}")
        return b"" if code else output

    def _blobs(self, oids: Sequence[str]) -> Iterator[bytes]:
        output = self.git("cat-file", "--batch", given="\n".join(oids).encode()) if oids else b""
        position = 0
        for _ in oids:
            end = output.index(b"\n", position) + 1
            size = int(output[position:end].split()[-1])
            yield output[end : end + size]
            position = end + size + 1

    def graft(self, base: str, changes: Mapping[str, bytes | None]) -> str:
        """The tree of commit `base` ("" is the empty one) with the changes: path → bytes, None takes a file away."""
        stream = [b"commit refs/work\ncommitter blueprint <> 0 +0000\ndata 0\n"]
        if base:
            stream.append(f"from {base}^0\n".encode())
        for path, data in changes.items():
            if data is None:
                stream.append(f"D {_quoted(path)}\n".encode())
        for path, data in changes.items():
            if data is not None:
                stream.append(f"M 100644 inline {_quoted(path)}\ndata {len(data)}\n".encode() + data + b"\n")
        stream.append(b"done\n")
        self.git.run("update-ref", "-d", "refs/work")
        self.git("fast-import", "--quiet", "--done", "--force", given=b"".join(stream))
        return self.git("rev-parse", "refs/work^{tree}").decode().strip()

    def commit(self, tree: str, parent: str, message: str, *, sign: bool | None = None) -> str:
        """Store a commit; signed if `sign`, or where it is None if `commit.gpgsign` says so."""
        if sign is None:
            sign = self.git.text("config", "--type=bool", "commit.gpgsign") == "true"
        arguments = [*(["-p", parent] if parent else []), *(["-S"] if sign else []), "-F", "-"]
        return self.git("commit-tree", tree, *arguments, given=message.encode()).decode().strip()

    def push(
        self, objects: Mapping[str, str], *, replace: Mapping[str, str] | None = None
    ) -> dict[str, tuple[Pushed, str]]:
        """Set references to objects; what became of each, and why. Branches only go forward.

        `replace` are those that may go anywhere, with what they are at now ("" for none). Raises GitFailed where the
        remote gives no answer.
        """
        leases = [f"--force-with-lease={name}:{old}" for name, old in (replace or {}).items()]
        pairs = [f"{oid}:{name}" for name, oid in objects.items()]
        code, output, said = self.git.run("push", "--porcelain", *leases, self.address, *pairs)
        results: dict[str, tuple[Pushed, str]] = {}
        for line in output.decode("utf-8", "replace").splitlines():
            flag, _, rest = line.partition("\t")
            pair, _, summary = rest.partition("\t")
            if flag in (" ", "*", "=", "+", "!") and summary:
                verdict = Pushed.DONE if flag != "!" else Pushed.REFUSED
                if verdict is Pushed.REFUSED and any(words in summary for words in _MOVED):
                    verdict = Pushed.MOVED
                results[pair.partition(":")[2]] = (verdict, plain(f"{summary}\n{said}" if flag == "!" else summary))
        if code and not any(verdict is not Pushed.DONE for verdict, _ in results.values()):
            raise GitFailed("push", f"{self.shown}: {said}")
        return results


def _quoted(path: str) -> str:
    """A path as fast-import takes it; ours are plain, others may need quotes."""
    return path if _REFERENCE.fullmatch(path) else json.dumps(path, ensure_ascii=False)
