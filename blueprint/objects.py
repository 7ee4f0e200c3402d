"""Kubernetes objects with a place in a file: what every check reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blueprint.finding import Ref, Source



@dataclass(frozen=True, slots=True)
class Manifest:
    """One object and where it was written (rendered objects: the place in the spec that caused them)."""

    body: dict[str, Any]
    source: Source

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
        """The identity, with "" for what is missing or not a string."""
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
