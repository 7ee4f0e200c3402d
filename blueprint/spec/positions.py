"""Where each field of a document was written, and the paths that name fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from blueprint.finding import Source

Segment = str | int

_STEP = re.compile(r'\[(?P<index>[0-9]{1,9})\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]|\.?(?P<plain>[^.\[]+)')


@dataclass(slots=True)
class Place:
    """A value in a file; lines and columns count from 1, columns in characters.

    `key_line` and `key_column` are where its key begins (for the root and for list items: where it begins itself).
    `text` is a scalar as it was written, without quotes; None for mappings and lists. `children` is None for scalars.
    """

    line: int
    column: int
    key_line: int
    key_column: int
    text: str | None = None
    quoted: bool = False
    children: dict[Segment, Place] | None = None

    def child(self, segment: Segment) -> Place | None:
        """The place of a field or an item."""
        return self.children.get(segment) if self.children else None

    def deepest(self, segments: Iterable[Segment]) -> tuple[tuple[Segment, ...], Place]:
        """Follow the segments as far as something is written there: the path that exists and its place."""
        place, found = self, list[Segment]()
        for segment in segments:
            child = place.child(segment)
            if child is None:
                break
            found.append(segment)
            place = child
        return tuple(found), place


def written(segments: Iterable[Segment]) -> str:
    """A path as text: `spec.quotas[0].lend`; a key that holds a dot or a bracket is `labels["example.com/zone"]`."""
    text = ""
    for segment in segments:
        if isinstance(segment, int):
            text += f"[{segment}]"
        elif not segment or any(character in segment for character in '.[]"'):
            text += f"[{json.dumps(segment, ensure_ascii=False)}]"
        else:
            text += f".{segment}" if text else segment
    return text


def segments(path: str) -> tuple[Segment, ...]:
    """The inverse of `written`; what follows a part that is no path is left out."""
    found = list[Segment]()
    position = 0
    while (match := _STEP.match(path, position)) is not None:
        if match["index"] is not None:
            found.append(int(match["index"]))
        elif match["quoted"] is not None:
            try:
                found.append(json.loads(match["quoted"], strict=False))
            except ValueError:
                break
        else:
            found.append(match["plain"])
        position = match.end()
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Locator:
    """Finds the line of a field; a field that is not written is where the nearest field around it is."""

    file: str
    root: Place

    def __call__(self, path: str) -> Source:
        """The key of the field at `path`, such as `spec.quotas[0].lend`."""
        _, place = self.root.deepest(segments(path))
        return Source(self.file, place.key_line, place.key_column)
