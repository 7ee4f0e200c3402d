"""Where a field stands in the text of a document, read off its lines: for YAML in blocks, which is most of it.

What is not plain blocks (flow collections, anchors, several-line keys) is left to the parser: `place` then gives None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_KEY = re.compile(r"(?:([A-Za-z_$][\w./$-]*)|\"([^\"\\]*)\"|'([^']*)')[ ]*:(?:[ ]+|$)")
_ITEM = re.compile(r"-(?:[ ]+|$)")
_OPEN_QUOTE = re.compile(r"(?:[:?-][ ]+|^[ ]*)(?:\"(?:[^\"\\\n]|\\.)*|'(?:[^'\n]|'')*)$", re.MULTILINE)
_ODD_START = ("?", "<<", "%", "\t", "...", "{", "[", "&", "*", "!", "|", ">")


def readable(text: str) -> bool:
    """Whether lines alone tell how a text is built: a quoted text over several lines may stand at any indent."""
    return _OPEN_QUOTE.search(text) is None


def place(lines: Sequence[str], start: int, steps: Sequence[str | int]) -> tuple[int, int] | None:
    """Line and column (from 0) of a field of the document that begins at line `start`.

    Where the field is not there, those of the nearest parent that is. None where only the parser can tell.
    """
    if start >= len(lines) or lines[start][:1] in (" ", "{", "[", "-", ""):
        return None
    found = (start, 0)
    first, last, indent = start, _end(lines, start, 0, sequence=False), 0
    rest = ""
    for number, step in enumerate(steps):
        if rest:
            # A value on the line of its key: a scalar has nothing below it, anything else is not ours to read.
            return found if number and rest[0] not in "{[&*!|>\"'#" and _scalar(rest) else None
        child = _key(lines, first, last, indent, step) if isinstance(step, str) else _item(lines, first, last, step)
        if child is None:
            return None
        if isinstance(child, Absent):
            return found
        line, column, rest, below = child
        found = (line, column)
        if rest and isinstance(step, int) and _KEY.match(rest):
            first, indent, rest = line, column, ""
            last = _end(lines, line, column, sequence=False)
        else:
            first = below
            last = _end(lines, line, column if isinstance(step, str) else column - 1, sequence=isinstance(step, str))
            indent = _indent(lines, first, last)
            if indent < 0 and not rest:
                rest = "null"
    return found


def _scalar(text: str) -> bool:
    return ": " not in text and not text.endswith(":")


def _end(lines: Sequence[str], start: int, indent: int, *, sequence: bool) -> int:
    """The line after the last one that belongs to what starts at a line with an indent."""
    for at in range(start + 1, len(lines)):
        line = lines[at]
        own = len(line) - len(line.lstrip(" "))
        bare = line[own:]
        if not bare or bare[0] == "#":
            continue
        if own < indent or (own == indent and sequence and not bare.startswith(("- ", "-\n")) and bare != "-"):
            return at
        if line.startswith("---"):
            return at
    return len(lines)


def _indent(lines: Sequence[str], first: int, last: int) -> int:
    for at in range(first, last):
        bare = lines[at].lstrip(" ")
        if bare and bare[0] != "#":
            return len(lines[at]) - len(bare)
    return -1


class Absent:
    """There is no such field."""


_ABSENT = Absent()
_Child = tuple[int, int, str, int] | Absent | None


def _key(lines: Sequence[str], first: int, last: int, indent: int, name: str) -> _Child:
    """Line, column, what follows the key, and the line below it where the map has such a key."""
    for at in range(first, last):
        line = lines[at]
        # The first line of an item stands behind its dash.
        bare = line[indent:] if at == first or not line[:indent].strip(" ") else ""
        if not bare or bare[0] in " #":
            if bare.strip() and bare[0] == " " and at == first:
                return None
            continue
        if bare.startswith(_ODD_START):
            return None
        match = _KEY.match(bare)
        if match is None:
            return None
        if name in match.groups():
            return at, indent, _bare(bare[match.end() :]), at + 1
    return _ABSENT


def _item(lines: Sequence[str], first: int, last: int, number: int) -> _Child:
    """Line, column, what follows the dash, and the line below it."""
    indent = _indent(lines, first, last)
    seen = -1
    for at in range(first, last):
        line = lines[at]
        own = len(line) - len(line.lstrip(" "))
        bare = line[own:]
        if own != indent or not bare or bare[0] == "#":
            if bare and own < indent and bare[0] != "#":
                return None
            continue
        match = _ITEM.match(bare)
        if match is None:
            return None
        seen += 1
        if seen == number:
            rest = _bare(bare[match.end() :])
            return (at, indent + match.end(), rest, at + 1) if rest and not rest.startswith("- ") else None
    return _ABSENT if seen >= 0 else None


def _bare(text: str) -> str:
    """The rest of a line without a comment."""
    text = text.strip(" ")
    return "" if text.startswith("#") else text
