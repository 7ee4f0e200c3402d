"""How a rule says what it found in a query: with the name that the query has in its object."""

from __future__ import annotations

from blueprint.check.queries import Written
from blueprint.check.rules.say import say
from blueprint.finding import Confidence, Finding, Severity


def fault(
    code: str,
    written: Written,
    message: str,
    fix: str = "",
    severity: Severity = Severity.ERROR,
    confidence: Confidence | None = None,
) -> Finding:
    """A finding about a query."""
    named = f"{written.name}: {message}" if written.name else message
    return say(code, written.manifest, named, written.at, fix, severity, confidence)


def doubt(code: str, written: Written, message: str, fix: str = "") -> Finding:
    """A finding that does not fail a run."""
    return fault(code, written, message, fix, Severity.WARNING)


def remark(code: str, written: Written, message: str, fix: str = "") -> Finding:
    """A remark: true, but perhaps meant."""
    return fault(code, written, message, fix, Severity.NOTE)
