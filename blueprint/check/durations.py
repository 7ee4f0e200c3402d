"""Durations as Go writes them, and how far apart the runs of a cron schedule are.

Source: Go's time.ParseDuration; github.com/robfig/cron v3.0.1 parser.go.
"""

from __future__ import annotations

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)")
_NAMED = {
    "@hourly": 1,
    "@daily": 24,
    "@midnight": 24,
    "@weekly": 168,
    "@monthly": 744,
    "@yearly": 8784,
    "@annually": 8784,
}


def seconds(text: str) -> float | None:
    """The length of `720h0m0s`, None for what is no duration."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    parts = list(_PART.finditer(rest))
    if not parts or "".join(part[0] for part in parts) != rest:
        return None
    return sign * sum(float(part[1]) * _UNITS[part[2]] for part in parts)


def hours_between_runs(schedule: str) -> float | None:
    """The longest time between two runs of a cron schedule of a plain shape, in hours; None for any other."""
    words = schedule.split()
    if words and "TZ=" in words[0]:
        words = words[1:]
    if len(words) == 1:
        return _NAMED.get(words[0])
    if len(words) == 2 and words[0] == "@every":
        length = seconds(words[1])
        return None if length is None else length / 3600
    if len(words) != 5:
        return None
    minute, hour, day, month, weekday = words
    if not minute.isdigit() or month not in ("*", "?"):
        return None
    if day in ("*", "?") and weekday in ("*", "?"):
        step = re.fullmatch(r"\*/(\d+)", hour)
        if step and int(step[1]):
            return float(step[1])
        return 1 if hour == "*" else 24 if hour.isdigit() else None
    if not hour.isdigit():
        return None
    if day in ("*", "?"):
        return 168 if weekday.isdigit() else None
    return 744 if day.isdigit() and weekday in ("*", "?") else None
