"""Write an object in a newer version of its API: the edits that move its fields, and what stays wrong then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from blueprint.catalog.conversions import FieldMove, field_moves, newer
from blueprint.catalog.lifecycle import lifecycle, release
from blueprint.catalog.schemas import SchemaPack
from blueprint.check import Validator
from blueprint.check.patches import apply
from blueprint.finding import Edit, Finding
from blueprint.objects import Body, Manifest

Pointer = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """The edits to another version; `wrong` is what its schema still refuses then, None where nothing is."""

    api_version: str
    edits: tuple[Edit, ...]
    wrong: Finding | None = None


def converted(manifest: Manifest, way: Sequence[str], pack: SchemaPack) -> Converted:
    """Write an object in the last of some versions, one after the other."""
    body, before = manifest.body, manifest.api_version
    edits: list[Edit] = []
    for after in way:
        for move in field_moves(manifest.kind, before, after):
            made = _moved(body, move)
            edits += made
            body = apply(body, made)
        before = after
    edits.insert(0, Edit("replace", "/apiVersion", json.dumps(before)))
    again = replace(manifest, body={**body, "apiVersion": before})
    faults = [f for f in Validator(pack, rules=()).create(again) if f.fails] if pack.kind(before, manifest.kind) else []
    return Converted(before, tuple(edits), next(iter(faults), None))


def way_to(manifest: Manifest, target: str) -> list[str]:
    """The versions through which an object of Kubernetes gets to one that a release serves and does not warn of."""
    asked, current = release(target), manifest.api_version
    way: list[str] = []
    while asked:
        life = lifecycle(current, manifest.kind)
        old = life and (release(life.deprecated) or release(life.removed))
        following = (life.replacement if life else "") or newer(manifest.kind, current)
        if not old or old > asked or not following or following in way:
            break
        introduced = lifecycle(following, manifest.kind)
        since = release(introduced.introduced) if introduced else None
        if since and since > asked:
            break
        way.append(current := following)
    return way


def _moved(body: Body, move: FieldMove) -> list[Edit]:
    """The edits of one field wherever it stands. Where its new place is taken it stays, and the schema says so."""
    edits: list[Edit] = []
    for place in _places(body, move.came_from.split("."), ()):
        current = apply(body, edits) if edits else body
        value = _at(current, place)
        if isinstance(value, str) and value in move.values:
            edits.append(Edit("replace", _pointer(place), json.dumps(move.values[value])))
        if not move.to:
            continue
        if move.each and isinstance(value, list):
            value = [{move.each: item} for item in value]
        target = _target(place, move)
        if _at(current, target) is not None:
            continue
        if place[:-1] == target[:-1] and not move.each:
            edits.append(Edit("move", _pointer(target), source=_pointer(place)))
            continue
        while len(target) > 1 and not isinstance(_at(current, target[:-1]), dict):
            value, target = {str(target[-1]): value}, target[:-1]
        edits += [Edit("add", _pointer(target), json.dumps(value)), Edit("remove", _pointer(place))]
    return edits


def _places(value: object, steps: Sequence[str], above: Pointer) -> Iterator[Pointer]:
    """Where a path stands in an object, with the numbers of the items that it goes through."""
    if not steps:
        yield above
        return
    name = steps[0].removesuffix("[]")
    if not isinstance(value, dict) or name not in value:
        return
    inner = value[name]
    if not steps[0].endswith("[]"):
        yield from _places(inner, steps[1:], (*above, name))
    elif isinstance(inner, list):
        for number, item in enumerate(inner):
            yield from _places(item, steps[1:], (*above, name, number))


def _target(place: Pointer, move: FieldMove) -> Pointer:
    """The new path, with the numbers of the items that the old one went through."""
    numbers = iter([step for step in place if isinstance(step, int)])
    found: list[str | int] = []
    for step in move.to.split("."):
        found.append(step.removesuffix("[]"))
        if step.endswith("[]"):
            found.append(next(numbers))
    return tuple(found)


def _at(value: object, place: Pointer) -> object:
    for step in place:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _pointer(place: Pointer) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in place)
