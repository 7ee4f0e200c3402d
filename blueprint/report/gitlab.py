"""Findings as GitLab's code quality report: docs.gitlab.com, CI, code quality, "import code quality results".

Of two entries with one fingerprint GitLab shows the first alone, and it wants paths below the repository's root.
"""

from __future__ import annotations

from typing import Any

from blueprint.finding import Confidence, Finding, Report, Severity, fingerprints
from blueprint.report.places import file_of, line_of, said, weight
from blueprint.report.text import printable
from blueprint.report.totals import Rules


def document(report: Report, rules: Rules) -> list[dict[str, Any]]:
    """One entry for each finding."""
    return [
        {
            "description": " — ".join(filter(None, map(printable, said(finding).splitlines()))),
            "check_name": f"{finding.code} {rule.name}" if (rule := rules.get(finding.code)) else finding.code,
            "fingerprint": fingerprint,
            "severity": _severity(finding),
            "location": {"path": file_of(finding), "lines": {"begin": line_of(finding)}},
        }
        for finding, fingerprint in zip(report.findings, fingerprints(report.findings), strict=True)
    ]


def _severity(finding: Finding) -> str:
    if weight(finding) is Severity.ERROR:
        return "critical" if finding.confidence is Confidence.CERTAIN else "major"
    return "minor" if finding.severity is not Severity.NOTE else "info"
