"""Findings as annotations of GitHub Actions: commands on the standard output of a step.

GitHub keeps ten errors, ten warnings and ten notices of a step; what goes beyond is said in plain lines of the log.
Source: github.com/actions/toolkit packages/core/src/command.ts (escapes), docs.github.com workflow commands.
"""

from __future__ import annotations

from collections import defaultdict

from blueprint.finding import Finding, Report, Severity
from blueprint.report.places import file_of, said, weight
from blueprint.report.text import closing, printable
from blueprint.report.totals import Rules, Totals

EACH = 10
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def commands(report: Report, totals: Totals, rules: Rules, *, each: int = EACH) -> str:
    """One command for each finding, the failing ones first, then what did not fit, then the closing line."""
    by_weight: dict[Severity, list[Finding]] = defaultdict(list)
    for finding in sorted(report.findings, key=lambda each: not each.fails):
        by_weight[weight(finding)].append(finding)
    lines = [_command(f, rules) for severity in Severity for f in by_weight[severity][:each]]
    beyond = [finding for severity in Severity for finding in by_weight[severity][each:]]
    # A dash in front: no line of the log may be taken for a command.
    lines += [printable(f"- {f.source or ''} {f.severity.value} {f.code} {f.message}") for f in beyond]
    return "\n".join((*lines, closing(report, totals)))


def _command(finding: Finding, rules: Rules) -> str:
    rule = rules.get(finding.code)
    properties = {"title": f"{finding.code} {rule.name}" if rule else finding.code}
    if finding.source:
        properties["file"] = file_of(finding)
        if finding.source.line:
            properties["line"] = str(finding.source.line)
            if finding.source.column:
                properties["col"] = str(finding.source.column)
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{_COMMANDS[weight(finding)]} {listed}::{_data(said(finding))}"


def _data(value: str) -> str:
    value = "\n".join(map(printable, value.splitlines()))
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
