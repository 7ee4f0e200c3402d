"""Break an object in one place, in every way that people do: the same seed gives the same mutations.

A mutation may well be harmless; whether it is, is what the checker and the server are asked. Candidates come from
walking the object beside its schema, so they reach every field that the object has, whatever its kind.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from blueprint.catalog.crds import ITEM, VALUE, Schema
from blueprint.catalog.schemas import Kind
from blueprint.conform import values

Place = tuple[str | int, ...]

# A rule has two sides to probe for each field that it reads; other labels need fewer draws.
_CEL_SHARE = 4


class Label(StrEnum):
    """What is done to the object."""

    MISSING = "missing required field"
    ABSENT = "field left out"
    TYPE = "wrong type"
    UNKNOWN = "unknown field"
    ENUM = "value outside its enum"
    BOUND = "value outside its bounds"
    DUPLICATE = "duplicate list entry"
    NAME = "bad name or label"
    CEL = "field that a CEL rule reads"
    IMMUTABLE = "change of an immutable field"
    NUMBER = "form of a number"
    QUANTITY = "form of a quantity"
    NULL = "null"
    SCOPE = "wrong version, kind or namespace"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One broken object: `place` was set to `value` (GONE: taken away). `update`: it is to replace the whole one."""

    label: Label
    place: Place
    value: Any
    body: dict[str, Any]
    update: bool = False

    def __str__(self) -> str:
        where = ".".join(map(str, self.place))
        return f"{self.label}: {where} gone" if self.value is values.GONE else f"{self.label}: {where} = {self.value!r}"


@dataclass(frozen=True, slots=True)
class Site:
    """A value in the object: where it is, the same place as the schema writes it (`[]`, `{}`), and its schema."""

    place: Place
    path: tuple[str, ...]
    value: Any
    schema: Schema


def mutations(body: Mapping[str, Any], kind: Kind, *, seed: int, each: int) -> list[Mutation]:
    """At most `each` mutations of each label (of CEL four times as many), drawn by `seed`, kind and name."""
    whole = dict(body)
    sites = list(_sites(whole, kind))
    found: dict[Label, dict[str, tuple[Place, Any]]] = {label: {} for label in Label}
    for label, place, value in _candidates(whole, kind, sites):
        if not _same(_at(whole, place), value):
            found[label].setdefault(f"{place} {value!r}", (place, value))
    name = whole.get("metadata", {}).get("name")
    chance = random.Random(f"{seed} {kind.api_version} {kind.kind} {name}")  # noqa: S311 (a draw that repeats, no secret)
    return [
        Mutation(label, place, value, put(whole, place, value), update=label is Label.IMMUTABLE)
        for label, candidates in found.items()
        for place, value in _draw(chance, list(candidates.values()), each * _CEL_SHARE if label is Label.CEL else each)
    ]


def _draw(chance: random.Random, candidates: list[tuple[Place, Any]], most: int) -> list[tuple[Place, Any]]:
    return chance.sample(candidates, min(most, len(candidates)))


def put(body: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:  # noqa: ANN401 (any JSON value)
    """A copy with one place set, added or, for GONE, taken away; everything beside the way there is shared."""
    root: dict[str, Any] = dict(body)
    node: Any = root
    for step in place[:-1]:
        node[step] = node[step].copy()
        node = node[step]
    if value is values.GONE:
        del node[place[-1]]
    else:
        node[place[-1]] = value
    return root


def _at(body: Any, place: Place) -> Any:  # noqa: ANN401
    """The value at a place, GONE where there is none."""
    for step in place:
        try:
            body = body[step]
        except (KeyError, IndexError, TypeError):
            return values.GONE
    return body


def _same(old: object, new: object) -> bool:
    """Whether two values are one to a server; Python alone takes 2 for 2.0 and True for 1."""
    return type(old) is type(new) and old == new


def _sites(body: dict[str, Any], kind: Kind) -> Iterator[Site]:
    """The root and every value below it that has a schema."""
    todo = [Site((), (), body, kind.resolve(kind.schema))]
    while todo:
        site = todo.pop()
        yield site
        for step, below in site.value.items() if isinstance(site.value, dict) else _items(site.value):
            named = isinstance(step, str) and step in site.schema.get("properties", {})
            pattern = str(step) if named else ITEM if isinstance(step, int) else VALUE
            schema = kind.at((*site.path, pattern))
            if schema is not None:
                todo.append(Site((*site.place, step), (*site.path, pattern), below, schema))


def _items(value: object) -> Iterable[tuple[int, Any]]:
    return enumerate(value) if isinstance(value, list) else ()


def _candidates(body: dict[str, Any], kind: Kind, sites: list[Site]) -> Iterator[tuple[Label, Place, Any]]:
    yield from _envelope(body, kind)
    yield from _names(body)
    for site in sites:
        if site.path and site.path[0] not in {"apiVersion", "kind", "metadata", "status"}:
            yield from _field(site, kind)
    for rule in kind.rules:
        for site in sites:
            if site.path == rule.path:
                for place, value in _read_by(rule.rule, site, kind):
                    # An apply that empties a struct sends null, which says nothing of the rule.
                    if not (rule.transition and value == {}):
                        yield (Label.IMMUTABLE if rule.transition else Label.CEL), place, value
    fixed = {field.path for field in kind.immutable}
    for site in sites:
        if site.path in fixed:
            for place, value in _changed(site):
                yield Label.IMMUTABLE, place, value


def _field(site: Site, kind: Kind) -> Iterator[tuple[Label, Place, Any]]:
    """What can be done to one field by its value and its schema."""
    place, value, schema = site.place, site.value, site.schema
    yield Label.NULL, place, None
    if isinstance(place[-1], str):
        required = place[-1] in (kind.at(site.path[:-1]) or {}).get("required", ())
        yield (Label.MISSING if required else Label.ABSENT), place, values.GONE
    for other in values.other_types(value):
        yield Label.TYPE, place, other
    if isinstance(value, dict) and schema.get("additionalProperties") is False:
        for name in (*value, "unknown"):
            yield Label.UNKNOWN, (*place, f"{name}X"), "x"
    if "enum" in schema:
        yield Label.ENUM, place, "NoSuchValue"
        yield Label.ENUM, place, str(value).swapcase()
    for other in values.beyond(schema):
        yield Label.BOUND, place, other
    if isinstance(value, list) and value:
        yield Label.DUPLICATE, place, [*value, value[0]]
        yield Label.DUPLICATE, place, [value[-1], *value]
    if "number" in values.types(schema) or values.is_quantity(schema):
        for form in values.QUANTITIES:
            yield Label.QUANTITY, place, form
    elif "integer" in values.types(schema):
        forms = values.INT_OR_STRING if "string" in values.types(schema) else values.INTEGERS
        for form in forms:
            yield Label.NUMBER, place, form
    if place[-1] == "name" and isinstance(value, str):
        for name in values.NAMES:
            yield Label.NAME, place, name


def _envelope(body: dict[str, Any], kind: Kind) -> Iterator[tuple[Label, Place, Any]]:
    group = f"{kind.group}/" if kind.group else ""
    for value in (values.GONE, "", f"{group}v0", f"{group}v1beta9", "no/such/version", 1):
        yield Label.SCOPE, ("apiVersion",), value
    for value in (values.GONE, "", kind.kind.lower(), f"{kind.kind}s", 1):
        yield Label.SCOPE, ("kind",), value
    yield Label.SCOPE, ("metadata",), values.GONE
    for namespace in ("default", "Bad_Namespace", "", None, 1):
        yield Label.SCOPE, ("metadata", "namespace"), namespace
    for name in (f"{next(reversed(body))}X", "unknown"):
        yield Label.UNKNOWN, (name,), {}


def _names(body: dict[str, Any]) -> Iterator[tuple[Label, Place, Any]]:
    metadata = body.get("metadata") or {}
    if "name" in metadata:
        yield Label.MISSING, ("metadata", "name"), values.GONE
    for name in (*values.NAMES, None, 7):
        yield Label.NAME, ("metadata", "name"), name
    for field in ("labels", "annotations"):
        known = metadata.get(field) or {}
        for key in values.KEYS:
            yield Label.NAME, ("metadata", field), {**known, key: "x"}
        for value in (*values.LABEL_VALUES, None, 7, True):
            yield Label.NAME, ("metadata", field), {**known, "example.com/key": value}
    yield Label.UNKNOWN, ("metadata", "label"), {}
    yield Label.TYPE, ("metadata", "labels"), []
    yield Label.TYPE, ("metadata",), "x"


_FIELD = re.compile(r"\bself\.(\w+)")


def _read_by(rule: str, site: Site, kind: Kind) -> Iterator[tuple[Place, Any]]:
    """Other values for what a rule looks at: its own value, the fields that it names, and those that are absent."""
    if not isinstance(site.value, dict):
        for value in values.near(site.value, site.schema):
            yield site.place, value
        return
    for name in sorted(set(_FIELD.findall(rule))):
        schema = kind.at((*site.path, name))
        if schema is None:
            continue
        place = (*site.place, name)
        if name in site.value:
            yield place, values.GONE
            for value in values.near(site.value[name], schema):
                yield place, value
        else:
            for value in values.plausible(schema):
                yield place, value


def _changed(site: Site) -> Iterator[tuple[Place, Any]]:
    """The value with its first leaf altered, and the field left out."""
    place, value = site.place, site.value
    while isinstance(value, dict | list) and value:
        step = next(iter(value)) if isinstance(value, dict) else 0
        place, value = (*place, step), value[step]
    for other in values.near(value, {}):
        yield place, other
    yield site.place, values.GONE
