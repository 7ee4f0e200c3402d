"""How a rule says what it found: the confidence is that of its row in the catalog unless it is less sure this time."""

from __future__ import annotations

from blueprint.catalog.rules import rules
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest


def say(
    code: str,
    manifest: Manifest,
    message: str,
    path: str = "",
    fix: str = "",
    severity: Severity = Severity.ERROR,
    confidence: Confidence | None = None,
) -> Finding:
    """A finding about one field of one object."""
    sure = confidence or Confidence(rules()[code].confidence)
    return Finding(code, message, manifest.source, severity, sure, manifest.ref, path, fix)


def warn(code: str, manifest: Manifest, message: str, path: str = "", fix: str = "") -> Finding:
    """A finding that does not fail a run."""
    return say(code, manifest, message, path, fix, Severity.WARNING)


def note(code: str, manifest: Manifest, message: str, path: str = "", fix: str = "") -> Finding:
    """A remark: true, but perhaps meant."""
    return say(code, manifest, message, path, fix, Severity.NOTE)
