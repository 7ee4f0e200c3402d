"""Waves from needs: which Application comes when, and which object comes when inside it.

A root Application per cluster holds one child Application for each name in the plan. Inside a child Argo CD waits for
the health of each wave before it writes the next; the root waits for the health of each child. So the waves of
Applications are the layers of the needs between them, and the waves of objects are the layers of the needs inside one
Application. What Argo CD 3.6 does by itself is in `blueprint.sync` and `blueprint.catalog.gating`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from blueprint.catalog.argocd import sync_rank
from blueprint.catalog.gating import Gate, Gates
from blueprint.finding import Finding, Ref
from blueprint.render import wave_findings as say
from blueprint.render.graph import Graph, graph
from blueprint.render.layers import Edge, knots, layer, shortest_cycle, without
from blueprint.render.options import json_size
from blueprint.render.plan import Item

MAX_OBJECTS = 1000
"""Objects in one Application: above this its own status grows towards etcd's limit (argo-cd issue 14486)."""

MAX_BYTES = 8 * 2**20
"""Compact JSON of one Application's objects: below the 10M of manifests that the repo server reads by default
(argo-cd v3.6.1 `reposerver.max.combined.directory.manifests.size`), with room for indentation."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An item with its place: the Application (a part of the item's own, if that was split) and the wave in it."""

    item: Item
    application: str
    wave: int


@dataclass(frozen=True, slots=True)
class Application:
    """One child Application: its wave in the root, the Applications it needs, and a title for each of its own waves.

    `stalls` says why it may stay Suspended or Progressing, "" where it will become Healthy by itself.
    """

    name: str
    wave: int
    needs: tuple[str, ...]
    waves: tuple[str, ...]
    stalls: str


@dataclass(frozen=True, slots=True)
class Ordered:
    """The plan in order: objects by Application, wave and Argo CD's order of writing; Applications by wave and name."""

    items: tuple[Placed, ...]
    applications: tuple[Application, ...]
    findings: tuple[Finding, ...]


def order(items: Sequence[Item], gates: Gates, outside: Collection[Ref] = ()) -> Ordered:
    """Place every item of one cluster's plan.

    `gates` says which kinds this Argo CD can judge; `outside` are objects that somebody else brings. The order of
    `items` does not matter. Circles of needs are findings; the objects in them are placed as if they did not need
    each other. Time and space are linear in items and needs.
    """
    keyed = sorted(((_key(item, ref := item.manifest.ref), at, ref) for at, item in enumerate(items)))
    items = [items[at] for _, at, _ in keyed]
    work = graph(items, [ref for _, _, ref in keyed], frozenset(outside))
    tied = knots(len(items), work.edges)
    findings = list(work.findings)
    findings += [say.circle(items, shortest_cycle(knot, work.edges)) for knot in tied]
    edges = without(work.edges, tied)

    names = {name: at for at, name in enumerate(sorted({item.application for item in items}))}
    laid = layer([names[item.application] for item in items], edges, work.stalls.keys())
    findings += [say.object_waits(items, *pair, work.stalls.get(pair[0], "")) for pair in laid.blocked]
    level = _claims_beside_users(work, laid.level)

    parts = _split(items, level, findings)
    placed, titles = _compact(items, level, parts)
    applications = _applications(items, work, edges, level, parts, titles, gates, findings)
    findings += _ungated(items, work, edges, gates)
    return Ordered(placed, applications, tuple(findings))


def _key(item: Item, ref: Ref) -> tuple[str, int, str, str, str, str]:
    return item.application, sync_rank(ref.kind), ref.name, ref.group, ref.kind, ref.namespace


def _claims_beside_users(work: Graph, level: list[int]) -> list[int]:
    """A claim of a class that waits for its first consumer must not stand in a wave before that consumer."""
    level = list(level)
    for claim, users in work.users.items():
        level[claim] = min(level[user] for user in users)
    return level


def _split(items: Sequence[Item], level: Sequence[int], findings: list[Finding]) -> list[str]:
    """The Application of each item; one that is too large is cut into `<app>`, `<app>-2`, … in wave order."""
    held: dict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        held[item.application].append(number)
    parts = [item.application for item in items]
    taken = set(held)
    for name, members in held.items():
        sizes = {number: json_size(items[number].manifest.body) for number in members}
        size = sum(sizes.values())
        if len(members) <= MAX_OBJECTS and size <= MAX_BYTES:
            continue
        part, count, total, suffix = name, 0, 0, 1
        for number in sorted(members, key=lambda member: (level[member], member)):
            if count == MAX_OBJECTS or (count and total + sizes[number] > MAX_BYTES):
                while part in taken:
                    suffix += 1
                    part = f"{name}-{suffix}"
                taken.add(part)
                count = total = 0
            parts[number] = part
            count, total = count + 1, total + sizes[number]
        findings.append(say.too_large(items[members[0]], len(members), size, suffix))
    return parts


def _compact(
    items: Sequence[Item], level: Sequence[int], parts: Sequence[str]
) -> tuple[tuple[Placed, ...], dict[str, tuple[str, ...]]]:
    """Number the waves of each Application 0, 1, 2, … and give each a title: the kinds in it."""
    used: dict[str, set[int]] = defaultdict(set)
    for part, at in zip(parts, level, strict=True):
        used[part].add(at)
    waves = {part: {at: wave for wave, at in enumerate(sorted(levels))} for part, levels in used.items()}
    kinds = {part: [Counter[str]() for _ in levels] for part, levels in used.items()}
    placed = []
    for item, part, at in zip(items, parts, level, strict=True):
        wave = waves[part][at]
        kinds[part][wave][item.manifest.kind] += 1
        placed.append(Placed(item, part, wave))
    placed.sort(key=lambda one: (one.application, one.wave))
    return tuple(placed), {part: tuple(map(_title, counters)) for part, counters in kinds.items()}


def _title(kinds: Counter[str]) -> str:
    """The kinds of a wave, most frequent first: at most three, then how many more."""
    names = [kind for kind, _ in sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _applications(
    items: Sequence[Item],
    work: Graph,
    edges: Sequence[Edge],
    level: Sequence[int],
    parts: Sequence[str],
    titles: dict[str, tuple[str, ...]],
    gates: Gates,
    findings: list[Finding],
) -> tuple[Application, ...]:
    """Lay out the Applications by the needs between their objects; those that can stall come last."""
    names = sorted(titles)
    number = {name: at for at, name in enumerate(names)}
    witness: dict[tuple[int, int], tuple[int, int]] = {}
    for needed, needing, _ in edges:
        one, two = number[parts[needed]], number[parts[needing]]
        # Parts of one Application are cut in wave order: an edge that points back is one that a wave may ignore.
        forward = (level[needed], needed) < (level[needing], needing)
        if one != two and (forward or items[needed].application != items[needing].application):
            witness.setdefault((one, two), (needed, needing))
    between: list[Edge] = [(one, two, 1) for one, two in witness]
    tied = knots(len(names), between)
    for knot in tied:
        cycle = shortest_cycle(knot, between)
        hops = [witness[needed, needing] for needing, needed in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
        findings.append(say.application_circle(items, parts, hops))
    between = without(between, tied)
    stalls: dict[int, int] = {}
    for stalled in sorted(work.stalls):
        stalls.setdefault(number[parts[stalled]], stalled)
    laid = layer([0] * len(names), between, stalls.keys())
    for pair in laid.blocked:
        stalled = stalls.get(pair[0], -1)
        findings.append(say.application_waits(items, parts, witness[pair], stalled, work.stalls.get(stalled, "")))
    needs: dict[int, list[str]] = defaultdict(list)
    for one, two, _ in between:
        needs[two].append(names[one])
    waves = {at: wave for wave, at in enumerate(sorted(set(laid.level)))}
    if len(waves) > 1 and gates.of("argoproj.io", "Application") is not Gate.WAITS:
        findings.append(say.applications_do_not_gate(items, parts, *min(witness.values())))
    applications = (
        Application(
            name=name,
            wave=waves[laid.level[at]],
            needs=tuple(sorted(needs[at])),
            waves=titles[name],
            stalls=work.stalls[stalls[at]] if at in stalls else "",
        )
        for at, name in enumerate(names)
    )
    return tuple(sorted(applications, key=lambda application: (application.wave, application.name)))


def _ungated(items: Sequence[Item], work: Graph, edges: Sequence[Edge], gates: Gates) -> list[Finding]:
    """One finding for each kind that somebody waits for and Argo CD cannot judge."""
    waiting: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for needed, needing, weight in edges:
        ref = work.refs[needed]
        if weight and gates.of(ref.group, ref.kind) in (Gate.BLIND, Gate.UNKNOWN):
            waiting[ref.group, ref.kind].append((needed, needing))
    return [
        say.does_not_wait(items, *min(pairs), len({needed for needed, _ in pairs}), gates.of(*kind))
        for kind, pairs in sorted(waiting.items())
    ]
