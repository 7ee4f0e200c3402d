"""The form of an alert of Prometheus."""

from __future__ import annotations

from typing import Any


def alert(name: str, expr: str, held: str, severity: str, summary: str, description: str) -> dict[str, Any]:
    """A rule that fires when the expression has held for a time (`10m`); severity is `page` or `ticket`."""
    return {
        "alert": name,
        "expr": expr,
        "for": held,
        "labels": {"severity": severity},
        "annotations": {"summary": summary, "description": description},
    }
