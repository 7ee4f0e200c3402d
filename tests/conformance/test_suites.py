"""What `make conform` and `make conform-faults` left behind: nothing was left out, and everything holds.

BLUEPRINT_EVIDENCE is the folder; both targets set it. BLUEPRINT_LACKS names programs (separated by blanks) that could
not be built in time: suites without them may be skipped, and no others.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from blueprint.conform import evidence
from blueprint.conform.stage import Suite
from blueprint.conform.suites import ALL

EVIDENCE = Path(os.environ["BLUEPRINT_EVIDENCE"])


@pytest.fixture(scope="module")
def summary() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EVIDENCE / evidence.SUMMARY).read_text())
    return found


def excused(suite: Suite) -> bool:
    """Whether a program that the suite needs could not be built."""
    needed = {component.program for component in (*suite.needs, *suite.starts)} | set(suite.programs)
    return bool(needed & set(os.environ.get("BLUEPRINT_LACKS", "").split()))


def expected() -> set[str]:
    return {suite.name for suite in ALL if not excused(suite)}


def test_the_evidence_is_whole() -> None:
    assert evidence.verify(EVIDENCE) == []


def test_no_suite_was_left_out(summary: dict[str, Any]) -> None:
    assert set(summary["skipped"]) == {suite.name for suite in ALL} - expected()


def test_every_suite_passed_and_saw_what_must_not_be(summary: dict[str, Any]) -> None:
    if summary["faults"]:
        pytest.skip("a run of faults")
    assert [case for case in summary["cases"] if not case["passed"]] == []
    assert {row["suite"] for row in summary["suites"]} == expected()
    assert all(row["negative"] for row in summary["suites"])


def test_each_fault_turned_its_suite_red(summary: dict[str, Any]) -> None:
    if not summary["faults"]:
        pytest.skip("no run of faults")
    known = {f"{suite.name}: {fault.name}" for suite in ALL if suite.name in expected() for fault in suite.faults}
    assert summary["faults"] == dict.fromkeys(known, True)
