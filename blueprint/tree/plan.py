"""Compare what should be in the tree with what is there: pure reading, nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from blueprint.errors import UsageError
from blueprint.finding import Finding
from blueprint.tree import lock as locks
from blueprint.tree import paths, rules
from blueprint.tree.lock import Lock, Made, Part
from blueprint.tree.scan import SIGNATURES, Scan, read, scan


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do to the tree at `root`. All paths are below the root and sorted.

    `added`, `changed` and `removed` are files; the lock shows only as `lock_changed`. `edited_by_hand` are owned files
    whose bytes are not those of the lock, `in_the_way` are files at a rendered path that the lock does not own: both
    are in `changed` or `removed` too, and forbid the run unless the plan was made with `overwrite`. `foreign` files
    stay as they are.
    """

    root: Path
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    edited_by_hand: tuple[str, ...] = ()
    in_the_way: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    lock: bytes = b""
    lock_changed: bool = False
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Path → bytes of what is added or changed, the lock not among them."""
    seen: Scan = field(default_factory=Scan, repr=False)
    """The tree as this plan found it."""

    @property
    def changes(self) -> bool:
        """Whether any file, or the lock, would be different afterwards."""
        return bool(self.added or self.changed or self.removed or self.lock_changed)

    @property
    def refused(self) -> bool:
        """Whether a finding forbids the run."""
        return any(f.fails for f in self.findings)


def plan(
    root: Path, files: Mapping[str, bytes], made: Mapping[str, Made], *, partial: bool = False, overwrite: bool = False
) -> Plan:
    """Say what it takes to make the tree at `root` hold `files` (path below the root → bytes).

    `made` names the rendered clusters. With `partial` the files and lock rows of every other cluster stay; without it
    they are pruned. `overwrite` turns hand edits, foreign files at rendered paths and (unless `partial`) an unusable
    lock and the tree of another platform from errors into warnings. Raises UsageError where `root` is a link or a
    file, OSError where the tree cannot be read.
    """
    for path in files:
        if path.partition("/")[0] not in made and not paths.fault(path):
            raise UsageError(f"{path} lies in the folder of no rendered cluster")
    check_root(root)
    seen = scan(root)
    previous, lock_bytes, findings = _read_lock(root, seen)
    if overwrite and not partial and seen.lock_is_file:
        findings = [rules.downgraded(f) for f in findings]
    kept = {name: part for name, part in previous.clusters.items() if partial and name not in made}
    owned = {p: d for name, part in previous.clusters.items() if name not in kept for p, d in part.files.items()}
    heaps = _Heaps(root, seen, owned)
    heaps.sort(files)
    foreign = _foreign(seen, chain(files, owned, *(part.files for part in kept.values())))
    if seen.unfinished:
        findings.append(rules.unfinished(root))
    if owned and not partial and not previous.clusters.keys() & made.keys():
        findings.append(rules.of_another(root, previous.clusters, overwrite=overwrite))
    findings += rules.misnamed(root, files)
    findings += (rules.edited(root, p, overwrite=overwrite, gone=p not in files) for p in heaps.edited)
    findings += (rules.in_the_way(root, p, overwrite=overwrite) for p in heaps.in_the_way)
    blocked = _blocked(files, seen, heaps.removed)
    findings += (rules.blocked(root, p, by) for p, by in blocked.items())
    findings += (rules.missing(root, p, restored=True) for p in heaps.missing if p not in blocked)
    findings += rules.foreign(root, foreign)
    rows: dict[str, dict[str, str]] = {name: {} for name in made}
    for path in files:
        rows.get(path.partition("/")[0], {})[path] = heaps.digests[path]
    lock = locks.dump(Lock(kept | {name: Part(made[name], row) for name, row in rows.items()}))
    return Plan(
        root,
        added=tuple(sorted(heaps.added)),
        changed=tuple(sorted(heaps.changed)),
        removed=tuple(sorted(heaps.removed)),
        unchanged=tuple(sorted(heaps.unchanged)),
        edited_by_hand=tuple(sorted(heaps.edited)),
        in_the_way=tuple(sorted(heaps.in_the_way)),
        foreign=tuple(foreign),
        findings=tuple(findings),
        lock=lock,
        lock_changed=lock != lock_bytes,
        contents={path: files[path] for path in chain(heaps.added, heaps.changed)},
        seen=seen,
    )


def verify(root: Path) -> list[Finding]:
    """Compare the tree with its own lock: what was edited, deleted or put there by hand, or a lock of no use.

    Raises as `plan` does, and UsageError where there is no lock.
    """
    check_root(root)
    seen = scan(root)
    previous, data, findings = _read_lock(root, seen)
    if seen.unfinished:
        findings.append(rules.unfinished(root))
    if findings:
        return findings
    if not data:
        raise UsageError(f"no {locks.NAME} here: this is no rendered tree", where=str(root), hint="blueprint render")
    owned = previous.files()
    heaps = _Heaps(root, seen, owned)
    for path in sorted(owned):
        if not heaps.present(path):
            findings.append(rules.missing(root, path, restored=False))
        elif not heaps.as_locked(path):
            findings.append(rules.edited(root, path, overwrite=False, gone=False))
    return [*findings, *rules.foreign(root, _foreign(seen, owned))]


def check_root(root: Path) -> None:
    """Refuse a root that is a link: the repository could choose where we write. Links above it are the user's own."""
    if root.is_symlink():
        hint = "name that folder itself as the target"
        raise UsageError(f"the tree is a symbolic link to {root.readlink()}", where=str(root), hint=hint)
    if root.exists() and not root.is_dir():
        raise UsageError("the tree must be a folder, and this is a file", where=str(root))


class _Heaps:
    """Puts each path on one heap (`edited`, `in_the_way` and `missing` are marks beside it); reads a file only once."""

    def __init__(self, root: Path, seen: Scan, owned: Mapping[str, str]) -> None:
        self.root, self.seen, self.owned = str(root), seen, owned
        self.digests: dict[str, str] = {}
        self.added: list[str] = []
        self.changed: list[str] = []
        self.removed: list[str] = []
        self.unchanged: list[str] = []
        self.edited: list[str] = []
        self.in_the_way: list[str] = []
        self.missing: list[str] = []

    def present(self, path: str) -> bool:
        return path in self.seen.files or path in self.seen.others

    def content(self, path: str) -> bytes | None:
        stamp = self.seen.files.get(path)
        return read(self.root, path, stamp.size) if stamp else None

    def as_locked(self, path: str) -> bool:
        content = self.content(path)
        return content is not None and locks.digest(content) == self.owned[path]

    def sort(self, files: Mapping[str, bytes]) -> None:
        for path in sorted(files):
            self._wanted(path, files[path])
        for path in sorted(self.owned.keys() - files.keys()):
            if self.present(path):
                self.removed.append(path)
                if not self.as_locked(path):
                    self.edited.append(path)

    def _wanted(self, path: str, data: bytes) -> None:
        self.digests[path] = locks.digest(data)
        if not self.present(path):
            self.added.append(path)
            if path in self.owned:
                self.missing.append(path)
            return
        content = self.content(path)
        if content == data:  # right already, whoever wrote it: after a merge the files may be ahead of the lock
            self.unchanged.append(path)
            return
        self.changed.append(path)
        if path not in self.owned:
            self.in_the_way.append(path)
        elif content is None or locks.digest(content) != self.owned[path]:
            self.edited.append(path)


def _blocked(files: Mapping[str, bytes], seen: Scan, removed: Iterable[str]) -> dict[str, str]:
    """Rendered path → what must stay and is in its way: a folder there, or something above it that is no folder."""
    gone = set(removed)
    staying = {path for path in chain(seen.files, seen.others) if path not in gone and path not in files}
    folders = paths.remaining_folders(seen.folders, staying, gone)
    blocked = {path: path for path in sorted(files.keys() & folders)}
    if barriers := paths.folders_of(files) & staying:
        for path in sorted(files):
            if above := next((folder for folder in paths.ancestors(path) if folder in barriers), None):
                blocked[path] = above
    return blocked


def _read_lock(root: Path, seen: Scan) -> tuple[Lock, bytes, list[Finding]]:
    """The lock in `root`, its bytes, and why it is of no use; no lock is the empty one with no bytes."""
    if not seen.lock_is_file:
        fix = f"remove it, then {rules.RENDER}"
        return Lock(), b"", [Finding("TRE105", "the lock is not a regular file", rules.at(root, locks.NAME), fix=fix)]
    if seen.lock is None:
        return Lock(), b"", []
    if seen.lock.size > locks.LARGEST:
        return Lock(), b"", [locks.too_large(str(root / locks.NAME))]
    data = read(str(root), locks.NAME, seen.lock.size)
    lock, findings = locks.parse(data, str(root / locks.NAME))
    return lock, data, findings


def _foreign(seen: Scan, known: Iterable[str]) -> list[str]:
    """Files and links that are not `known`, sorted; signatures are not foreign."""
    unknown = (seen.files.keys() | seen.others.keys()) - set(known)
    return sorted(path for path in unknown if not path.startswith(f"{SIGNATURES}/"))
