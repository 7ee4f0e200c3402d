"""Every bad manifest is told one finding at its line, through reading and all rules together."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml_rs

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import validate
from blueprint.check.joined import joined
from blueprint.check.locate import located
from blueprint.check.read import read

BAD = Path(__file__).parents[1] / "bad"
PACK = SchemaPack.shipped()


def table() -> dict[str, str]:
    rows: dict[str, str] = yaml_rs.loads((BAD / "manifests.yaml").read_text("utf-8"))
    return rows


def told(name: str) -> list[str]:
    reading = read([BAD / "manifests" / name])
    findings = joined([*reading.findings, *located(validate(reading.manifests, PACK).findings)])
    failing = [f for f in findings if f.fails or f.code.startswith("YML")]
    return [f"{f.code}:{f.source.line}:{f.source.column}" for f in failing if f.source]


def test_the_table_names_every_file() -> None:
    assert sorted(table()) == sorted(path.name for path in (BAD / "manifests").iterdir())


@pytest.mark.parametrize("name", sorted(table()))
def test_one_mistake_is_one_finding(name: str) -> None:
    assert told(name) == [table()[name]]


def test_each_value_is_joined_with_its_own_surprise(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: yes, b: 5, c: off, d: x}\n")
    reading = read([file])
    found = joined([*reading.findings, *located(validate(reading.manifests, PACK).findings)])
    assert [(f.code, f.path, f.fix) for f in found] == [
        ("SCH106", "data.a", 'quote it ("yes")'),
        ("SCH106", "data.b", ""),
        ("SCH106", "data.c", 'quote it ("off")'),
    ]
