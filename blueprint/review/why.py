"""From a line of a spec to the rendered lines that depend on it, and back.

Dependence is found out, not guessed: the value on a line is changed a little, the platform is rendered again in memory,
and every rendered line that comes out different depends on it. A value that no change leaves valid is told as such.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from blueprint.check.documents import tree_at
from blueprint.check.goyaml import Node, Shape
from blueprint.errors import UsageError
from blueprint.finding import Source
from blueprint.review.again import TREE, Platform, Rendered, opened, sources, specs_of
from blueprint.spec.files import FOLDERS

_NUMBER = re.compile(r"(\d+)(.*)", re.DOTALL)
_WORDS = {"true": "false", "false": "true"}


@dataclass(frozen=True, slots=True)
class Value:
    """One value in a spec: where it stands (line and column from 1), and as what it is written."""

    place: Source
    written: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its place; `text` is what stands there."""

    place: Source
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What depends on what.

    `lines` are rendered lines for a line of a spec, and lines of specs for a rendered one. `fixed` are values on the
    asked line that no change leaves valid, so that nothing can be found out about them. `document` is the spec that
    the whole rendered file comes from, None for a line of a spec; `looked` are the specs whose values were changed.
    `tried` counts renderings.
    """

    asked: Line
    lines: tuple[Line, ...]
    fixed: tuple[Value, ...] = ()
    document: Source | None = None
    looked: tuple[str, ...] = ()
    tried: int = 0


def _without(platform: Platform, value: Value, cluster: str, original: Rendered) -> Rendered | None:
    """What is rendered with another value in one place; None where no other value is valid, or changes anything."""
    unchanged: Rendered | None = None
    with platform.written(value.place.file) as path:
        before = path.read_text("utf-8-sig")
        for other in _others(value.written):
            path.write_text(_put(before, value, other), "utf-8")
            found = platform.render(cluster)
            if found is not None and (found != original or unchanged is not None):
                return found  # a second value that changes nothing is enough to believe it
            unchanged = found or unchanged
    return unchanged


def _others(written: str) -> Iterator[str]:
    """Other values of the same shape, the likeliest to be valid first."""
    if written in _WORDS:
        yield _WORDS[written]
        return
    quote = written[0] if written[:1] in ('"', "'") else ""
    bare = written.strip(quote) if quote else written
    if match := _NUMBER.fullmatch(bare):
        number = int(match[1])
        for change in (number + 1, number * 2, max(number - 1, 0), number // 2):
            if change != number:
                yield f"{quote}{change}{match[2]}{quote}"
        return
    if digest := re.search(r"@sha256:([0-9a-f])", bare):
        other = "0" if digest[1] != "0" else "1"
        yield f"{quote}{bare[: digest.start(1)]}{other}{bare[digest.end(1) :]}{quote}"
        return
    yield f"{quote}{bare}x{quote}"
    yield f"{quote}x{bare}{quote}"


def _put(text: str, value: Value, other: str) -> str:
    lines = text.splitlines(keepends=True)
    line, start = lines[value.place.line - 1], value.place.column - 1
    lines[value.place.line - 1] = line[:start] + other + line[start + len(value.written) :]
    return "".join(lines)


def values(file: str, text: str) -> list[Value]:
    """Every scalar value of a spec that stands on one line, with its place; kinds and versions are left out."""
    found: list[Value] = []
    lines = text.splitlines()
    starts = [0, *(number for number, line in enumerate(lines, 1) if line.startswith("---"))]
    for start in starts:
        root, begin = tree_at(text, start + 1)
        if root is not None:
            found += _scalars(root, file, lines, begin)
    return list(dict.fromkeys(found))


def _scalars(node: Node, file: str, lines: Sequence[str], begin: int) -> Iterator[Value]:
    node = node.target()
    if node.shape is Shape.MAP:
        for key, child in node.pairs():
            if key.target().text not in ("apiVersion", "kind"):
                yield from _scalars(child, file, lines, begin)
    elif node.shape is Shape.SEQUENCE:
        for child in node.children:
            yield from _scalars(child, file, lines, begin)
    elif node.shape is Shape.SCALAR and begin + node.line < len(lines):
        rest = lines[begin + node.line][node.column :]
        match = re.match(r"""("[^"]*"|'[^']*'|[^\s,\]}#][^,\]}#]*)""", rest)
        written = match[1].rstrip() if match else ""
        if written and written[:1] not in ("|", ">", "&", "*", "!"):
            yield Value(Source(file, begin + node.line + 1, node.column + 1), written)


def why(place: str, *, everywhere: bool = False) -> Answer:
    """Explain `FILE:LINE`, a line of a spec or a rendered one.

    For a rendered line the spec of its object is looked at, that of its cluster and those beside it; `everywhere` asks
    for all specs, which takes a rendering for each of their values.

    Raises UsageError for a place that is neither, or a platform whose specs are not valid.
    """
    name, colon, number = place.rpartition(":")
    if not colon or not number.isdecimal() or not Path(name).is_file():
        raise UsageError(f"{place} is no FILE:LINE", hint="such as apps/chat/chat-70b.yaml:17")
    root, below = _root(Path(name))
    with opened(root) as platform:
        original = platform.render()
        if original is None:
            raise UsageError("the specs are not valid", where=str(root), hint=f"see what `render {root}` says")
        if below.split("/")[0] in FOLDERS:
            return _of_spec(platform, original, below, int(number))
        return _of_tree(platform, original, below.partition("/")[2], int(number), everywhere=everywhere)


def _root(path: Path) -> tuple[Path, str]:
    """The platform that a file belongs to, and the file's path below it."""
    absolute = path.resolve()
    for folder in absolute.parents:
        below = absolute.relative_to(folder).as_posix()
        if (folder / FOLDERS[0]).is_dir() and below.split("/")[0] in (*FOLDERS, TREE):
            return folder, below
    raise UsageError(f"{path} belongs to no platform", hint=f"specs lie below {', '.join(FOLDERS)}; the tree in {TREE}")


def _of_spec(platform: Platform, original: Rendered, file: str, line: int) -> Answer:
    text = platform.text(file)
    asked = Line(Source(file, line), _line(text.splitlines(), line))
    found: dict[Source, Line] = {}
    fixed = []
    for value in (each for each in values(file, text) if each.place.line == line):
        other = _without(platform, value, "", original)
        if other is None:
            fixed.append(value)
        for each in _changed(original, other or original):
            found[each.place] = each
    lines = tuple(found[key] for key in sorted(found))
    return Answer(asked, lines, tuple(fixed), tried=platform.tried)


def _of_tree(platform: Platform, original: Rendered, file: str, line: int, *, everywhere: bool) -> Answer:
    if file not in original:
        hint = "an object that was written by hand, or a tree that is older than the specs"
        raise UsageError(f"the specs render no {file}", hint=hint)
    asked = Line(Source(f"{TREE}/{file}", line), _line(original[file], line))
    cluster, document = file.partition("/")[0], sources(platform.root)[file]
    mine = {path: lines for path, lines in original.items() if path.startswith(f"{cluster}/")}
    found: list[Line] = []
    looked: list[str] = []
    for name in _near(platform.root, document.file, cluster, everywhere=everywhere):
        if found and not everywhere and name != document.file:
            break
        looked.append(name)
        text = platform.text(name)
        for value in values(name, text):
            other = _without(platform, value, cluster, mine)
            # A file that is gone was renamed: only the lines that say the name depend on it.
            gone = other is not None and file not in other
            if other is None or (gone and value.written not in asked.text):
                continue
            if gone or line in _numbers(original[file], other[file]):
                found.append(Line(Source(name, value.place.line), _line(text.splitlines(), value.place.line)))
    return Answer(asked, tuple(dict.fromkeys(found)), (), document, tuple(looked), platform.tried)


def _near(root: Path, file: str, cluster: str, *, everywhere: bool) -> list[str]:
    """The specs to look at, the likeliest first: the object's own, the cluster's, those in the same folder."""
    known = specs_of(root)
    folder = file.rpartition("/")[0]
    near = [name for name in known if name == f"{FOLDERS[0]}/{cluster}.yaml"]
    near += [name for name in known if name.rpartition("/")[0] == folder and name.rpartition("/")[2] == "team.yaml"]
    return list(dict.fromkeys([file, *near, *(known if everywhere else ())]))


def _line(lines: Sequence[str], number: int) -> str:
    if not 0 < number <= len(lines):
        raise UsageError(f"there is no line {number}", hint=f"the file has {len(lines)} lines")
    return lines[number - 1]


def _changed(old: Rendered, new: Rendered) -> Iterator[Line]:
    for path, lines in old.items():
        for number in _numbers(lines, new.get(path, [])):
            yield Line(Source(f"{TREE}/{path}", number), lines[number - 1])


def _numbers(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """The lines of the old text that are not in the new one."""
    if old == new:
        return []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [n + 1 for tag, start, end, _, _ in matcher.get_opcodes() if tag != "equal" for n in range(start, end)]
