"""The reference platform's tree in memory, and changes of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.review.model import Review
from blueprint.review.run import compare
from blueprint.review.sides import Library, Side, compared

GOLDEN = Path(__file__).resolve().parents[1] / "golden/reference"


class Bench:
    """Reviews of trees in memory; what is the same on both sides is read once for all of them."""

    def __init__(self) -> None:
        self.library = Library()
        self.pack = SchemaPack.shipped()
        self.tree = {
            path.relative_to(GOLDEN).as_posix(): path.read_bytes()
            for path in sorted(GOLDEN.rglob("*"))
            if path.suffix == ".yaml"
        }
        self.clusters = frozenset(path.partition("/")[0] for path in self.tree)

    def review(self, base: Mapping[str, bytes], head: Mapping[str, bytes], *, findings: bool = False) -> Review:
        """The review of two trees."""
        known = self.clusters if base.keys() & self.tree.keys() else frozenset()
        sides = [
            Side(name, "", dict(files), self.library, clusters=known) for name, files in (("b", base), ("h", head))
        ]
        return compare(compared(*sides), findings=findings, shipped=self.pack)

    def of(self, change: dict[str, Any]) -> Review:
        """The review of a change of the corpus."""
        if "base" in change:
            head = change.get("head", change["base"])
            for edit in change.get("edits", [change] if "replace" in change else []):
                assert edit["replace"] in head, f"nothing there is {edit['replace']!r}"
                head = head.replace(edit["replace"], edit["with"])
            return self.review({"a.yaml": change["base"].encode()}, {"a.yaml": head.encode()})
        return self.review(self.tree, self.changed(change["edits"]))

    def changed(self, edits: list[dict[str, Any]]) -> dict[str, bytes]:
        """The tree after edits: replace/with, delete, write, move; a `*` in a file's name stands for every cluster."""
        tree = dict(self.tree)
        for edit in edits:
            pattern = edit["file"]
            for cluster in sorted(self.clusters) if "*" in pattern else [""]:
                _edit(tree, pattern.replace("*", cluster), edit, cluster)
        return tree


def _edit(tree: dict[str, bytes], name: str, edit: dict[str, Any], cluster: str) -> None:
    if "write" in edit:
        tree[name] = edit["write"].encode()
        return
    data = tree.pop(name)
    if edit.get("delete"):
        return
    if "replace" in edit:
        assert edit["replace"].encode() in data, f"{name} does not hold {edit['replace']!r}"
        data = data.replace(edit["replace"].encode(), edit["with"].encode())
    tree[edit.get("move", name).replace("*", cluster)] = data


@pytest.fixture(scope="session")
def bench() -> Bench:
    """One bench for all tests."""
    return Bench()
