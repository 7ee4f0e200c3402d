"""Documents that stand beside the objects of a tree, and that rules read: files of programs, inventories of nodes."""

from __future__ import annotations

from functools import lru_cache

from blueprint.catalog.tables import table
from blueprint.objects import Manifest

INVENTORIES = ("Inventory", "NodePool")
"""Kinds of documents about nodes, which may do without apiVersion (see admission.nodes)."""


def aside(manifest: Manifest) -> bool:
    """Whether no API server serves this kind of document."""
    return _aside(manifest.api_version, manifest.kind)


@lru_cache(maxsize=1 << 10)
def _aside(api_version: str, kind: str) -> bool:
    if not api_version:
        return kind in INVENTORIES
    groups = {row["group"] for row in table("file_only_groups")["groups"]}
    group = api_version.rpartition("/")[0]
    return group in groups or f"{group}/{kind}" in groups
