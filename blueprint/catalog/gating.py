"""Which kinds make a sync wave of Argo CD wait, and which objects can keep it waiting: one table, looked up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from blueprint.catalog.argocd import GroupKind
from blueprint.catalog.tables import table
from blueprint.finding import Ref
from blueprint.objects import Manifest


class Gate(StrEnum):
    """What a wave does about an object of a kind, once the API server has stored it."""

    WAITS = "waits"  # Argo CD judges its health and waits for Healthy
    WRITTEN = "written"  # there is nothing to wait for
    BLIND = "blind"  # a controller works on it, and Argo CD has no health check: it counts as done at once
    UNKNOWN = "unknown"  # no check, and no table of ours knows the kind


@dataclass(frozen=True, slots=True)
class Gates:
    """The kinds whose health one Argo CD can judge (`checked`; `*` matches any), and those known to need judging."""

    checked: frozenset[GroupKind]
    active: frozenset[GroupKind] = frozenset()

    def of(self, group: str, kind: str) -> Gate:
        """The gate of one kind."""
        return _gate(self.checked, self.active, group, kind)


@cache
def _gate(checked: frozenset[GroupKind], active: frozenset[GroupKind], group: str, kind: str) -> Gate:
    if _matches(checked, group, kind):
        return Gate.WAITS
    if (group, kind) in _kinds("written"):
        return Gate.WRITTEN
    return Gate.BLIND if _matches(active, group, kind) else Gate.UNKNOWN


@cache
def _matches(known: frozenset[GroupKind], group: str, kind: str) -> bool:
    if (group, kind) in known:
        return True
    return any("*" in g + k and fnmatchcase(group, g) and fnmatchcase(kind, k) for g, k in known)


def group_kind(text: str) -> GroupKind:
    """`Job.batch` → ("batch", "Job"); `Pod` → ("", "Pod")."""
    kind, _, group = text.partition(".")
    return group, kind


@cache
def _kinds(section: str) -> frozenset[GroupKind]:
    return frozenset(group_kind(row) for row in table("sync")[section])


@cache
def reconciled() -> frozenset[GroupKind]:
    """Kinds on which a controller reports and which Argo CD cannot judge by itself: those that our scripts are for."""
    folder = resources.files("blueprint.catalog").joinpath("data/health")
    heads = (file.read_text("utf-8").partition("\n")[0] for file in folder.iterdir())
    names = (
        name for head in heads if head.startswith("-- kinds: ") for name in head.removeprefix("-- kinds: ").split()
    )
    return frozenset((name.rpartition("/")[0], name.rpartition("/")[2]) for name in names)


def exists_is_enough(group: str, kind: str) -> bool:
    """Whether an object that names one of this kind needs no more than that it is stored."""
    return (group, kind) in _kinds("exists_is_enough") or (group, kind) in _kinds("written")


def tolerates_absence(group: str, kind: str) -> bool:
    """Whether an object of this kind may be stored before what it names, and catches up by itself."""
    return (group, kind) in _kinds("tolerates_absence")


@cache
def standing_namespaces() -> frozenset[str]:
    """The namespaces that every cluster has."""
    return frozenset(table("sync")["namespaces"])


def maker(ref: Ref) -> Ref | None:
    """The object whose controller makes the CRD of this object's kind (ConstraintTemplate for constraints), or None."""
    for row in table("sync")["made_by"]:
        if row["group"] == ref.group:
            group, kind = group_kind(row["maker"])
            return Ref(group, kind, "", ref.kind.lower())
    return None


@cache
def options(group: str, kind: str) -> tuple[str, ...]:
    """The sync options that protect the objects of a kind (`Prune=confirm`), in a fixed order."""
    key = f"{kind}.{group}" if group else kind
    return tuple(table("sync")["options"].get(key, ()))


@cache
def _stalls(group: str, kind: str) -> tuple[dict[str, Any], ...]:
    queued = (group, kind) in _kinds("queued")
    return tuple(
        row
        for row in table("sync")["stalls"]
        if (group_kind(row["kind"]) == (group, kind) if "kind" in row else queued)
    )


def stalls(manifest: Manifest) -> str:
    """Why this object can stay Suspended or Progressing without end (a reason in words), or ""."""
    group, _, _ = manifest.api_version.rpartition("/")
    for row in _stalls(group, manifest.kind):
        if row.get("always") or _holds(manifest.body, row):
            return str(row["reason"])
    return ""


def _holds(body: dict[str, Any], row: dict[str, Any]) -> bool:
    if "field" in row:
        path: Iterable[str] = row["field"].split(".")
    elif "label" in row:
        path = ("metadata", "labels", row["label"])
    else:
        path = ("metadata", "annotations", row["annotation"])
    value: Any = body
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value == row["value"] if "value" in row else value not in (None, "")
