"""What the API server fills into objects: tables of `review_defaults`, by kind and by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

from blueprint.catalog.crds import Json
from blueprint.catalog.tables import table

_Rows = Sequence[tuple[tuple[str, ...], Mapping[str, Any]]]


def with_top(value: Json, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A map with what the server adds to it, and to the maps in it that are there."""
    if not isinstance(value, dict):
        return {}
    out = dict(value)
    for name, default in defaults.items():
        if isinstance(default, dict):
            if isinstance(out.get(name, {}), dict) and (name in out or name in ("strategy", "updateStrategy")):
                out[name] = with_top(out.get(name, {}), default)
        elif out.get(name) is None:
            out[name] = default
    return out


def fill_places(body: dict[str, Any], name: str) -> None:
    """Add to the maps at the places of a kind, in the body itself; CRDs are called by their own names."""
    _fill(body, _places(name))
    spec = body.get("spec")
    for field, defaults in table("review_defaults")["rolling"].get(name, {}).items():
        strategy = spec.get(field) if isinstance(spec, dict) else None
        if isinstance(strategy, dict) and strategy.get("type") == "RollingUpdate":
            strategy["rollingUpdate"] = with_top(strategy.get("rollingUpdate") or {}, defaults)
    if name == "CustomResourceDefinition.apiextensions.k8s.io":
        names = body.get("spec", {}).get("names") if isinstance(body.get("spec"), dict) else None
        if isinstance(names, dict) and isinstance(kind := names.get("kind"), str):
            names.setdefault("listKind", f"{kind}List")
            names.setdefault("singular", kind.lower())


def fill_pod(spec: dict[str, Any]) -> None:
    """Add to the maps of a pod's spec, in the spec itself; an empty securityContext says nothing."""
    _fill(spec, _of_pods())
    for holder in (spec, *_at(spec, ("containers", "[]")), *_at(spec, ("initContainers", "[]"))):
        if holder.get("securityContext") == {}:
            del holder["securityContext"]


def _fill(body: dict[str, Any], rows: _Rows) -> None:
    for path, defaults in rows:
        for found in _at(body, path):
            for key, value in defaults.items():
                if value == "drop":
                    found.pop(key, None)
                elif found.get(key) is None:
                    found[key] = deepcopy(value)


def _at(value: Json, path: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The maps at a path, `[]` for every item of a list."""
    if not path:
        if isinstance(value, dict):
            yield value
    elif path[0] == "[]":
        for each in value if isinstance(value, list) else ():
            yield from _at(each, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _at(value[path[0]], path[1:])


@cache
def _places(name: str) -> _Rows:
    rows = table("review_defaults")["places"]
    return [(_steps(row["at"]), row["set"]) for row in rows if name in row["kinds"]]


@cache
def _of_pods() -> _Rows:
    return [(_steps(row["at"]), row["set"]) for row in table("review_defaults")["pod_places"]]


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split(".")) if path else ()
