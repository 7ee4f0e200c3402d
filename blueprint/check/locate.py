"""From a field path to a line: positions are looked up only for what a person will read.

A field path is written `spec.template.spec.containers[0].image`; a key that is more than letters, digits, `_`, `-`
and `$` stands in brackets and quotes: `metadata.labels["app.kubernetes.io/name"]`.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from blueprint.check import outline
from blueprint.check.documents import documents
from blueprint.check.goyaml import Node, Shape, child, compose
from blueprint.check.scalars import Unreadable
from blueprint.finding import Finding, Source

_STEP = re.compile(r'\.?([\w$-]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\.?([^.\[\]]+)')
_PLAIN = re.compile(r"[\w$-]+")


def field_path(*steps: str | int) -> str:
    """The written form of a path: field_path("spec", "ports", 0, "name") is `spec.ports[0].name`."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def path_steps(path: str) -> list[str | int]:
    """The steps of a written path, the inverse of field_path; text that is no path gives what can be read of it."""
    steps: list[str | int] = []
    for name, index, quoted, other in _STEP.findall(path):
        if index:
            steps.append(int(index))
        else:
            steps.append(json.loads(quoted) if quoted else name or other)
    return steps


def locate(text: str, source: Source, path: str) -> Source:
    """Where a field of the object at `source` stands in the text of its file.

    Where the field itself is missing this is the nearest parent that exists; `source` itself where nothing is found.
    """
    return _Text(text).place(source, path)


def _object_at(root: Node, line: int, column: int) -> Node:
    """The map of a document that starts at a place: the document itself, or a member of a List."""
    items = child(root, "items")
    if (root.line, root.column) != (line, column) and items is not None and items.target().shape is Shape.SEQUENCE:
        for item in items.target().children:
            if (item.line, item.column) == (line, column):
                return item.target()
    return root


def deepest(node: Node, steps: Iterable[str | int]) -> Node:
    """The node at which a person looks for a field: its key, or its item of a list; of a missing one the parent's."""
    place = node
    for step in steps:
        node = node.target()
        following = child(node, step)
        if following is None:
            break
        place = following
        if node.shape is Shape.MAP:
            place = next(key for key, _ in node.pairs() if key.target().text == str(step))
        node = following
    return place


def located(findings: Iterable[Finding], known: Mapping[str, str] | None = None, base: Path = Path()) -> list[Finding]:
    """The same findings, with the line of the field for each that names a path in a file that can be read.

    `known` are texts by file name that are at hand already; others are read below `base`.
    """
    texts: dict[str, _Text | None] = {name: _Text(text) for name, text in (known or {}).items()}
    result = []
    for finding in findings:
        if finding.path and finding.source and finding.source.line:
            file = finding.source.file
            if file not in texts:
                texts[file] = _text(base / file)
            text = texts[file]
            if text is not None:
                result.append(replace(finding, source=text.place(finding.source, finding.path)))
                continue
        result.append(finding)
    return result


class _Text:
    """A file in which places are looked up: divided into documents once, and each parsed at most once."""

    def __init__(self, text: str) -> None:
        self._text = text.removeprefix("\ufeff").replace("\r\n", "\n")
        self._trees: dict[int, Node | None] = {}

    @cached_property
    def _lines(self) -> list[str]:
        return self._text.split("\n")

    @cached_property
    def _readable(self) -> bool:
        return outline.readable(self._text)

    @cached_property
    def _documents(self) -> list[tuple[int, str]]:
        return [(start, chunk) for start, chunk, _ in documents(self._text)]

    def place(self, source: Source, path: str) -> Source:
        """Where a field of the object at `source` stands."""
        if (
            source.column == 1
            and self._readable
            and (found := outline.place(self._lines, source.line - 1, path_steps(path)))
        ):
            return Source(source.file, found[0] + 1, found[1] + 1)
        at = bisect_left(self._documents, source.line, key=lambda document: document[0]) - 1
        if at < 0:
            return source
        start, chunk = self._documents[at]
        if at not in self._trees:
            self._trees[at] = _tree(chunk)
        node = self._trees[at]
        if node is None:
            return source
        place = deepest(_object_at(node, source.line - 1 - start, source.column - 1), path_steps(path))
        return Source(source.file, start + place.line + 1, place.column + 1)


def _tree(chunk: str) -> Node | None:
    try:
        return compose(chunk)
    except Unreadable:
        return None


def _text(file: Path) -> _Text | None:
    try:
        return _Text(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
