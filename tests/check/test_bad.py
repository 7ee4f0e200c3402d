"""Every bad manifest is told its finding at its line, through reading and all rules together."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml_rs

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import validate
from blueprint.check.locate import located
from blueprint.check.read import read

BAD = Path(__file__).parents[1] / "bad"
PACK = SchemaPack.shipped()


def table() -> dict[str, list[str]]:
    rows: dict[str, list[str]] = yaml_rs.loads((BAD / "manifests.yaml").read_text("utf-8"))
    return rows


def told(name: str) -> list[str]:
    reading = read([BAD / "manifests" / name])
    findings = [*reading.findings, *located(validate(reading.manifests, PACK).findings)]
    failing = [f for f in findings if f.fails or f.code.startswith("YML")]
    return [f"{f.code}:{f.source.line}:{f.source.column}" for f in failing if f.source]


def test_the_table_names_every_file() -> None:
    assert sorted(table()) == sorted(path.name for path in (BAD / "manifests").iterdir())


@pytest.mark.parametrize("name", sorted(table()))
def test_findings(name: str) -> None:
    assert told(name) == table()[name]
