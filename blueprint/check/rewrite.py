"""Patches applied to the text of a file, so that comments, order and layout stay.

An edit of text is only kept if the file, read again, holds exactly what the patch makes of its objects; where the text
is built in another way than these edits know (anchors, flow over lines), the file stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from blueprint.check.documents import documents
from blueprint.check.goyaml import Node, Shape, compose
from blueprint.check.parse import Reading, read_bytes
from blueprint.check.patches import apply
from blueprint.check.scalars import Unreadable
from blueprint.finding import Edit, Finding, Ref


@dataclass(slots=True)
class Fixed:
    """One file: its text before and after, the findings whose patch is in it, and those whose patch is not."""

    file: str
    before: str
    after: str
    done: list[Finding] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)


class _CannotEdit(Exception):
    """The text is built in a way that these edits do not know."""


def fixed(findings: Iterable[Finding]) -> list[Fixed]:
    """What the patches of findings make of their files; nothing is written. Files that cannot be read are left out."""
    found: dict[str, Fixed] = {}
    for finding in findings:
        if not finding.patch or not finding.source or not finding.object:
            continue
        file = finding.source.file
        if file not in found:
            try:
                text = Path(file).read_bytes().decode("utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            found[file] = Fixed(file, text, text)
        one = found[file]
        if any((each.object, each.patch) == (finding.object, finding.patch) for each in one.done):
            one.done.append(finding)  # two rules tell of one mistake, and it is mended
            continue
        text_ = rewritten(one.after, finding.object, finding.patch)
        if text_ is None:
            one.left.append(finding)
        else:
            one.after = text_
            one.done.append(finding)
    return list(found.values())


def rewritten(text: str, ref: Ref, patch: Sequence[Edit]) -> str | None:
    """The text of a file with a patch applied to one of its objects; None where that cannot be done in the text."""
    before = _read(text)
    at = [index for index, manifest in enumerate(before.manifests) if manifest.ref == ref]
    if len(at) != 1 or before.manifests[at[0]].source.column != 1 or "\r" in text or "\t" in text:
        return None
    wanted = [manifest.body for manifest in before.manifests]
    line = before.manifests[at[0]].source.line
    try:
        wanted[at[0]] = apply(wanted[at[0]], patch)
        for edit in patch:
            text = _edited(text, line, edit)
    except (_CannotEdit, Unreadable, KeyError, IndexError, ValueError, TypeError, StopIteration):
        return None
    after = _read(text)
    same = [manifest.body for manifest in after.manifests] == wanted
    return text if same and len(after.findings) <= len(before.findings) else None


def _read(text: str) -> Reading:
    reading = Reading()
    read_bytes(text.encode(), "text.yaml", reading)
    return reading


@dataclass(frozen=True, slots=True)
class _Found:
    """A field in the text: the map or list that holds it, its key (None in a list), and its value."""

    parent: Node
    key: Node | None
    value: Node


def _edited(text: str, line: int, edit: Edit) -> str:
    start, chunk = next((s, c) for s, c, _ in reversed(list(documents(text))) if s < line)
    root = compose(chunk)
    if root is None or root.shape is not Shape.MAP:
        raise _CannotEdit
    lines = text.split("\n")
    match edit.op:
        case "replace":
            _replace(lines, start, _find(root, edit.path), json.loads(edit.value))
        case "remove":
            _cut(lines, start, _find(root, edit.path))
        case "move":
            _move(lines, start, root, edit)
        case _:
            _add(lines, start, root, edit)
    return "\n".join(lines)


def _steps(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _find(root: Node, path: str) -> _Found:
    node, found = root, None
    for step in _steps(path):
        if node.shape is Shape.MAP:
            pair = next(((key, value) for key, value in node.pairs() if key.text == step), None)
            if pair is None:
                raise _CannotEdit
            found = _Found(node, *pair)
        elif node.shape is Shape.SEQUENCE and step.isdigit():
            found = _Found(node, None, node.children[int(step)])
        else:
            raise _CannotEdit
        node = found.value
    if found is None:
        raise _CannotEdit
    return found


def _scalar(value: object) -> str:
    """A value on one line: plain where every parser takes it for that text, else JSON."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w./-]*", value) and value.lower() not in _WORDS:
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_scalar(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_scalar, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def _end(line: str, column: int) -> int:
    """Where a scalar on a line ends."""
    quoted = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'").match(line, column)
    if quoted:
        return quoted.end()
    plain = re.compile(r"[^,\[\]{}#\s](?:[^,\[\]{}\n]*?)(?=\s*(?:[,\]}]|\s#|$))").match(line, column)
    if plain is None:
        raise _CannotEdit
    return plain.end()


def _replace(lines: list[str], start: int, found: _Found, value: Any) -> None:  # noqa: ANN401
    node = found.value
    if node.shape is Shape.SCALAR:
        at = start + node.line
        lines[at] = lines[at][: node.column] + _scalar(value) + lines[at][_end(lines[at], node.column) :]
    elif node.shape is Shape.SEQUENCE and isinstance(value, list) and len(value) == len(node.children):
        _reorder(lines, start, node, value)
    else:
        raise _CannotEdit


def _reorder(lines: list[str], start: int, node: Node, value: list[Any]) -> None:
    """The items of a list in another order, each as it is written; they are told apart by their names."""
    names = [_name(child) for child in node.children]
    order = [names.index(str(row["name"])) for row in value]
    rows = {child.line for child in node.children}
    if len(rows) == 1:
        at = start + node.children[0].line
        line = lines[at]
        starts = [child.column for child in node.children]
        ends = [*(line.rindex(",", 0, nxt) for nxt in starts[1:]), _closing(line, starts[-1])]
        pieces = [line[a:b] for a, b in zip(starts, ends, strict=True)]
        lines[at] = line[: starts[0]] + ", ".join(pieces[index] for index in order) + line[ends[-1] :]
        return
    if len(rows) != len(node.children):
        raise _CannotEdit
    heads = [start + child.line for child in node.children]
    last = _block_end(lines, heads[-1], node.children[-1].column)
    bounds = [*heads, last]
    pieces_ = [lines[a:b] for a, b in pairwise(bounds)]
    lines[heads[0] : last] = [line for index in order for line in pieces_[index]]


def _closing(line: str, start: int) -> int:
    """Where the flow item that starts at a column ends."""
    depth = 0
    for at in range(start, len(line)):
        depth += (line[at] in "{[") - (line[at] in "}]")
        if depth == 0:
            return at + 1
    raise _CannotEdit


def _name(node: Node) -> str:
    return next((value.text for key, value in node.pairs() if key.text == "name"), "") if node.children else ""


def _block_end(lines: Sequence[str], head: int, column: int) -> int:
    """The line after a block that starts on a line, whose own lines stand at or behind a column."""
    for at in range(head + 1, len(lines)):
        bare = lines[at].lstrip(" ")
        if bare and not bare.startswith("#") and len(lines[at]) - len(bare) < column:
            return at
        if lines[at].startswith("---"):
            return at
    return len(lines) - (lines[-1] == "")


def _below(lines: Sequence[str], start: int, found: _Found) -> tuple[int, int]:
    """The lines of a field of a block map: first and the one after the last."""
    key = found.key
    if key is None or lines[start + key.line][: key.column].strip(" "):
        raise _CannotEdit
    head = start + key.line
    if found.value.shape is Shape.SEQUENCE and found.value.line > key.line and found.value.column == key.column:
        return head, _block_end(lines, start + found.value.children[-1].line, found.value.children[-1].column)
    return head, _block_end(lines, head, key.column + 1)


def _cut(lines: list[str], start: int, found: _Found) -> None:
    key = found.key
    if key is None:
        raise _CannotEdit
    at = start + key.line
    if not lines[at][: key.column].strip(" "):
        first, last = _below(lines, start, found)
        del lines[first:last]
        return
    if found.value.shape is not Shape.SCALAR or found.value.line != key.line:
        raise _CannotEdit
    line, end = lines[at], _end(lines[at], found.value.column)
    begin = key.column
    if re.match(r"\s*,\s*", line[end:]):
        end += len(re.match(r"\s*,\s*", line[end:])[0])  # type: ignore[index]
    else:
        begin = len(line[:begin].rstrip(" ").removesuffix(","))
    lines[at] = line[:begin] + line[end:]


def _move(lines: list[str], start: int, root: Node, edit: Edit) -> None:
    found = _find(root, edit.source)
    old, new = _steps(edit.source), _steps(edit.path)
    key = found.key
    if key is None:
        raise _CannotEdit
    if old[:-1] == new[:-1]:
        at = start + key.line
        lines[at] = lines[at][: key.column] + _scalar(new[-1]) + lines[at][_key_end(lines[at], key.column) :]
        return
    target = _find(root, "/" + "/".join(new[:-1])) if new[:-1] else None
    if (
        target is None
        or target.key is None
        or target.value.shape is not Shape.MAP
        or target.value.line == target.key.line
    ):
        raise _CannotEdit
    first, last = _below(lines, start, found)
    block = lines[first:last]
    shift = target.value.column - key.column
    moved = [" " * shift + line if line.strip() else line for line in block]
    into = _below(lines, start, target)[1]
    if first < into:
        lines[into:into] = moved
        del lines[first:last]
    else:
        del lines[first:last]
        lines[into:into] = moved


def _key_end(line: str, column: int) -> int:
    match = re.compile(r"\"[^\"]*\"|'[^']*'|[\w./$-]+").match(line, column)
    if match is None:
        raise _CannotEdit
    return match.end()


def _add(lines: list[str], start: int, root: Node, edit: Edit) -> None:
    *above, last = _steps(edit.path)
    holder = _find(root, "/" + "/".join(above)) if above else None
    node = holder.value if holder else root
    written = _scalar(json.loads(edit.value)) if last == "-" else f"{_scalar(last)}: {_scalar(json.loads(edit.value))}"
    at = start + node.line
    if lines[at][node.column : node.column + 1] in ("{", "["):
        rest = lines[at][node.column + 1 :].lstrip(" ")
        comma = "" if rest[:1] in ("}", "]") else ", "
        if last == "-":
            raise _CannotEdit
        lines[at] = lines[at][: node.column + 1] + written + comma + rest
    elif last == "-":
        lines.insert(at, " " * (node.column) + f"- {written}")
    else:
        if lines[at][: node.column].strip(" "):  # an item of a list: behind its first key, which stands after the dash
            at = _block_end(lines, at, node.column + 1)
        lines.insert(at, " " * node.column + written)
