"""From a field path to a line: positions are looked up only for what a person will read.

A field path is written `spec.template.spec.containers[0].image`; a key that is more than letters, digits, `_`, `-`
and `$` stands in brackets and quotes: `metadata.labels["app.kubernetes.io/name"]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from blueprint.check.documents import tree_at
from blueprint.check.goyaml import Node, Shape, child
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
    node, start = tree_at(text.removeprefix("\ufeff").replace("\r\n", "\n"), source.line)
    if node is None:
        return source
    return _descend(_object_at(node, source.line - 1 - start, source.column - 1), start, source, path)


def _object_at(root: Node, line: int, column: int) -> Node:
    """The map of a document that starts at a place: the document itself, or a member of a List."""
    items = child(root, "items")
    if (root.line, root.column) != (line, column) and items is not None and items.target().shape is Shape.SEQUENCE:
        for item in items.target().children:
            if (item.line, item.column) == (line, column):
                return item.target()
    return root


def _descend(node: Node, start: int, source: Source, path: str) -> Source:
    place = node
    for step in path_steps(path):
        node = node.target()
        following = child(node, step)
        if following is None:
            break
        place = following
        if node.shape is Shape.MAP:
            place = next(key for key, _ in node.pairs() if key.target().text == str(step))
        node = following
    return Source(source.file, start + place.line + 1, place.column + 1)


def located(findings: Iterable[Finding], known: Mapping[str, str] | None = None, base: Path = Path()) -> list[Finding]:
    """The same findings, with the line of the field for each that names a path in a file that can be read.

    `known` are texts by file name that are at hand already; others are read below `base`.
    """
    texts: dict[str, str | None] = dict(known or {})
    result = []
    for finding in findings:
        if finding.path and finding.source and finding.source.line:
            file = finding.source.file
            if file not in texts:
                texts[file] = _text(base / file)
            text = texts[file]
            if text is not None:
                result.append(replace(finding, source=locate(text, finding.source, finding.path)))
                continue
        result.append(finding)
    return result


def _text(file: Path) -> str | None:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
