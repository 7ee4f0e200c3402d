"""Cases of rules in YAML: objects that give findings, the same repaired, and a near miss that must stay silent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml_rs

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import validate
from blueprint.check.read import Reading, read_bytes
from blueprint.check.rules import across
from blueprint.finding import Finding
from blueprint.objects import Manifest

FOLDER = Path(__file__).parents[2] / "cases"

Files = str | dict[str, str]
"""The text of one file, or texts by file name."""


@dataclass(frozen=True)
class Case:
    """One row: `expect` are codes that `objects` must give, and that neither `fixed` nor `near` may give.

    A row that shows only what must not be said has `silent` instead. `full` asks the whole validation, with schemas,
    names and sizes, not only the rules across objects.
    """

    case: str
    objects: Files
    expect: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    fixed: Files = ""
    near: Files = ""
    full: bool = False
    closed: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


def cases() -> Iterator[tuple[str, Case]]:
    """Every case of every family, with an id for pytest."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for row in yaml_rs.loads(path.read_text("utf-8"), parse_datetime=False):
            yield f"{path.stem}: {row['case']}", Case(**row)


def manifests(files: Files) -> list[Manifest]:
    """The objects of the texts."""
    reading = Reading()
    for name, text in ({"objects.yaml": files} if isinstance(files, str) else files).items():
        read_bytes(text.encode(), name, reading)
    assert not reading.findings, reading.findings
    return [*reading.manifests, *reading.aside]


def findings(files: Files, **options: Any) -> list[Finding]:
    """What the rules across objects find in the texts."""
    return list(across(manifests(files), **options))


@cache
def _pack() -> SchemaPack:
    return SchemaPack.shipped()


def validated(files: Files) -> list[Finding]:
    """What the whole validation finds in the texts."""
    return validate(manifests(files), _pack()).findings


def codes(files: Files, **options: Any) -> set[str]:
    """The codes of the findings."""
    return {finding.code for finding in findings(files, **options)}
