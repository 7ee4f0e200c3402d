"""Every case of every family of rules: found, gone when repaired, and silent for what only looks like it."""

from __future__ import annotations

import pytest

from blueprint.catalog.rules import Rule, rules
from blueprint.finding import Finding, Severity
from tests.check.rules.cases import Case, Files, cases, codes, findings, validated

ALL = dict(cases())
PLACE = "shown/queues/objects.yaml"
"""Where the examples of pages stand, so that an Application among them can own the others."""

SHOWN = {code: rule for code, rule in rules().items() if rule.bad}


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
def test_examples_of_the_page(code: str) -> None:
    rule: Rule = SHOWN[code]
    assert code in codes({PLACE: rule.bad})
    assert rule.good
    assert code not in codes({PLACE: rule.good})


@pytest.mark.parametrize("code", [code for code, rule in SHOWN.items() if rule.near])
def test_near_miss_of_the_page(code: str) -> None:
    rule: Rule = SHOWN[code]
    assert rule.near not in (rule.bad, rule.good)
    found = findings({PLACE: rule.near})
    assert code not in {finding.code for finding in found}
    assert not [finding for finding in found if finding.severity is Severity.ERROR], "it is to be right"


def test_rules_across_objects_have_examples_and_sources() -> None:
    said = {code for case in ALL.values() if not case.full for code in case.expect}
    assert said <= SHOWN.keys() | _WITHOUT
    assert all(rule.sources for rule in SHOWN.values())


_WITHOUT = frozenset({"REF103", "WAV103", "WAV105", "WAV108", "WAV109", "POL101", "UPG108"})
"""Codes that rendering says, too, whose pages came before examples did, and one that needs a target version."""
