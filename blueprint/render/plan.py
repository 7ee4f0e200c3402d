"""What rendering hands to ordering: objects, the Application that holds each, and what each needs to be there first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blueprint.catalog.references import references
from blueprint.finding import Ref
from blueprint.objects import Manifest


@dataclass(frozen=True, slots=True)
class External:
    """Something that may come from outside the plan: a secret, a CRD, an operator's service account.

    If the plan renders it all the same, it is ordered like any other need.
    """

    ref: Ref
    provider: str = ""


Need = Ref | External
"""The object must be in the plan (Ref), or somebody else brings it (External)."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Fields of one object that something else in the cluster writes; Argo CD must not call them a difference.

    `pointers` are JSON pointers and travel with the object as an annotation; `jq` paths can only stand in the
    Application. `respect`: a sync must also leave the live value alone (`RespectIgnoreDifferences`).
    """

    reason: str
    pointers: tuple[str, ...] = ()
    jq: tuple[str, ...] = ()
    respect: bool = True


@dataclass(frozen=True, slots=True)
class Item:
    """One object of the plan of one cluster."""

    manifest: Manifest
    application: str
    needs: tuple[Need, ...] = ()
    drift: tuple[Drift, ...] = ()


def named(manifest: Manifest, outside: Iterable[External] = ()) -> tuple[Need, ...]:
    """What the object needs because its fields name it; what is optional, or listed in `outside`, may be missing."""
    brought = {external.ref: external for external in outside}
    needs: dict[Ref, Need] = {}
    for reference in references(manifest):
        ref = reference.target
        may_lack = External(ref, "optional") if reference.optional else ref
        needs.setdefault(ref, brought.get(ref, may_lack))
    return tuple(needs.values())
