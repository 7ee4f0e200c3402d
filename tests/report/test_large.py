"""Six thousand findings, some of them alike: every format stays within its limits, and loses none without a word."""

from __future__ import annotations

import gzip
import json as plain
import re
from collections import Counter
from functools import cache
from xml.etree import ElementTree

from blueprint.catalog.rules import rules
from blueprint.finding import Confidence, Finding, Ref, Report, Severity, Source
from blueprint.report import Totals
from blueprint.report import json as document_of
from blueprint.report.formats import written

MANY = 6_000
TOTALS = Totals(objects=MANY, files=300, documents=MANY, skipped=2, silenced=5)


@cache
def report() -> Report:
    """Findings of every rule and severity, many in one file, and some that differ only by their line."""
    codes, severities = list(rules()), list(Severity)
    return Report.of(
        Finding(
            codes[number % len(codes)],
            f'value {number // 2} of <{"x" * (number % 80)}> & "more" than ]]> fits ::error::\x1b[31m',
            Source(f"tree/{number % 300}/objects.yaml", 1 + number, 1 + number % 90),
            severities[number % 3],
            Confidence(rules()[codes[number % len(codes)]].confidence),
            Ref("apps", "Deployment", f"team-{number % 300}", f"web-{number // 4}"),
            f"spec.template.spec.containers[{number % 5}].image",
            "write something else",
        )
        for number in range(MANY)
    )


def text(name: str) -> str:
    return written(name, report(), TOTALS, rules(), "1.2.3")


def test_sarif_is_small_enough_for_code_scanning() -> None:
    """GitHub takes 10 MB packed; what lies beyond its 25,000 results is told (see test_sarif.py)."""
    whole = text("sarif")
    (run,) = plain.loads(whole)["runs"]
    assert len(run["results"]) == MANY
    assert len(gzip.compress(whole.encode())) * 25_000 / MANY < 10_000_000
    prints = [result["partialFingerprints"]["blueprint/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)


def test_annotations_are_ten_of_each_kind_and_the_rest_plain_lines() -> None:
    lines = text("github").splitlines()
    kinds = Counter(match[1] for line in lines if (match := re.match(r"::(\w+) ", line)))
    assert kinds == {"error": 10, "warning": 10, "notice": 10}
    assert len([line for line in lines if line.startswith("- ")]) == MANY - 30
    assert not any("\x1b" in line for line in lines)


def test_fingerprints_of_gitlab_are_each_there_once() -> None:
    entries = plain.loads(text("gitlab"))
    assert len({entry["fingerprint"] for entry in entries}) == len(entries) == MANY


def test_junit_is_xml_and_counts_right() -> None:
    suites = ElementTree.fromstring(text("junit"))
    assert suites.get("tests") == str(MANY)
    assert len(suites.findall("testsuite")) == 300
    failures = sum(finding.fails for finding in report().findings)
    assert len(suites.findall("testsuite/testcase/failure")) == failures == int(suites.get("failures") or 0)


def test_json_is_the_contract() -> None:
    value = document_of.document(report(), TOTALS, rules())
    assert list(value) == ["schema", "read", "findings", "silenced"]
    assert value["read"] == {"files": 300, "documents": MANY, "objects": MANY, "skipped": 2}
    assert len(value["findings"]) == MANY
    keys = ["code", "name", "severity", "confidence", "message", "object", "source", "fix"]
    assert all(list(finding) == keys for finding in value["findings"])
    assert list(value["findings"][0]["object"]) == ["group", "kind", "namespace", "name"]
    assert list(value["findings"][0]["source"]) == ["file", "line"]
