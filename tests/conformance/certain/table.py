"""Which real program confirms a rule that is called certain, and on which examples."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml_rs

from blueprint.catalog.rules import Rule, rules

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
NATIVE = ROOT / "tests" / "check" / "native"


@dataclass(frozen=True)
class Row:
    """One row of judges.yaml; `at` is of a judge that is a test."""

    codes: tuple[str, ...]
    judge: str
    at: str = ""


@dataclass(frozen=True)
class Case:
    """A certain rule with its judge and its examples as texts, "" where it has none."""

    code: str
    row: Row
    bad: str
    good: str


@cache
def rows() -> tuple[Row, ...]:
    """The table of judges."""
    read = yaml_rs.loads((HERE / "judges.yaml").read_text("utf-8"), parse_datetime=False)
    return tuple(Row(**{key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}) for row in read)


def judge_of(code: str) -> Row | None:
    """The row with the longest beginning of a code, None where there is none."""
    fits = [(len(start), row) for row in rows() for start in row.codes if code.startswith(start)]
    return max(fits, key=lambda fit: fit[0])[1] if fits else None


@cache
def certain() -> dict[str, Rule]:
    """The rules that are called certain, by code."""
    return {code: rule for code, rule in rules().items() if rule.confidence == "certain"}


def cases(judge: str) -> list[Case]:
    """The certain rules of one judge."""
    found = []
    for code in certain():
        row = judge_of(code)
        if row and row.judge == judge:
            found.append(Case(code, row, *examples(code)))
    return found


def examples(code: str) -> tuple[str, str]:
    """The bad and the good example: those written for the replay, else those of the page, else a changed field."""
    rule = rules()[code]
    if written := _written().get(code):
        return _text(written["bad"]), _text(written["good"])
    if rule.bad:
        return rule.bad, rule.good
    for case in _native()["cases"]:
        if case["refused"] == [code]:
            whole = _objects()[case["object"]]
            return _text(_changed(whole, case)), _text(whole)
    return "", ""


def source(at: str) -> Path | None:
    """An upstream file in Go's module cache; None where it is not on this machine."""
    from tests.conformance.published.faults import modules

    module = at.partition("@")[0] + "@" + at.partition("@")[2].partition("/")[0]
    return modules() / at if (modules() / module).is_dir() else None


@cache
def _written() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml_rs.loads((HERE / "examples.yaml").read_text("utf-8"), parse_datetime=False)
    return found


@cache
def _native() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((NATIVE / "cases.json").read_text("utf-8"))
    return found


@cache
def _objects() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml_rs.loads((NATIVE / "objects.yaml").read_text("utf-8"))
    return found


def _changed(whole: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    body = copy.deepcopy(whole)
    inner: Any = body
    for step in case["path"][:-1]:
        inner = inner[step]
    if "gone" in case:
        del inner[case["path"][-1]]
    else:
        inner[case["path"][-1]] = case["value"]
    return body


def _text(example: Any) -> str:
    return example if isinstance(example, str) else json.dumps(example)
