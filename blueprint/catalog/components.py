"""The components of a platform, at the versions that the tables describe: what they serve, and on which Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from blueprint.catalog.tables import table
from blueprint.catalog.versions import version


class Support(StrEnum):
    """What the makers of a component say about a Kubernetes version."""

    TESTED = "tested"
    ALLOWED = "allowed"  # not below the stated minimum; nothing more is known
    TOO_OLD = "too old"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Component:
    """One component. `version` is the one described, `libraries` the Kubernetes version of the API types it uses.

    `served` holds, for each (group, kind), the versions that its CRDs answer for, the stored one first. `oversized`
    holds the CRDs whose last-applied annotation would pass 262,144 bytes, with that size: they need server-side apply.
    `minimum` and `tested` are Kubernetes minors as `1.35`, "" and () where the makers state nothing.
    """

    name: str
    module: str
    version: str
    libraries: str
    served: Mapping[tuple[str, str], tuple[str, ...]]
    oversized: Mapping[str, int]
    minimum: str
    tested: tuple[str, ...]
    source: str

    def support(self, kubernetes: str) -> Support:
        """What is said about a Kubernetes version (`1.35` or `v1.35.4`)."""
        asked, least = version(kubernetes), version(self.minimum)
        if asked is None:
            return Support.UNKNOWN
        if f"{asked[0]}.{asked[1]}" in self.tested:
            return Support.TESTED
        if least is None:
            return Support.UNKNOWN
        return Support.ALLOWED if asked[:2] >= least[:2] else Support.TOO_OLD


@cache
def components() -> tuple[Component, ...]:
    """Every component of the tables."""
    apis = {row["module"]: row for row in table("component_apis")["components"]}
    return tuple(
        Component(
            name=row["name"],
            module=row["module"],
            version=(api := apis[row["module"]])["version"],
            libraries=api["libraries"],
            served=MappingProxyType(
                {
                    (group, kind): tuple(served)
                    for group, kinds in api["kinds"].items()
                    for kind, served in kinds.items()
                }
            ),
            oversized=MappingProxyType(api.get("big", {})),
            minimum=row.get("minimum", ""),
            tested=tuple(row.get("tested", ())),
            source=row.get("source", ""),
        )
        for row in table("components")["components"]
    )


def component(name: str) -> Component | None:
    """A component by its name (`argo-rollouts`) or module, or None."""
    return next((c for c in components() if name in (c.name, c.module)), None)


@cache
def _served() -> dict[tuple[str, str], tuple[str, ...]]:
    return {kind: served for c in components() for kind, served in c.served.items()}


def served_versions(group: str, kind: str) -> tuple[str, ...] | None:
    """The versions that a component's CRD serves, the stored one first; None for a kind that none of them brings."""
    return _served().get((group, kind))


@cache
def oversized_crds() -> Mapping[str, int]:
    """CRDs (by metadata.name) that only a server-side apply can store, with the bytes that their annotation would take.

    Source: k8s.io/apimachinery pkg/api/validation/objectmeta.go TotalAnnotationSizeLimitB; measured by
    scripts/components.py.
    """
    return MappingProxyType({name: size for c in components() for name, size in c.oversized.items()})
