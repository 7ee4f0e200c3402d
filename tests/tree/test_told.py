"""What was told is recalled as it was, or not at all."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from blueprint.finding import Confidence, Edit, Finding, Ref, Severity, Source
from blueprint.tree import Made
from blueprint.tree.told import keep, recall

MADE = Made("0.1.0", *(f"sha256:{letter * 64}" for letter in "abc"))
FINDINGS = [
    Finding("NOD103", "a warning", Source("clusters/a.yaml", 3, 5), Severity.WARNING, Confidence.LIKELY),
    Finding(
        "QUO201",
        "of an object",
        None,
        Severity.NOTE,
        Confidence.STYLE,
        Ref("kueue.x-k8s.io", "ClusterQueue", "", "q"),
        "spec.cohortName",
        "write it",
        (Edit("replace", "/spec/cohortName", '"a"'), Edit("move", "/b", source="/a")),
    ),
]


@pytest.fixture
def here(tmp_path: Path) -> dict[str, str]:
    return {"BLUEPRINT_CACHE": str(tmp_path)}


def test_every_field_comes_back(here: dict[str, str]) -> None:
    assert recall(MADE, (), here) is None
    keep(MADE, (), FINDINGS, here)
    assert recall(MADE, (), here) == FINDINGS
    assert recall(MADE, ["a"], here) is None  # which of them are about one cluster, nobody knows
    keep(MADE, ["b", "a"], FINDINGS[:1], here)
    assert recall(MADE, ["a", "b"], here) == FINDINGS[:1]
    other = Made("0.2.0", MADE.inputs, MADE.schemas, MADE.templates)
    assert recall(other, (), here) is None


def test_nothing_about_all_is_nothing_about_each(here: dict[str, str]) -> None:
    keep(MADE, (), [], here)
    assert recall(MADE, (), here) == recall(MADE, ["a"], here) == []


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"[]",
        b"{}",
        orjson.dumps({"version": 2, "findings": []}),
        orjson.dumps({"version": 1, "findings": [{"code": "X"}]}),
        orjson.dumps({"version": 1, "findings": 3}),
    ],
)
def test_what_cannot_be_read_is_not_there(wrong: bytes, here: dict[str, str], tmp_path: Path) -> None:
    keep(MADE, (), FINDINGS, here)
    (file,) = (tmp_path / "told").iterdir()
    file.write_bytes(wrong)
    assert recall(MADE, (), here) is None


def test_a_severity_that_there_is_not_is_not_believed(here: dict[str, str], tmp_path: Path) -> None:
    keep(MADE, (), FINDINGS, here)
    (file,) = (tmp_path / "told").iterdir()
    file.write_bytes(file.read_bytes().replace(b'"warning"', b'"silent"'))
    assert recall(MADE, (), here) is None


def test_it_does_not_grow_for_ever_and_needs_no_place(here: dict[str, str], tmp_path: Path) -> None:
    for number in range(70):
        keep(Made(str(number), MADE.inputs, MADE.schemas, MADE.templates), (), [], here)
    assert len(list((tmp_path / "told").iterdir())) == 64
    (tmp_path / "file").touch()
    for nowhere in ({"BLUEPRINT_CACHE": ""}, {}, {"HOME": "no/place"}, {"BLUEPRINT_CACHE": str(tmp_path / "file")}):
        keep(MADE, (), FINDINGS, nowhere)
        assert recall(MADE, (), nowhere) is None


def test_it_lies_in_the_users_cache(tmp_path: Path) -> None:
    for environment, place in (
        ({"HOME": str(tmp_path / "home")}, "home/.cache"),
        ({"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache")}, "cache"),
    ):
        keep(MADE, (), FINDINGS, environment)
        assert len(list((tmp_path / place / "blueprint/told").iterdir())) == 1
