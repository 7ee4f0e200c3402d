"""Which object names which: the edges of the object graph, from one table of field paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from blueprint.catalog.tables import table
from blueprint.finding import Ref
from blueprint.objects import Manifest


@dataclass(frozen=True, slots=True)
class Reference:
    """One edge: the field that names, the object that is named, and whether it may be missing."""

    path: str
    target: Ref
    optional: bool = False


@dataclass(frozen=True, slots=True)
class _Edge:
    steps: tuple[str, ...]
    kind: str
    group: str
    scope: str
    optional: bool
    kind_beside: bool
    api_beside: bool
    only_kind: str
    unless_true: str


def steps(path: str) -> tuple[str, ...]:
    """A path of a table as what `walk` follows: `a.b[].c{}` → ("a", "b", "[]", "c", "{}")."""
    found: list[str] = []
    for part in path.split("."):
        name = part.rstrip("[]{}")
        found.append(name)
        if part != name:
            found.append(part[len(name) :])
    return tuple(found)


def _edge(row: dict[str, Any]) -> _Edge:
    kind, _, group = row.get("to", "").partition(".")
    return _Edge(
        steps=steps(row["path"]),
        kind=kind or row.get("default_kind", ""),
        group=group or row.get("group", "") or row.get("default_group", ""),
        scope=row.get("in", "same"),
        optional=row.get("optional", False),
        kind_beside=row.get("kind_beside", False),
        api_beside=row.get("api_beside", False),
        only_kind=row.get("only_kind", ""),
        unless_true=row.get("unless_true", ""),
    )


@cache
def _edges(kind: str) -> tuple[_Edge, ...]:
    return tuple(_edge(row) for row in table("references")["kinds"].get(kind, ()))


@cache
def _pod_edges() -> tuple[_Edge, ...]:
    return tuple(_edge(row) for row in table("references")["pods"])


@cache
def pod_spec_paths(kind: str) -> tuple[tuple[str, ...], ...]:
    """Where the kind (`Deployment.apps`, `Pod`) holds pod specs, as steps for `walk`."""
    return tuple(steps(path) for path in table("references")["pod_specs"].get(kind, ()))


def walk(
    value: object, steps: tuple[str, ...], path: str = "", parent: object = None
) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, value, the mapping or list around it) for each place that the steps reach."""
    for index, step in enumerate(steps):
        if step == "[]":
            if isinstance(value, list):
                for position, item in enumerate(value):
                    yield from walk(item, steps[index + 1 :], f"{path}[{position}]", value)
            return
        if step == "{}":
            if isinstance(value, dict):
                for key, item in value.items():
                    yield from walk(item, steps[index + 1 :], f"{path}.{key}", value)
            return
        if not isinstance(value, dict) or step not in value:
            return
        parent, value = value, value[step]
        path = f"{path}.{step}" if path else step
    yield path, value, parent


def _resolve(edge: _Edge, path: str, name: object, beside: object, namespace: str) -> Reference | None:
    if not isinstance(name, str) or not name or not isinstance(beside, dict):
        return None
    kind, group = edge.kind, edge.group
    if edge.only_kind and beside.get("kind") != edge.only_kind:
        return None
    if edge.unless_true and beside.get(edge.unless_true) is True:
        return None
    if edge.kind_beside and isinstance(beside.get("kind"), str):
        kind = beside["kind"]
    if edge.api_beside and isinstance(beside.get("apiVersion"), str):
        head, slash, _ = beside["apiVersion"].partition("/")
        group = head if slash else ""
    where = namespace
    if edge.scope == "cluster" or kind.startswith("Cluster"):
        where = ""
    elif edge.scope == "beside" and isinstance(beside.get("namespace"), str):
        where = beside["namespace"]
    return Reference(path, Ref(group, kind, where, name), edge.optional)


def references(manifest: Manifest) -> Iterator[Reference]:
    """Every object that this one names, its own namespace first; the order follows the table."""
    body, kind = manifest.body, manifest.ref.kind_name
    metadata = body.get("metadata")
    meta = metadata if isinstance(metadata, dict) else {}
    namespace = meta.get("namespace")
    namespace = namespace if isinstance(namespace, str) else ""
    if namespace:
        yield Reference("metadata.namespace", Ref("", "Namespace", "", namespace))
    labels = meta.get("labels")
    if isinstance(labels, dict):
        for key, row in table("references")["labels"].items():
            name = labels.get(key)
            if isinstance(name, str) and name:
                target, _, group = row["to"].partition(".")
                where = "" if row.get("in") == "cluster" else namespace
                yield Reference(f"metadata.labels.{key}", Ref(group, target, where, name))
    for edge in _edges(kind):
        for path, name, beside in walk(body, edge.steps):
            found = _resolve(edge, path, name, beside, namespace)
            if found is not None:
                yield found
    for steps in pod_spec_paths(kind):
        for spec_path, spec, _ in walk(body, steps):
            for edge in _pod_edges():
                if not isinstance(spec, dict) or edge.steps[0] not in spec:
                    continue
                for path, name, beside in walk(spec, edge.steps, spec_path):
                    found = _resolve(edge, path, name, beside, namespace)
                    if found is not None:
                        yield found
