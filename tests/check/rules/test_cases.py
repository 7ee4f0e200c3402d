"""Every case of every family of rules: found, gone when repaired, and silent for what only looks like it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blueprint.catalog.rules import Rule, rules
from blueprint.conform import programs
from blueprint.errors import EnvironmentLacks
from blueprint.finding import Finding, Severity
from tests.check.rules.cases import Case, Files, cases, findings, validated
from tests.check.rules.examples import said

ALL = dict(cases())
SHOWN = {code: rule for code, rule in rules().items() if rule.bad and rule.form in {"objects", "files"}}


@pytest.mark.parametrize("name", ALL)
def test_case(name: str) -> None:
    case: Case = ALL[name]

    def look(files: Files) -> list[Finding]:
        return validated(files) if case.full else findings(files, closed=case.closed, versions=case.versions)

    found = look(case.objects)
    assert case.expect or case.silent
    assert set(case.expect) <= {finding.code for finding in found}, found
    assert not [finding for finding in found if finding.code in case.silent]
    for finding in found:
        assert finding.message and finding.source, finding
        assert finding.code in rules()
    for files in case.innocent():
        left = [finding for finding in look(files) if finding.code in case.expect]
        assert not left


@pytest.mark.parametrize("code", SHOWN)
def test_examples_of_the_page(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule: Rule = SHOWN[code]
    if code == "YML302":
        try:
            monkeypatch.setenv("PATH", f"{programs.find('kustomize').path.parent}:{os.environ['PATH']}")
        except EnvironmentLacks as error:
            pytest.skip(error.message)

    def look(form: str, text: str) -> list[Finding]:
        (tmp_path / form).mkdir()
        monkeypatch.chdir(tmp_path / form)
        return said(code, text, tmp_path / form)

    bad, good = look("bad", rule.bad), look("good", rule.good)
    assert rule.good
    assert code in {finding.code for finding in bad}
    assert code not in {finding.code for finding in good}
    near = look("near", rule.near)
    assert rule.near not in (rule.bad, rule.good)
    assert code not in {finding.code for finding in near}
    assert errors(near) <= errors(good), "it is to be right"


def errors(found: list[Finding]) -> set[str]:
    """The codes of the errors among the findings."""
    return {finding.code for finding in found if finding.severity is Severity.ERROR}


def test_rules_across_objects_have_examples_and_sources() -> None:
    expected = {code for case in ALL.values() if not case.full for code in case.expect}
    assert expected <= SHOWN.keys()
    assert all(rule.sources for rule in SHOWN.values())


def test_every_page_has_its_examples_and_says_why_the_near_miss_is_silent() -> None:
    assert not [code for code, rule in rules().items() if not (rule.bad and rule.good and rule.near and rule.spared)]
