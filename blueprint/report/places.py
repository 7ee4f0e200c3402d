"""Findings in order of weight, and places as other tools want to read them."""

from __future__ import annotations

import posixpath
import re

from blueprint.finding import Finding, Report, Severity

_HALF_LETTERS = re.compile(r"[\ud800-\udfff]")
_ORDER = {severity: rank for rank, severity in enumerate(Severity)}


def heaviest(report: Report, most: int) -> list[Finding]:
    """At most so many findings, those left out being the least severe, in the order of the report."""
    findings = report.findings
    if len(findings) <= most:
        return findings
    kept = sorted(range(len(findings)), key=lambda at: (not findings[at].fails, _ORDER[findings[at].severity]))[:most]
    return [findings[at] for at in sorted(kept)]


def weight(finding: Finding) -> Severity:
    """The severity for tools that know no confidence: an error that fails no run is a warning."""
    if finding.severity is Severity.ERROR and not finding.fails:
        return Severity.WARNING
    return finding.severity


def file_of(finding: Finding) -> str:
    """The file with "/" and without "./", "." where a finding has no place."""
    if finding.source is None or not finding.source.file:
        return "."
    return writable(posixpath.normpath(finding.source.file.replace("\\", "/")))


def line_of(finding: Finding) -> int:
    """The line from 1; the first one for a file as a whole."""
    return max(finding.source.line, 1) if finding.source else 1


def said(finding: Finding) -> str:
    """Everything a finding says, in lines."""
    about = " · ".join(filter(None, (str(finding.object or ""), finding.path)))
    return writable("\n".join(filter(None, (finding.message, about, finding.fix and f"fix: {finding.fix}"))))


def writable(value: str) -> str:
    """The text with question marks for halves of surrogate pairs, which no encoding can carry."""
    return _HALF_LETTERS.sub("?", value)
