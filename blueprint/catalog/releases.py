"""Several releases of each component: what their CRDs say, read from files that `scripts/upgrades.py` writes."""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import Any

import orjson

from blueprint.catalog.schemas import SchemaPack
from blueprint.catalog.versions import version


@cache
def _lock() -> dict[str, Any]:
    lock: dict[str, Any] = orjson.loads(_file("LOCK.json"))
    return lock


def _file(name: str) -> bytes:
    return resources.files("blueprint.catalog").joinpath(f"data/releases/{name}").read_bytes()


def components() -> tuple[str, ...]:
    """The components of which several releases are known."""
    return tuple(_lock())


def module(component: str) -> str:
    """The Go module that a component's CRDs are read from."""
    return str(_lock()[component]["module"])


def releases(component: str) -> tuple[str, ...]:
    """The releases of a component that are known, the oldest first; none for a component that is not."""
    row = _lock().get(component)
    return tuple(sorted(row["releases"], key=lambda name: version(name) or (0, 0, 0, 0, 0))) if row else ()


def nearest(component: str, asked: str) -> str:
    """The release that speaks for a version: itself, or one of the same minor; "" where nothing is known of it."""
    known, wanted = releases(component), version(asked)
    if wanted is None:
        return ""
    for name in known:
        if version(name) == wanted:
            return name
    minor = [name for name in known if (found := version(name)) is not None and found[:2] == wanted[:2]]
    return minor[-1] if minor else ""


@cache
def records(component: str, release: str) -> tuple[dict[str, Any], ...]:
    """One record for each kind and version of a release, as `crds.records` makes them."""
    rows: list[dict[str, Any]] = orjson.loads(gzip.decompress(_file(f"{component}@{release}.json.gz")))
    meta = SchemaPack.shipped().object_meta()
    for row in rows:
        row["schema"].setdefault("properties", {})["metadata"] = meta
    return tuple(rows)


def kinds(component: str) -> frozenset[tuple[str, str]]:
    """Every (group, kind) that any known release of a component has."""
    return frozenset(
        (row["apiVersion"].rpartition("/")[0], row["kind"])
        for release in releases(component)
        for row in records(component, release)
    )


def pack_of(component: str, release: str, shipped: SchemaPack) -> SchemaPack:
    """The pack in which the component's kinds are those of a release, and no others."""
    return shipped.replacing(kinds(component), records(component, release))
