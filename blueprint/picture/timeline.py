"""Waves as a timeline: which Application Argo CD syncs when, which of its own waves wait, and what never does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from blueprint.catalog.argocd import checked_kinds
from blueprint.catalog.gating import Gate, Gates, reconciled
from blueprint.check.applications import APPLICATION, Sync, health_scripts
from blueprint.check.graph import Graph, kind_of
from blueprint.picture.metrics import fitted, width
from blueprint.picture.model import Picture, Table, label, many, node
from blueprint.picture.scene import MARGIN, Scene
from blueprint.sync import Step, Verdict, floor_seconds, simulate, wave

_WIDE, _GAP, _HEAD, _LINE = 262.0, 46.0, 40.0, 17.0
_COLOUR = {Verdict.GATES: "good", Verdict.OPEN: "warn", Verdict.HANGS: "bad", Verdict.NOT_AWAITED: "edge"}
_WORDS = {
    Verdict.GATES: "waits until healthy",
    Verdict.OPEN: "does not wait",
    Verdict.HANGS: "can wait for ever",
    Verdict.NOT_AWAITED: "last, not awaited",
}


@dataclass(frozen=True, slots=True)
class Lane:
    """One Application (or a folder that none applies): the wave in which its parent syncs it, and its own steps."""

    name: str
    wave: int
    steps: tuple[Step, ...]
    by_hand: bool

    @property
    def objects(self) -> int:
        """How many objects it applies."""
        return sum(len(step.objects) for step in self.steps)


def gates_of(graph: Graph) -> Gates:
    """The kinds whose health this Argo CD can judge: its own checks, and the scripts that the tree brings."""
    scripts, _ = health_scripts(graph)
    return Gates(checked_kinds() | scripts, active=reconciled())


def lanes(graph: Graph, gates: Gates) -> list[Lane]:
    """What is synced, by wave and name. Applications that hold other Applications are the frame, and left out."""
    mine = {id(manifest) for manifest in graph.manifests}  # the Applications are those of the whole tree
    syncs = [sync for sync in graph.deliveries.syncs if any(id(each) in mine for each in sync.objects)]
    found = [_lane(sync, gates) for sync in syncs if not _frames(sync)]
    return sorted(found, key=lambda lane: (lane.wave, lane.name))


def _frames(sync: Sync) -> bool:
    return any(kind_of(manifest) == APPLICATION for manifest in sync.objects)


def _lane(sync: Sync, gates: Gates) -> Lane:
    application = sync.application
    steps = simulate(sync.objects, gates, namespace=application.namespace if application else "")
    if application is None:
        return Lane(sync.name, 0, steps, by_hand=False)
    return Lane(application.name, wave(application.manifest.body), steps, application.automated is None)


def picture(graph: Graph, name: str = "waves", where: str = "") -> Picture:
    """The picture of one cluster's waves; `where` is its name, which the Applications' names need not repeat."""
    gates = gates_of(graph)
    found, waits = lanes(graph, gates), gates.of("argoproj.io", "Application") is Gate.WAITS
    numbers = sorted({lane.wave for lane in found})
    title = f"Waves of {where}" if where else "Waves"
    words = _description(found, numbers)
    return Picture(
        _draw(Scene(name, title, words), found, numbers, where, waits=waits),
        _mermaid(found, numbers, where),
        _table(found, where),
    )


def _short(name: str, where: str) -> str:
    return name.removeprefix("Application ").removeprefix(f"{where}-") if where else name


def _description(found: Sequence[Lane], numbers: Sequence[int]) -> str:
    bad = Counter(step.verdict for lane in found for step in lane.steps)
    objects = sum(lane.objects for lane in found)
    head = f"{many(len(found), 'Application')} in {many(len(numbers), 'wave')}, {many(objects, 'object')}."
    floor = sum(
        max((floor_seconds(lane.steps) for lane in found if lane.wave == number), default=0) for number in numbers
    )
    parts = [head, f"The pauses between waves alone take {floor} s."]
    for verdict, words in ((Verdict.OPEN, "does not wait"), (Verdict.HANGS, "can wait for ever")):
        if bad[verdict]:
            parts.append(f"{many(bad[verdict], 'inner wave')} {words}.")
    return " ".join(parts)


def _draw(scene: Scene, found: Sequence[Lane], numbers: Sequence[int], where: str, *, waits: bool) -> Scene:
    scene.text(MARGIN, 34, scene.title, size=18, bold=True)
    x = MARGIN
    for verdict in Verdict:
        scene.box(x, 48, 12, 12, _COLOUR[verdict], radius=6)
        x += 18 + scene.text(x + 18, 58, _WORDS[verdict], size=11, fill="quiet") + 16
    top, at = 94.0, MARGIN
    for column, number in enumerate(numbers):
        mine = [lane for lane in found if lane.wave == number]
        objects = sum(lane.objects for lane in mine)
        wide = scene.text(at, top, f"Wave {number}", size=14, bold=True)
        scene.text(
            at + wide + 10, top, f"{many(len(mine), 'Application')}, {many(objects, 'object')}", size=11, fill="quiet"
        )
        y = top + 14
        for lane in mine:
            y = _card(scene, at, y, lane, where) + 10
        if column < len(numbers) - 1:
            middle = top - 5
            kind, tip = ("good", "waits until healthy") if waits else ("warn", "Argo CD has no health of Applications")
            scene.flow(at + _WIDE + 4, middle, at + _WIDE + _GAP - 6, middle, kind, thick=2, dashed=not waits, tip=tip)
        at += _WIDE + _GAP
    return scene


def _card(scene: Scene, x: float, y: float, lane: Lane, where: str) -> float:
    """One Application with a row for each of its own waves; where its card ends."""
    high = 32 + _LINE * len(lane.steps) + 5
    scene.box(x, y, _WIDE, high, "panel", outline="o", radius=6)
    count = many(lane.objects, "object")
    hand = " · by hand" if lane.by_hand else ""
    room = _WIDE - 24 - scene.text(x + _WIDE - 10, y + 19, f"{count}{hand}", size=10.5, fill="quiet", anchor="end")
    scene.text(x + 10, y + 19, _short(lane.name, where), size=12.5, bold=True, room=room)
    line = y + 37
    for step in lane.steps:
        kinds = Counter(manifest.kind for manifest in step.objects)
        names = [kind for kind, _ in sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))]
        scene.box(x + 10, line - 9, 10, 10, _COLOUR[step.verdict], radius=5, tip=_tip(step))
        scene.text(x + 27, line, str(step.wave), size=11, fill="quiet")
        scene.text(x + 42, line, listed(names, _WIDE - 52, 11), size=11)
        line += _LINE
    return y + high


def listed(names: Sequence[str], room: float, size: float) -> str:
    """As many of the names as fit, the first in any case, and how many more there are."""
    for count in range(len(names), 0, -1):
        more = f" +{len(names) - count}" if count < len(names) else ""
        words = ", ".join(names[:count]) + more
        if width(words, size) <= room:
            return words
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return fitted(names[0], room - width(more, size), size) + more


def _tip(step: Step) -> str:
    words = f"wave {step.wave}: {_WORDS[step.verdict]}"
    return words + "".join(f"; {ref}: {reason}" for ref, reason in step.reasons[:3])


def _mermaid(found: Sequence[Lane], numbers: Sequence[int], where: str) -> str:
    lines = ["flowchart LR"]
    for number in numbers:
        lines.append(f"  subgraph wave{numbers.index(number)}[{label(f'Wave {number}')}]")
        for lane in (lane for lane in found if lane.wave == number):
            steps = "\n".join(f"{step.wave}: {_WORDS[step.verdict]}" for step in lane.steps)
            words = f"{_short(lane.name, where)}\n{steps}"
            lines.append(f"    {node(lane.name)}[{label(words)}]")
        lines.append("  end")
    lines += [f"  wave{at} --> wave{at + 1}" for at in range(len(numbers) - 1)]
    return "\n".join(lines) + "\n"


def _table(found: Sequence[Lane], where: str) -> Table:
    body = []
    for lane in found:
        for step in lane.steps:
            kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(Counter(m.kind for m in step.objects).items()))
            why = "; ".join(f"{ref}: {reason}" for ref, reason in step.reasons[:3])
            body.append((str(lane.wave), _short(lane.name, where), str(step.wave), _WORDS[step.verdict], kinds, why))
    return Table(("Wave", "Application", "Its wave", "What the next one does", "Objects", "Why"), tuple(body))
