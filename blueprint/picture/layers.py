"""Boxes in columns with arrows between them: the order in each column that crosses few arrows, and where all stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blueprint.picture.metrics import fitted
from blueprint.picture.model import label, node
from blueprint.picture.scene import MARGIN, Scene

WIDE, GAP, BETWEEN = 214.0, 78.0, 14.0
_SWEEPS = 6


@dataclass(frozen=True, slots=True)
class Box:
    """A thing in a column: its name, a quiet line above it (its kind), and lines below.

    A column in which boxes have a `group` keeps its order, and has a frame around each group.
    """

    key: str
    column: int
    above: str
    name: str
    below: tuple[str, ...] = ()
    accent: str = "edge"
    group: str = ""

    @property
    def high(self) -> float:
        """Its height."""
        return 44.0 + 15.0 * len(self.below)


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one box to another, by their keys; `words` say what it means, and stand at its `start` or `end` (`at`)."""

    start: str
    end: str
    words: str = ""
    kind: str = "edge"
    dashed: bool = False
    at: str = ""


def ordered(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> dict[int, list[Box]]:
    """The boxes by column, each near those that it is tied to (the barycentre method, a few sweeps)."""
    columns: dict[int, list[Box]] = defaultdict(list)
    for box in boxes:
        columns[box.column].append(box)
    near: dict[str, list[str]] = defaultdict(list)
    for arrow in arrows:
        near[arrow.start].append(arrow.end)
        near[arrow.end].append(arrow.start)
    numbers = sorted(columns)
    place: dict[str, float] = {box.key: at for column in columns.values() for at, box in enumerate(column)}
    of = {box.key: box.column for box in boxes}
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for number in numbers if forward else reversed(numbers):
            mine = columns[number]
            if any(box.group for box in mine):
                continue
            for box in mine:
                before = [place[key] for key in near[box.key] if (of[key] < number) == forward and of[key] != number]
                if before:
                    place[box.key] = sum(before) / len(before)
            mine.sort(key=lambda box: (place[box.key], box.key))
            for at, box in enumerate(mine):
                place[box.key] = at
    return {number: columns[number] for number in numbers}


def draw(
    scene: Scene, boxes: Sequence[Box], arrows: Sequence[Arrow], heads: Mapping[int, str], *, top: float = 62.0
) -> Scene:
    """Draw columns with their heads, then arrows, then boxes; every column stands in the middle of the highest."""
    columns = ordered(boxes, arrows)
    highs = {number: _high(column) for number, column in columns.items()}
    full = max(highs.values(), default=0.0)
    at: dict[str, tuple[float, float, Box]] = {}
    x = MARGIN
    for number, column in columns.items():
        scene.text(x, top + 8, heads.get(number, ""), size=12, bold=True, fill="quiet", room=WIDE)
        y = top + 22 + (full - highs[number]) / 2
        for position, box in enumerate(column):
            at[box.key] = (x, y, box)
            if box.group and (position == 0 or column[position - 1].group != box.group):
                inside = [each for each in column if each.group == box.group]
                high = sum(each.high + BETWEEN for each in inside) - BETWEEN
                scene.box(x - 10, y - 8, WIDE + 20, high + 16, "", outline="l-faint", radius=8)
            last = position + 1 == len(column) or column[position + 1].group != box.group
            y += box.high + (BETWEEN + 16 if box.group and last else BETWEEN)
        x += WIDE + GAP
    words: dict[tuple[str, str], list[str]] = defaultdict(list)
    for arrow in arrows:
        if arrow.start in at and arrow.end in at:
            (x1, y1, one), (x2, y2, two) = at[arrow.start], at[arrow.end]
            scene.flow(
                x1 + WIDE, y1 + one.high / 2, x2, y2 + two.high / 2, arrow.kind, dashed=arrow.dashed, tip=arrow.words
            )
            if arrow.at and arrow.words:
                words[arrow.end if arrow.at == "end" else arrow.start, arrow.at].append(arrow.words)
    for (key, side), said in words.items():
        # After all lines, so that none goes through them; once for all arrows that meet there.
        x, y, box = at[key]
        middle, told = y + box.high / 2 - 5, ", ".join(dict.fromkeys(said))
        if side == "end":
            scene.text(x - 12, middle, told, size=10, fill="quiet halo", anchor="end", room=GAP - 12)
        else:
            scene.text(x + WIDE + 12, middle, told, size=10, fill="quiet halo", room=GAP - 12)
    for x, y, box in at.values():
        _box(scene, x, y, box)
    return scene


def _high(column: Sequence[Box]) -> float:
    groups = len({box.group for box in column if box.group})
    return sum(box.high + BETWEEN for box in column) - BETWEEN + 16 * max(0, groups - 1)


def _box(scene: Scene, x: float, y: float, box: Box) -> None:
    words = " · ".join((box.above, box.name, *box.below))
    scene.box(x, y, WIDE, box.high, "panel", outline="o", radius=6, tip=words)
    scene.box(x, y, 4, box.high, box.accent, radius=2)
    scene.text(x + 14, y + 17, box.above, size=10.5, fill="quiet", room=WIDE - 24)
    scene.text(x + 14, y + 34, box.name, size=13, bold=True, room=WIDE - 24)
    for number, line in enumerate(box.below):
        scene.text(x + 14, y + 50 + 15 * number, fitted(line, WIDE - 24, 11), size=11)


def mermaid(boxes: Sequence[Box], arrows: Sequence[Arrow], heads: Mapping[int, str]) -> str:
    """The same as a flowchart: a subgraph for each column."""
    lines = ["flowchart LR"]
    for number in sorted({box.column for box in boxes}):
        lines.append(f"  subgraph column{number}[{label(heads.get(number, ' ') or ' ')}]")
        for box in (box for box in boxes if box.column == number):
            words = "\n".join((box.above, box.name, *box.below))
            lines.append(f"    {node(box.key)}[{label(words)}]")
        lines.append("  end")
    known = {box.key for box in boxes}
    for arrow in arrows:
        if arrow.start in known and arrow.end in known:
            words = f"|{label(arrow.words)}|" if arrow.words else ""
            link = "-.->" if arrow.dashed else "-->"
            lines.append(f"  {node(arrow.start)} {link}{words} {node(arrow.end)}")
    return "\n".join(lines) + "\n"
