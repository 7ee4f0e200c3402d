"""Findings as SARIF 2.1.0 (docs.oasis-open.org/sarif/sarif/v2.1.0), for code scanning.

GitHub takes 25,000 results and rules of a run and shows the 5,000 most severe; it follows an alert over changes by
`partialFingerprints`.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from blueprint.finding import Confidence, Finding, Report, Severity, fingerprints
from blueprint.report.places import file_of, heaviest, line_of, said, weight, writable
from blueprint.report.totals import Rule, Rules, counted

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST = 25_000
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_PROBLEMS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "recommendation"}
_PRECISION = {Confidence.CERTAIN: "very-high", Confidence.LIKELY: "high", Confidence.STYLE: "medium"}

Json = dict[str, Any]


def document(report: Report, rules: Rules, version: str, *, most: int = MOST) -> Json:
    """One run; rules are those that have results. Of more than `most` findings the least severe are left out."""
    kept = heaviest(report, most)
    prints = dict(zip(map(id, report.findings), fingerprints(report.findings), strict=True))
    codes = sorted({finding.code for finding in kept})
    index = {code: at for at, code in enumerate(codes)}
    worst: dict[str, Severity] = {}
    for finding in sorted(kept, key=lambda each: list(Severity).index(weight(each)), reverse=True):
        worst[finding.code] = weight(finding)
    invocation: Json = {"executionSuccessful": True}
    if left := len(report.findings) - len(kept):
        text = f"{counted(left, 'finding is', 'findings are')} left out, the least severe ones"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    driver = {
        "name": "blueprint",
        "version": version,
        "rules": [_rule(code, rules.get(code), worst[code]) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(finding, index[finding.code], prints[id(finding)]) for finding in kept],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str, rule: Rule | None, worst: Severity) -> Json:
    value: Json = {"id": code, "defaultConfiguration": {"level": _LEVELS[worst]}}
    if rule is None:
        return value
    plain = [rule.why, f"Fix: {rule.fix}"]
    marked = [rule.why, f"**Fix:** {rule.fix}"]
    for title, example in (("Bad", rule.bad), ("Good", rule.good)):
        if example:
            plain.append(f"{title}:\n{example.rstrip()}")
            marked.append(f"**{title}:**\n\n````yaml\n{example.rstrip()}\n````")
    precision = _PRECISION[Confidence(rule.confidence)]
    return value | {
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {"text": "\n\n".join(plain), "markdown": "\n\n".join(marked)},
        "properties": {
            "tags": ["kubernetes", re.sub(r"\d+$", "", code)],
            "precision": precision,
            "problem.severity": _PROBLEMS[worst],
        },
    }


def _result(finding: Finding, rule: int, fingerprint: str) -> Json:
    region: Json = {"startLine": line_of(finding)}
    if finding.source and finding.source.line and finding.source.column:
        region["startColumn"] = finding.source.column
    location: Json = {"physicalLocation": {"artifactLocation": {"uri": uri(file_of(finding))}, "region": region}}
    if finding.object:
        location["logicalLocations"] = [
            {
                "name": writable(finding.object.name),
                "fullyQualifiedName": writable(str(finding.object)),
                "kind": "resource",
            }
        ]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[weight(finding)],
        "message": {"text": said(finding)},
        "locations": [location],
        "partialFingerprints": {"blueprint/v1": fingerprint},
        "properties": {
            "confidence": finding.confidence.value,
            "path": writable(finding.path),
            "fix": writable(finding.fix),
        },
    }


def uri(file: str) -> str:
    """A file as SARIF names it."""
    if file.startswith("/"):
        return PurePosixPath(file).as_uri()
    return quote(file, safe="/")
