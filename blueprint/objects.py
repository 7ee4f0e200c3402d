"""Kubernetes objects with a place in a file: what every check reads."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Any

from blueprint.finding import Ref, Source

Body = dict[str, Any]
"""A mapping of a manifest."""

Steps = tuple[str | int, ...]
"""The way to a field: keys of maps and positions in lists."""

EVERYTHING: frozenset[Steps] = frozenset({()})
"""Of an object with these unknown fields only the identity is known."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object and where it was written (rendered objects: the place in the spec that caused them).

    `unknown` are fields with a placeholder that some tool fills in later: nothing is known of what is there or below.
    `root` is the folder that brings the object to a cluster where that is not the folder of its file: a Kustomize root
    that takes it from a base, a Helm chart. A `draft` is what a tool would still change: it is judged by itself alone.
    """

    body: dict[str, Any]
    source: Source
    unknown: frozenset[Steps] = frozenset()
    root: str | None = None
    draft: bool = False
    _ref: Ref | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def folder(self) -> str:
        """The folder that is applied with this object in it, with "/", "" for the top."""
        return posixpath.dirname(self.source.file) if self.root is None else self.root

    def is_unknown(self, steps: Steps) -> bool:
        """Whether a field is, or lies below, one that is not known."""
        return bool(self.unknown) and any(steps[:length] in self.unknown for length in range(len(steps) + 1))

    @property
    def api_version(self) -> str:
        """`group/version` or `version`, "" where the body has none."""
        value = self.body.get("apiVersion")
        return value if isinstance(value, str) else ""

    @property
    def kind(self) -> str:
        """The kind, "" where the body has none."""
        value = self.body.get("kind")
        return value if isinstance(value, str) else ""

    @property
    def ref(self) -> Ref:
        """The identity, with "" for what is missing or not a string; read once, for bodies do not change."""
        if (ref := self._ref) is None:
            ref = self._read_ref()
            object.__setattr__(self, "_ref", ref)
        return ref

    def _read_ref(self) -> Ref:
        group, slash, _ = self.api_version.partition("/")
        metadata = self.body.get("metadata")
        meta = metadata if isinstance(metadata, dict) else {}
        namespace, name = meta.get("namespace"), meta.get("name")
        return Ref(
            group if slash else "",
            self.kind,
            namespace if isinstance(namespace, str) else "",
            name if isinstance(name, str) else "",
        )


def at(value: object, *path: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value below the names, None where something on the way is no mapping."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def mapping(value: object, *path: str) -> Body:
    """The mapping below the names, {} where there is none. A wrong shape reads as absent: schema rules report it."""
    found = at(value, *path) if path else value
    return found if isinstance(found, dict) else {}


def text(value: object, *path: str) -> str:
    """The string below the names, "" where there is none."""
    found = at(value, *path) if path else value
    return found if isinstance(found, str) else ""
