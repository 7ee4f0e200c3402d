"""NOTICE names every module that the schemas are derived from, in the version that they are."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def test_every_source_of_schemas_is_named_with_its_version() -> None:
    table = (REPOSITORY / "docs/schema-sources.md").read_text()
    sources = re.findall(r"^\| `([^`]+)` \| (\S+) \| (\S+) \|", table, re.MULTILINE)
    lines = {tuple(line.split()) for line in (REPOSITORY / "NOTICE").read_text().splitlines()}
    assert len(sources) >= 19
    assert set(sources) <= lines
