"""The page of threats: every test that it names is there, and no gate is without a word on what it cannot tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GATES = {f"G{number}" for number in range(1, 13)}
ATTACKERS = {f"T{number}" for number in range(1, 8)}


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs/threat-model.md").read_text("utf-8")


def section(page: str, title: str) -> list[list[str]]:
    """The rows of a section's table, without its head."""
    text = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_tests_that_it_names_are_there(page: str, repository: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page)
    assert len(named) > 30
    for file, test in named:
        text = (repository / file).read_text("utf-8")
        assert not test or f"def {test}(" in text, f"{file}::{test}"


def test_every_gate_says_what_it_stops_what_not_and_by_which_test(page: str) -> None:
    rows = {row[0].partition(" ")[0]: row for row in section(page, "Gates")}
    assert rows.keys() == GATES
    for row in rows.values():
        assert len(row) == 4
        assert all(row)
        assert "tests/" in row[3] or row[3] == "below", row[0]
    silent = {gate for row in section(page, "When a gate cannot tell") for gate in row[0].split(", ")}
    assert silent == GATES


def test_every_attacker_is_met(page: str) -> None:
    assert {row[0] for row in section(page, "From whom")} == ATTACKERS
    gates = page.partition("## Gates\n")[2]
    assert {name for name in ATTACKERS if re.search(rf"\b{name}\b", gates)} == ATTACKERS
    for row in section(page, "What tenants try"):
        assert len(row) == 4
        assert all(row)


def test_rendered_policies_fail_closed(repository: Path) -> None:
    """What the page says of G11, in the trees of the examples."""
    files = [*(repository / "tests/golden").rglob("validatingpolicy-*.yaml")]
    files += [*(repository / "tests/golden").rglob("validatingadmissionpolicy-*.yaml")]
    files += [*(repository / "tests/golden").rglob("imagevalidatingpolicy-*.yaml")]
    assert len(files) > 50
    for file in files:
        assert "\n  failurePolicy: Fail\n" in file.read_text("utf-8"), file
