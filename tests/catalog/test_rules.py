"""Rules: every code that the product can say has a row, and every row is about a code that it can say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blueprint.catalog.rules import describe, overview, rules
from blueprint.errors import UsageError
from blueprint.finding import Confidence

PACKAGE = Path(__file__).parents[2] / "blueprint"
CODE = re.compile(r'"([A-Z]{2,3}\d{3})"')


def said() -> set[str]:
    """Codes in the source of the package."""
    return {code for path in PACKAGE.rglob("*.py") for code in CODE.findall(path.read_text("utf-8"))}


def test_code_and_rows_agree() -> None:
    assert said() == set(rules())


@pytest.mark.parametrize("code", sorted(rules()))
def test_a_row_is_complete(code: str) -> None:
    rule = rules()[code]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert rule.confidence in set(Confidence)
    assert all(len(text) > 5 for text in (rule.summary, rule.why, rule.fix))
    assert code in describe(code)


def test_names_are_unique() -> None:
    names = [rule.name for rule in rules().values()]
    assert len(names) == len(set(names))


def test_an_unknown_code_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="no rule") as error:
        describe("WAV10")
    assert "WAV10" in error.value.hint


def test_the_overview_has_a_line_for_each() -> None:
    assert len(overview().splitlines()) == len(rules())


def test_a_code_has_one_row() -> None:
    files = (PACKAGE / "catalog/data/rules").glob("*.yaml")
    codes = [code for file in files for code in re.findall(r"^- code: (\S+)$", file.read_text("utf-8"), re.MULTILINE)]
    assert len(codes) >= len(rules())
    assert {code: codes.count(code) for code in codes if codes.count(code) > 1} == {}
