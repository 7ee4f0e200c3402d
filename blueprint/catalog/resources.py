"""Kinds by the names under which roles, webhooks and policies know them: the plural resource of an API group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from blueprint.catalog.schemas import SchemaPack


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind: its group ("" for the core group), kind, plural, and whether its objects live in namespaces.

    `builtin` kinds come with Kubernetes, not with a CRD.
    """

    group: str
    kind: str
    plural: str
    namespaced: bool
    builtin: bool = False


class Resources:
    """Lookup of resources by kind and by plural; `more` are those that a tree defines itself."""

    def __init__(self, more: Iterable[Resource] = ()) -> None:
        known = [*_shipped(), *more]
        self._kinds: Mapping[tuple[str, str], Resource] = {(each.group, each.kind): each for each in known}
        self._plurals: Mapping[tuple[str, str], Resource] = {(each.group, each.plural): each for each in known}
        self.groups = frozenset(each.group for each in known)

    def kind(self, group: str, kind: str) -> Resource | None:
        """The resource of a kind, or None."""
        return self._kinds.get((group, kind))

    def plural(self, group: str, plural: str) -> Resource | None:
        """The resource with this plural, or None."""
        return self._plurals.get((group, plural))

    def every(self) -> Iterable[Resource]:
        """Every resource that is known."""
        return self._kinds.values()

    def of_group(self, group: str) -> list[Resource]:
        """Every resource of an API group."""
        return [each for each in self._kinds.values() if each.group == group]


@cache
def _shipped() -> tuple[Resource, ...]:
    pack = SchemaPack.shipped()
    builtin = pack.builtin_groups()
    found = []
    for row in pack.listed():
        group = row.api_version.rpartition("/")[0]
        found.append(Resource(group, row.kind, row.plural, row.scope == "Namespaced", group in builtin))
    return tuple(found)
