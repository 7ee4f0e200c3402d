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
    names and sizes, not only the rules across objects. `repair` and `spare` are texts to put in the place of others in
    `objects`: the first gives one more repaired form, the second one more near miss.
    """

    case: str
    objects: Files
    expect: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    fixed: Files = ""
    near: Files = ""
    repair: dict[str, str] = field(default_factory=dict)
    spare: dict[str, str] = field(default_factory=dict)
    full: bool = False
    closed: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    def innocent(self) -> Iterator[Files]:
        """Every form that must not give the codes of `expect`."""
        yield from filter(None, (self.fixed, self.near))
        for texts in filter(None, (self.repair, self.spare)):
            yield replaced(self.objects, texts)


def replaced(files: Files, texts: dict[str, str]) -> Files:
    """The files with texts put in the place of others, each of which must be there."""
    if isinstance(files, str):
        for old in texts:
            assert old in files, old
        return _put(files, texts)
    for old in texts:
        assert any(old in text for text in files.values()), old
    return {name: _put(text, texts) for name, text in files.items()}


def _put(text: str, texts: dict[str, str]) -> str:
    for old, new in texts.items():
        text = text.replace(old, new)
    return text


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
