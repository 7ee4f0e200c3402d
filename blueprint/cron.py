"""Cron schedules as CronJobs and Velero read them.

Source: github.com/robfig/cron/v3@v3.0.1 parser.go (ParseStandard), through k8s.io/kubernetes@v1.35.4
pkg/util/parsers (ParseCronScheduleWithPanicRecovery).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DURATION = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|[+-]?0")


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    names: dict[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, {name: index for index, name in enumerate(_MONTHS, 1)}),
    _Field("day of the week", 0, 6, {name: index for index, name in enumerate(_DAYS)}),
)


@lru_cache(maxsize=256)
def schedule_problem(schedule: str) -> str:
    """What is wrong with a schedule, "" where nothing is."""
    if not schedule:
        return "it is empty"
    if "TZ" in schedule:
        return "it must not set TZ; the field timeZone is for that"
    if schedule.startswith("@"):
        if schedule in _MACROS:
            return ""
        if schedule.startswith("@every "):
            return "" if _DURATION.fullmatch(schedule.removeprefix("@every ")) else "no duration follows @every"
        return f"it is not one of {', '.join(_MACROS)}, @every 1h"
    words = schedule.split()
    if len(words) != len(_FIELDS):
        return f"it has {len(words)} fields, not 5 (minute, hour, day, month, weekday)"
    for word, field in zip(words, _FIELDS, strict=True):
        for part in word.split(","):
            if part and (problem := _part_problem(part, field)):
                return f"{field.name} {part!r} {problem}"
    return ""


def _part_problem(part: str, field: _Field) -> str:
    whole, *steps = part.split("/")
    ends = whole.split("-")
    if len(steps) > 1 or len(ends) > 2:
        return "has too many '/' or '-'"
    if ends[0] in ("*", "?"):
        first, last = field.least, field.most
        if len(ends) > 1:
            return ""  # robfig/cron ignores what follows
    else:
        numbers = [_number(end, field) for end in ends]
        if None in numbers:
            return "is no number" + (" or name" if field.names else "")
        first, last = numbers[0] or 0, numbers[-1] or 0
        if steps and len(ends) == 1:
            last = field.most
    if steps:
        step = _number(steps[0], _Field("step", 0, 0, {}))
        if step is None:
            return "has no number as its step"
        if step == 0:
            return "has a step of 0"
    if first < field.least or last > field.most:
        return f"is not between {field.least} and {field.most}"
    return "ends before it begins" if first > last else ""


def _number(text: str, field: _Field) -> int | None:
    if text.lower() in field.names:
        return field.names[text.lower()]
    return int(text) if re.fullmatch(r"\+?[0-9]+", text) else None
