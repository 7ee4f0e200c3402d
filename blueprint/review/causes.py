"""From what a review says to the line of the spec that caused it.

Each change of a spec is taken back alone, the platform is rendered again in memory, and the two trees are reviewed:
what that review says is what this change caused. Where the change cannot be taken back alone, the first changed line of
the document that the object comes from is told, else the document.
"""

from __future__ import annotations

import difflib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blueprint.catalog.schemas import SchemaPack
from blueprint.errors import BlueprintError
from blueprint.finding import Source
from blueprint.review.again import Platform, opened, platform_of, sources, specs_of
from blueprint.review.model import CauseKey, Causes, Meaning, Review, Statement, cause_keys
from blueprint.review.run import compare
from blueprint.review.sides import Library, Side, compared
from blueprint.spec.files import FOLDERS

_MOST = 40_000
"""Files that are rendered at most to find causes: each change of a spec takes a rendering and a review of all."""
_LINES = 12
"""Lines that were changed one for one and are looked at one by one."""


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of a spec file: the line to tell, and the text of the file without the change (None: no file)."""

    line: int
    without: str | None


def causes(review: Review, head: Path, base: str) -> Causes:
    """Why a review says what it says; nothing where no platform is there.

    `head` and `base` are as the review was asked for: a folder, and a folder or a revision of Git.
    """
    found = platform_of(head)
    if found is None:
        return Causes()
    root, _ = found
    specs = _Specs(root, base)
    above = os.path.relpath(root)
    below = "" if head.is_absolute() or above.startswith("..") or above == "." else f"{above}/"
    try:
        documents = {path: specs.first(source) for path, source in sources(root).items()}
        told = _tried(root, specs) if review.statements else {}
    except BlueprintError:
        return Causes()
    return Causes(
        {path: place._replace(file=below + place.file) for path, place in documents.items()},
        {key: [(words, place._replace(file=below + place.file)) for words, place in v] for key, v in told.items()},
    )


def _tried(root: Path, specs: _Specs) -> dict[CauseKey, list[tuple[str, Source]]]:
    """What each change of a spec does by itself."""
    changes = [(file, change) for file in specs.changed() for change in specs.changes(file)]
    found: dict[CauseKey, list[tuple[str, Source]]] = {}
    library, pack = Library(), SchemaPack.shipped()
    with opened(root) as platform:
        head = platform.contents()
        if head is None or len(changes) * len(head) > _MOST:
            return found
        for file, (each, *whole) in changes:
            for change in (each, *whole):
                before = _without(platform, file, change)
                if before is None:
                    continue
                for said in _said(before, head, library, pack):
                    for key in cause_keys(said):
                        found.setdefault(key, []).append((said.words, Source(file, each.line, 1)))
                break
    return found


def _without(platform: Platform, file: str, change: _Change) -> dict[str, bytes] | None:
    with platform.written(file) as path:
        if change.without is None:
            path.unlink()
        else:
            path.write_text(change.without, "utf-8")
        return platform.contents()


def _said(
    before: Mapping[str, bytes], after: Mapping[str, bytes], library: Library, pack: SchemaPack
) -> Iterator[Statement | Meaning]:
    clusters = frozenset(path.partition("/")[0] for path in after if "/" in path)
    sides = [
        Side("", "", {p: data for p, data in files.items() if p.endswith(".yaml")}, library, clusters=clusters)
        for files in (before, after)
    ]
    told = compare(compared(*sides), findings=False, shipped=pack)
    yield from told.statements
    yield from told.meanings


class _Specs:
    """The specs of the head, and what they were in the base."""

    def __init__(self, root: Path, base: str) -> None:
        self._root = root
        before = platform_of(Path(base)) if base and Path(base).exists() else None
        self._before = before[0] if before else None
        self._revision = "" if self._before or not base or Path(base).exists() else base.partition(":")[0]
        self._lines: dict[str, list[int]] = {}

    def changed(self) -> list[str]:
        """Files that are not as they were, or new, or gone."""
        names = sorted({*specs_of(self._root), *self._older()}) if self._before or self._revision else []
        return [name for name in names if self._now(name) != self._old(name)]

    def changes(self, file: str) -> Iterator[tuple[_Change, ...]]:
        """Each change of a file, followed by larger ones around it to try where it cannot be taken back alone."""
        old, new = self._old(file), self._now(file)
        if old is None or new is None:
            yield (_Change(0 if old is None else 1, old),)
            return
        before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
        for tag, i, j, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if tag == "equal":
                continue
            whole = _Change(_telling(after, start, end), "".join((*after[:start], *before[i:j], *after[end:])))
            if end - start != j - i or not 1 < end - start <= _LINES:
                yield (whole,)
                continue
            for n in range(end - start):
                text = "".join((*after[: start + n], before[i + n], *after[start + n + 1 :]))
                yield _Change(start + n + 1, text), whole

    def first(self, source: Source) -> Source:
        """The first changed line of the document at a place, else the place itself."""
        text = (self._now(source.file) or "").splitlines()
        if source.file not in self._lines:
            old = self._old(source.file)
            self._lines[source.file] = [] if old is None else list(_numbers(old.splitlines(), text))
        following = [n for n, line in enumerate(text, 1) if line.startswith("---") and n > source.line]
        end = min(following, default=len(text) + 1)
        line = next((n for n in self._lines[source.file] if source.line <= n < end), source.line)
        return Source(source.file, line, 1)

    def _now(self, file: str) -> str | None:
        return _text(self._root / file)

    def _old(self, file: str) -> str | None:
        """The spec as the base has it, None where it has none or nobody can say."""
        if self._before is not None:
            return _text(self._before / file)
        return self._git("show", f"{self._revision}:./{file}") if self._revision else None

    def _older(self) -> list[str]:
        if self._before is not None:
            return specs_of(self._before)
        listed = self._git("ls-tree", "-r", "-z", "--name-only", self._revision, "--", *FOLDERS)
        return [name for name in (listed or "").split("\0") if name.endswith((".yaml", ".yml"))]

    def _git(self, *arguments: str) -> str | None:
        done = subprocess.run(["git", *arguments], cwd=self._root, capture_output=True, check=False)
        return done.stdout.decode("utf-8", "replace").removeprefix("\ufeff") if done.returncode == 0 else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None


def _telling(lines: Sequence[str], start: int, end: int) -> int:
    """The line of a change to show, from 1: its first that says something; for what was taken out, the line above."""
    if start == end:
        return max(start, 1)
    for number in range(start, end):
        if (word := lines[number].strip()) and not word.startswith(("#", "---")):
            return number + 1
    return start + 1


def _numbers(old: Sequence[str], new: Sequence[str]) -> Iterator[int]:
    """Line numbers of the new text that are not in the old one, or follow what was taken out."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag != "equal":
            yield from range(start + 1, max(end, start + 1) + 1)
