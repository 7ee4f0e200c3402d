"""A picture in all its forms: drawn, as Mermaid, and as a table for those who cannot see it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from blueprint.picture.scene import MARGIN, Scene


@dataclass(frozen=True, slots=True)
class Table:
    """The same facts in rows; every row is as long as `head`."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: what it says in a sentence or two, and its forms."""

    scene: Scene
    mermaid: str
    table: Table

    @property
    def title(self) -> str:
        """Its title."""
        return self.scene.title

    @property
    def empty(self) -> bool:
        """Whether nothing is in it: no shape, and no row or column of facts."""
        return self.mermaid.strip() == "flowchart LR" and (not self.table.rows or len(self.table.head) < 2)

    @property
    def says(self) -> str:
        """What it says, in words."""
        return self.scene.description


def label(words: str) -> str:
    """Words as a quoted label of Mermaid, a line of theirs a line of it; what means something to it as entities."""
    plain = words.replace("&", "&amp;").replace('"', "#quot;").replace("<", "&lt;").replace(">", "&gt;")
    return '"' + plain.replace("\n", "<br>") + '"'


def node(name: str) -> str:
    """A name as an identifier of Mermaid: different names stay different."""
    return "n_" + re.sub(r"[^a-zA-Z0-9]", lambda found: f"_{ord(found[0]):x}_", name)


def many(number: int, thing: str) -> str:
    """A number and a noun: `1 queue`, `2 queues`."""
    plural = f"{thing[:-1]}ies" if thing.endswith("ry") else f"{thing}s"
    return f"{number} {thing if number == 1 else plural}"


def in_words(empty: Picture, words: str) -> Picture:
    """A picture that says why there is nothing in it."""
    scene = Scene(empty.scene.name, empty.title, words)
    scene.text(MARGIN, 34, scene.title, size=18, bold=True)
    scene.text(MARGIN, 64, words, size=12)
    return Picture(scene, f"flowchart LR\n  nothing[{label(words)}]\n", Table(empty.table.head, ()))
