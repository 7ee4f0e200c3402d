"""A baseline: findings that are known, and told again only where there are more of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from blueprint.errors import EnvironmentLacks, UsageError
from blueprint.finding import Finding, fingerprints

VERSION = 1


def load(path: Path) -> frozenset[str]:
    """The fingerprints of known findings. Raises UsageError for a file that is no baseline."""
    try:
        body = json.loads(path.read_text("utf-8"))
        if body["schema"] != VERSION:
            raise UsageError(f"a baseline of version {body['schema']}, not {VERSION}", where=str(path))
        return frozenset(str(entry["fingerprint"]) for entry in body["findings"])
    except OSError as error:
        hint = "write it with --write-baseline"
        raise UsageError(f"cannot read the baseline: {error.strerror}", where=str(path), hint=hint) from None
    except (ValueError, KeyError, TypeError):
        raise UsageError("not a baseline", where=str(path), hint="write it again with --write-baseline") from None


def new(findings: Sequence[Finding], known: frozenset[str]) -> list[Finding]:
    """The findings that a baseline does not hold."""
    return [finding for finding, mark in zip(findings, fingerprints(findings), strict=True) if mark not in known]


def save(path: Path, findings: Sequence[Finding]) -> None:
    """Write the findings as a baseline, one a line, so that two of them can be compared. Raises EnvironmentLacks."""
    entries = [
        json.dumps(
            {
                "code": finding.code,
                "file": finding.source.file if finding.source else "",
                "object": str(finding.object or ""),
                "field": finding.path,
                "fingerprint": mark,
            }
        )
        for finding, mark in zip(findings, fingerprints(findings), strict=True)
    ]
    listed = ",\n    ".join(sorted(entries))
    text = f'{{\n  "schema": {VERSION},\n  "findings": [' + (f"\n    {listed}\n  " if listed else "") + "]\n}\n"
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise EnvironmentLacks(f"cannot write the baseline: {error.strerror}", where=str(path)) from None
