"""The tree of quotas: who has how many accelerators of which kind, how many more it could borrow, and how many stand
in the racks. One row a queue, one column a kind of accelerator, so that 3 queues and 300 are read in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from blueprint.admission.amounts import FlavorResource, shown
from blueprint.admission.quota import QuotaNode
from blueprint.admission.state import idle
from blueprint.admission.world import World
from blueprint.picture.model import Picture, Table, label, many
from blueprint.picture.scene import MARGIN, Scene

_PLAIN = ("cpu", "memory", "pods", "ephemeral-storage")
_NAME, _COLUMN, _ROW, _BAR = 250.0, 142.0, 25.0, 62.0
_HEAD = 74.0
_REPEAT, _AT_MOST = 30, 45
"""Rows after which the head is drawn again, before the next root or in any case: about a screen."""


@dataclass(frozen=True, slots=True)
class Column:
    """One kind of accelerator: how many are promised, and how many there are (None: nothing says)."""

    key: FlavorResource
    promised: int
    physical: int | None
    nodes: int

    @property
    def resource(self) -> str:
        """The resource without its domain: `gpu`, `mig-1g.10gb`."""
        return self.key.resource.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Row:
    """A cohort or a queue at a depth in the tree; cells by column: its own, what of it it does not lend, what it could
    borrow."""

    name: str
    depth: int
    queue: bool
    stopped: bool
    cells: tuple[tuple[int, int, int], ...]


def columns(world: World, roots: Sequence[QuotaNode]) -> tuple[Column, ...]:
    """The accelerators that any queue has quota of (all resources where there are none), in the order of names."""
    keys = {key for root in roots for each in _down(root) for key, quota in each.quotas.items() if quota.nominal > 0}
    wanted = {key for key in keys if key.resource not in _PLAIN} or keys
    return tuple(_column(world, key, roots) for key in sorted(wanted))


def _column(world: World, key: FlavorResource, roots: Sequence[QuotaNode]) -> Column:
    promised = sum(each.quota(key).nominal for root in roots for each in _down(root))
    flavor = world.flavors.get(key.flavor)
    if world.nodes is None or flavor is None:
        return Column(key, promised, None, 0)
    keys = world.topologies.get(flavor.topology, ()) if flavor.topology else ()
    mine = [each for each in world.nodes if each.carries(flavor.labels, keys)]
    known = [each.allocatable[key.resource] for each in mine if key.resource in each.allocatable]
    # Devices that claims hand out are in no node's allocatable: how many there are, ResourceSlices would say.
    return Column(key, promised, sum(known) if known else None, len(mine))


def _down(top: QuotaNode) -> Iterator[QuotaNode]:
    """A node and all below it, in the order of the picture."""
    yield top
    for child in sorted(top.children, key=_place):
        yield from _down(child)


def rows(roots: Sequence[QuotaNode], keys: Sequence[FlavorResource]) -> Iterator[Row]:
    """The tree from top to bottom: cohorts before their queues, both by name."""
    pending = [(root, 0) for root in reversed(roots)]
    while pending:
        each, depth = pending.pop()
        cells = []
        for key in keys:
            own = each.quota(key).nominal if each.queue else each.subtree.get(key, 0)
            could = max(0, each.capacity(key) - own) if each.queue and key in each.quotas else 0
            lending = each.quota(key).lending
            kept = max(0, own - lending) if each.queue and lending is not None else 0
            cells.append((own, kept, could))
        yield Row(each.name, depth, each.queue, not each.active, tuple(cells))
        below = sorted(each.children, key=_place, reverse=True)
        pending += [(child, depth + 1) for child in below]


def _place(each: QuotaNode) -> tuple[bool, list[tuple[int, str]]]:
    """Cohorts before queues, by name; numbers in names count as numbers."""
    parts = re.findall(r"([0-9]{1,18})|([^0-9]+|[0-9]+)", each.name)
    return each.queue, [(int(number) if number else -1, text) for number, text in parts]


def picture(world: World, name: str = "quota", where: str = "") -> Picture:
    """The picture of a cluster's quotas; `where` is the cluster's name."""
    state = idle(world)
    roots = sorted((each for each in state.nodes.values() if each.parent is None), key=_place)
    found = columns(world, roots)
    lines = list(rows(roots, [column.key for column in found]))
    queues = sum(line.queue for line in lines)
    title = f"Quotas of {where}" if where else "Quotas"
    words = _description(found, queues, len(lines) - queues)
    return Picture(_draw(Scene(name, title, words), found, lines), _mermaid(roots, found), _table(found, lines))


def _description(found: Sequence[Column], queues: int, cohorts: int) -> str:
    head = f"{many(queues, 'queue')} in {many(cohorts, 'cohort')}."
    parts = []
    for column in found:
        there = "an unknown number" if column.physical is None else _amount(column, column.physical)
        what = f"{column.key.flavor} {column.resource}"
        parts.append(f"{what}: {_amount(column, column.promised)} promised of {there}")
    return " ".join([head, *(f"{part}." for part in parts)])


def _amount(column: Column, value: int) -> str:
    return shown(column.key.resource, value)


def _draw(scene: Scene, found: Sequence[Column], lines: Sequence[Row]) -> Scene:
    scene.text(MARGIN, 34, scene.title, size=18, bold=True)
    y = 50.0
    legend = [("kept", "own, not lent"), ("own", "own"), ("loan", "could borrow")]
    if any(column.physical is not None and column.promised > column.physical for column in found):
        legend.append(("warn", "promised, and not there"))
    scene.legend(y, legend)
    y += 26
    most = {column.key: _most(column, number, lines) for number, column in enumerate(found)}
    wide = _NAME + _COLUMN * len(found)
    since = _AT_MOST
    for line in lines:
        if since >= _AT_MOST or (since >= _REPEAT and line.depth == 0):
            y, since = _head(scene, y, found), 0
        since += 1
        if line.depth == 0 and not line.queue:
            scene.box(MARGIN - 6, y, wide + 6, _ROW, "panel", radius=0)
        _row(scene, y, line, found, most)
        y += _ROW
        scene.line(MARGIN, y, MARGIN + wide, y, "faint")
    return scene


def _most(column: Column, number: int, lines: Sequence[Row]) -> int:
    """What a full bar of the column stands for: the most that any queue could have."""
    return max([1, *(own + could for line in lines if line.queue for own, _, could in [line.cells[number]])])


def _head(scene: Scene, y: float, found: Sequence[Column]) -> float:
    for number, column in enumerate(found):
        x = MARGIN + _NAME + _COLUMN * number
        room = _COLUMN - 14
        scene.text(x, y + 14, column.key.flavor, size=12, bold=True, room=room)
        scene.text(x, y + 29, column.resource, size=11, fill="quiet", room=room)
        if column.physical is None:
            scene.text(x, y + 46, f"{_amount(column, column.promised)} of ?", size=11, fill="quiet", room=room)
            continue
        over = column.promised > column.physical
        words = f"{_amount(column, column.promised)} of {_amount(column, column.physical)}"
        scene.text(x, y + 46, words, size=11, fill="warn" if over else "ink", room=room)
        full = max(column.promised, column.physical, 1)
        tip = f"{words}, on {many(column.nodes, 'node')}"
        scene.box(x, y + 52, room * column.physical / full, 7, "faint", radius=2, tip=tip)
        scene.box(x, y + 52, room * min(column.promised, column.physical) / full, 7, "own", radius=2, tip=tip)
        if over:
            start = room * column.physical / full
            scene.box(x + start, y + 52, room - start, 7, "warn", radius=2, tip=tip)
    scene.text(MARGIN, y + 46, "promised of what is there", size=11, fill="quiet")
    scene.line(MARGIN, y + _HEAD - 6, MARGIN + _NAME + _COLUMN * len(found), y + _HEAD - 6, "edge")
    return y + _HEAD - 6


def _row(scene: Scene, y: float, line: Row, found: Sequence[Column], most: dict[FlavorResource, int]) -> None:
    middle = y + _ROW / 2 + 4
    x = MARGIN + 16 * line.depth
    fill = "bad" if line.stopped else "ink"
    words = f"{line.name} (inactive)" if line.stopped else line.name
    scene.text(x, middle, words, size=12.5, bold=not line.queue, fill=fill, room=_NAME - 16 * line.depth - 14)
    for number, (column, (own, kept, could)) in enumerate(zip(found, line.cells, strict=True)):
        at = MARGIN + _NAME + _COLUMN * number
        if not own and not could:
            continue
        if not line.queue:
            scene.text(at, middle, f"{_amount(column, own)} to share", size=11.5, fill="quiet", room=_COLUMN - 14)
            continue
        tip = f"{line.name}, {column.key.flavor} {column.resource}: {_amount(column, own)} own"
        tip += f", {_amount(column, kept)} of them not lent" if kept else ""
        tip += f", could borrow {_amount(column, could)}"
        full = most[column.key]
        scene.box(at, y + 6, _BAR, _ROW - 13, "faint", radius=2)
        width = _BAR * own / full
        if could:
            gap = 1.5 if own else 0.0  # so that the two are told apart without colours, too
            scene.box(at + width + gap, y + 6, max(_BAR * could / full - gap, 1), _ROW - 13, "loan", radius=2, tip=tip)
        if own:
            scene.box(at, y + 6, width, _ROW - 13, "own", radius=2, tip=tip)
        if kept:
            scene.box(at, y + 6, _BAR * kept / full, _ROW - 13, "kept", radius=2, tip=tip)
        text = _amount(column, own) + (f" +{_amount(column, could)}" if could else "")
        scene.text(at + _BAR + 6, middle, text, size=11.5, room=_COLUMN - _BAR - 16)


def _mermaid(roots: Sequence[QuotaNode], found: Sequence[Column]) -> str:
    lines = ["flowchart LR"]
    names: dict[tuple[bool, str], str] = {}  # short: Mermaid draws no more than maxTextSize, 50,000
    for root in roots:
        for each in _down(root):
            kind = "queue" if each.queue else "cohort"
            parts = [f"{kind} {each.name}"]
            for column in found:
                own = each.quota(column.key).nominal
                could = max(0, each.capacity(column.key) - own) if each.queue and column.key in each.quotas else 0
                if own or could:
                    more = f" +{_amount(column, could)}" if could else ""
                    parts.append(f"{column.key.flavor} {column.resource}: {_amount(column, own)}{more}")
            shape = "([{}])" if each.queue else "[{}]"
            name = names[each.queue, each.name] = f"{kind[0]}{len(names)}"
            lines.append(f"  {name}{shape.format(label(chr(10).join(parts)))}")
            if each.parent is not None:
                lines.append(f"  {names[False, each.parent.name]} --> {name}")
    return "\n".join(lines) + "\n"


def _table(found: Sequence[Column], lines: Sequence[Row]) -> Table:
    head = ("Queue or cohort", *(f"{column.key.flavor} {column.resource}" for column in found))
    body = []
    for line in lines:
        cells = []
        for column, (own, kept, could) in zip(found, line.cells, strict=True):
            words = _amount(column, own) if own or could else "–"
            words += f" (keeps {_amount(column, kept)})" if kept else ""
            cells.append(words + (f", could borrow {_amount(column, could)}" if could else ""))
        kind = "queue" if line.queue else "cohort"
        body.append((f"{kind} {line.name}", *cells))
    there = ("in the racks", *("?" if c.physical is None else _amount(c, c.physical) for c in found))
    return Table(head, (*body, there))
