"""Durations and schedules of custom resources, which their CRDs take as any text.

Sources: k8s.io/apimachinery v0.35.4 pkg/apis/meta/v1/duration.go (one object that cannot be decoded fails the whole
list), Go's time.ParseDuration; the table `times`, with a source for each field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from blueprint.catalog.references import walk
from blueprint.catalog.tables import table
from blueprint.check.durations import seconds
from blueprint.check.graph import Graph
from blueprint.check.rules.say import say
from blueprint.check.shapes import placeholder
from blueprint.cron import schedule_problem
from blueprint.finding import Finding

_LONG = re.compile(r"(\d+)\s*(d|days?|w|weeks?|y|years?|mo|months?)")
_WORDS = re.compile(r"(\d+)\s*(s|sec|seconds?|m|min|minutes?|h|hours?)")
_HOURS = {"d": 24, "w": 168, "m": 720, "y": 8760}
_MORE = re.compile(r"[LW#]")
"""What the richer form of schedules knows beside."""


def unreadable(graph: Graph) -> Iterator[Finding]:
    """SCH116: a duration or schedule that whoever reads the object cannot parse."""
    for row in table("times")["fields"]:
        for manifest in graph.kind(*row["kinds"]):
            for steps in row["paths"]:
                for path, value, _ in walk(manifest.body, tuple(steps.split("."))):
                    if not isinstance(value, str) or placeholder(value):
                        continue
                    problem, fix = _duration(value) if row["form"] == "duration" else _schedule(value, row)
                    if problem:
                        message = f"{value!r} is {problem}: {row['then']}"
                        yield say("SCH116", manifest, message, path, fix)


def _duration(value: str) -> tuple[str, str]:
    if seconds(value) is not None:
        return "", ""
    if found := _LONG.fullmatch(value.strip()):
        hours = int(found[1]) * _HOURS[found[2][0]]
        return "no duration of Go, whose longest unit is the hour", f"write {hours}h"
    if found := _WORDS.fullmatch(value.strip()):
        return "no duration of Go", f"write {found[1]}{found[2][0]}"
    return "no duration", "a number and a unit: 30m, 720h"


def _schedule(value: str, row: Mapping[str, Any]) -> tuple[str, str]:
    plain = value.partition(" ")[2] if "TZ=" in value.partition(" ")[0] else value
    if row["form"] == "cronexpr" and (_MORE.search(plain) or len(plain.split()) != 5):
        return "", ""
    problem = schedule_problem(plain)
    if not problem and row.get("names") is False and plain.startswith("@"):
        problem = "names such as @daily are not known here"
    return (f"no schedule ({problem})", 'five fields, as "17 2 * * *"') if problem else ("", "")


RULES = (unreadable,)
TREE = ()
