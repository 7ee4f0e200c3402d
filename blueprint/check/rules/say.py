"""How a rule says what it found: the confidence is that of its row in the catalog unless it is less sure this time."""

from __future__ import annotations

from collections.abc import Iterable

from blueprint.catalog.rules import rules
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest


def one_of(names: Iterable[str], most: int = 6) -> str:
    """A hint at the names that there are: the only one, or the first of several."""
    there = list(dict.fromkeys(names))
    if len(there) == 1:
        return f"name {there[0]}"
    return f"one of {', '.join(there[:most])}{', …' if len(there) > most else ''}"


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
