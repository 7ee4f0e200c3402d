"""Each spec in tests/bad/specs/ has one mistake and gets one finding, at its place."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from blueprint.finding import Severity
from blueprint.spec.load import load
from tests.spec.conftest import BAD

ROWS = yaml.safe_load((BAD / "specs.yaml").read_text())
RULES = yaml.safe_load((BAD.parents[1] / "blueprint/catalog/data/rules/spc.yaml").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"].removesuffix(".yaml"))
def test_one_mistake_is_one_finding(row: dict[str, Any], platform: Path) -> None:
    name = row.get("as", f"apps/{row['file']}")
    (platform / name).parent.mkdir(exist_ok=True)
    shutil.copy(BAD / "specs" / row["file"], platform / name)

    [finding] = load(platform).findings

    assert finding.fails
    assert finding.source is not None
    assert (finding.code, finding.source.file, finding.source.line) == (row["code"], name, row["line"])
    if "column" in row:
        assert finding.source.column == row["column"]
    assert row["says"] in f"{finding.message} {finding.fix}"


def test_the_table_names_every_file() -> None:
    assert sorted(row["file"] for row in ROWS) == sorted(path.name for path in (BAD / "specs").iterdir())


def test_the_platform_below_has_no_mistake(platform: Path) -> None:
    loaded = load(platform)
    assert not loaded.findings
    assert loaded.documents == 4


def test_every_rule_of_specs_is_provoked_by_some_test() -> None:
    elsewhere = {
        "SPC101",
        "SPC105",
        "SPC112",
        "SPC113",
        "SPC120",
        "SPC123",
        "SPC124",
        "SPC210",
        "SPC213",
        "SPC217",
        "SPC218",
        "SPC219",
        "SPC221",
        "SPC222",
        "SPC225",
        "SPC226",
    }
    assert {row["code"] for row in ROWS} | elsewhere == {rule["code"] for rule in RULES}


def test_rules_have_unique_names_and_known_confidence() -> None:
    names = [rule["name"] for rule in RULES]
    assert len(names) == len(set(names))
    assert {rule["confidence"] for rule in RULES} <= {"certain", "likely", "style"}
    assert all(set(rule) >= {"code", "name", "summary", "why", "fix", "confidence", "bad", "near"} for rule in RULES)


def test_all_mistakes_are_found_in_one_run(platform: Path) -> None:
    """One file beside the other: a mistake in one hides none in another, except what it makes unknowable."""
    rows = [
        row for row in ROWS if row["code"] in ("SPC131", "SPC132", "SPC133", "SPC134", "SPC135", "SPC136", "SPC110")
    ]
    rows = [row for row in rows if "as" not in row]
    for row in rows:
        shutil.copy(BAD / "specs" / row["file"], platform / "apps" / row["file"])
    findings = load(platform).findings
    found = {(f.code, f.source.file, f.source.line) for f in findings if f.source and f.severity is Severity.ERROR}
    assert {(row["code"], f"apps/{row['file']}", row["line"]) for row in rows} <= found
    # All bear one of a few names, which is said for each but the first.
    assert {f.code for f in findings} - {row["code"] for row in rows} == {"SPC201"}
