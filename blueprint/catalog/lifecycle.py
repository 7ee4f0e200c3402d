"""Since when and until when Kubernetes serves an API, and which it serves only when told to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from blueprint.catalog.tables import table
from blueprint.catalog.versions import version

Release = tuple[int, int]
"""Major and minor."""


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """Releases as `1.35`, "" where nothing is said; `replacement` is an apiVersion."""

    introduced: str = ""
    deprecated: str = ""
    removed: str = ""
    replacement: str = ""


def release(text: str) -> Release | None:
    """`v1.35.4` or `1.35` as numbers that sort; None for what is no release."""
    found = version(text)
    return (found[0], found[1]) if found else None


@cache
def lifecycle(api_version: str, kind: str) -> Lifecycle | None:
    """What is known of a kind in one version, None where it is as old as the oldest release in question."""
    row = table("api_lifecycle")["kinds"].get(f"{api_version} {kind}")
    return Lifecycle(**row) if row else None


def off_by_default(api_version: str, target: str) -> bool:
    """Whether an API server of a release serves a group version only when told to."""
    asked = release(target)
    known = {release(each): each for each in table("api_lifecycle")["off"]}
    older = [each for each in known if each and asked and each <= asked]
    nearest = max(older) if older else min(each for each in known if each)
    return api_version in table("api_lifecycle")["off"][known[nearest]]


def experimental(group: str, name: str) -> str:
    """The channel of a group's CRDs that alone has a field or a value of this name, "" where none is known."""
    row = table("experimental_fields").get(group)
    return row["channel"] if row and name in (*row["fields"], *row["values"]) else ""
