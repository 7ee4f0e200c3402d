"""Durations in Go's form, and the time between two runs of a schedule."""

from __future__ import annotations

import pytest

from blueprint.check.durations import hours_between_runs, seconds


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("720h0m0s", 2_592_000),
        ("1.5h", 5400),
        ("90s", 90),
        ("0", 0),
        ("-1m", -60),
        ("1d", None),
        ("", None),
        ("h", None),
    ],
)
def test_seconds(text: str, length: float | None) -> None:
    assert seconds(text) == length


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [
        ("17 2 * * *", 24),
        ("CRON_TZ=Europe/Berlin 17 2 * * *", 24),
        ("5 * * * *", 1),
        ("0 */6 * * *", 6),
        ("0 3 * * 0", 168),
        ("0 3 1 * *", 744),
        ("@weekly", 168),
        ("@every 90m", 1.5),
        ("*/5 * * * *", None),
        ("0 3 1 * 0", None),
        ("0 3 * 1 *", None),
        ("nonsense", None),
    ],
)
def test_hours(schedule: str, hours: float | None) -> None:
    assert hours_between_runs(schedule) == hours
