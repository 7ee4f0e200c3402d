"""An outcome as figures, and as the JSON document (version 1: within it, fields are only added).

Times are seconds after the start. Waits are from arrival to the first admission; a workload that still waits at the end
counts as one that waits for longer than any other, so a percentile that falls on one is null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from blueprint.admission.amounts import shown
from blueprint.finding import Finding
from blueprint.simulate import Simulation
from blueprint.simulate.measure import Gauge, Steps
from blueprint.simulate.run import Outcome, Run

VERSION = 1
POINTS = 240
"""How many points a series has; each is the mean over its part of the time."""


@dataclass(frozen=True, slots=True)
class Team:
    """Waits of one team in seconds; None where so many still wait that the percentile is none."""

    name: str
    jobs: int
    started: int
    finished: int
    p50: float | None
    p95: float | None
    longest: float | None
    preempted: int
    lost: float


def teams(outcome: Outcome) -> list[Team]:
    """Every team, by name."""
    by_team: dict[str, list[Run]] = {}
    for run in outcome.runs:
        by_team.setdefault(run.team, []).append(run)
    return [_team(name, runs) for name, runs in sorted(by_team.items())]


def _team(name: str, runs: Sequence[Run]) -> Team:
    waits = [math.inf if run.started is None else run.started - run.arrived for run in runs]
    return Team(
        name,
        jobs=len(runs),
        started=sum(run.started is not None for run in runs),
        finished=sum(run.ended is not None for run in runs),
        p50=percentile(waits, 0.5),
        p95=percentile(waits, 0.95),
        longest=percentile(waits, 1),
        preempted=sum(run.preemptions for run in runs),
        lost=sum(run.lost for run in runs),
    )


def percentile(values: Iterable[float], part: float) -> float | None:
    """The smallest value that so large a part of all does not exceed (the nearest rank); None for none, or infinity."""
    ordered = sorted(values)
    found = ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else math.inf
    return None if math.isinf(found) else found


def series(steps: Steps, end: float, points: int = POINTS) -> list[float]:
    """The mean of a stepwise value over each of so many equal parts of the time."""
    if not end:
        return []
    width = end / points
    sums = [0.0] * points
    for index, (begin, value) in enumerate(steps):
        stop = steps[index + 1][0] if index + 1 < len(steps) else end
        for part in range(int(begin / width), min(points, int(stop / width) + 1) if value else 0):
            sums[part] += value * max(0.0, min(stop, (part + 1) * width) - max(begin, part * width))
    return [total / width for total in sums]


def gangs_kept(outcome: Outcome) -> bool:
    """Whether every admission gave all its pods, or as many as the job itself allows to be left."""
    return outcome.measures.partial == 0


def document(found: Simulation) -> dict[str, Any]:
    """The simulation as plain JSON values; `simulation` is null where the arrivals are not fit for one."""
    return {
        "schema": VERSION,
        "kueueVersion": found.kueue,
        "words": "on this inventory, with these jobs and durations",
        "findings": [_finding(finding) for finding in found.report.findings],
        "simulation": None if found.outcome is None else _outcome(found.outcome),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    source = finding.source
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "source": {"file": source.file, "line": source.line} if source else None,
        "fix": finding.fix,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    measures = outcome.measures
    return {
        "end": _rounded(outcome.end),
        "endless": outcome.restless,
        "allOrNothing": gangs_kept(outcome),
        "teams": [
            {
                "team": team.name,
                "jobs": team.jobs,
                "started": team.started,
                "finished": team.finished,
                "waiting": team.jobs - team.started,
                "waitSeconds": {
                    "p50": _rounded(team.p50),
                    "p95": _rounded(team.p95),
                    "longest": _rounded(team.longest),
                },
                "preemptions": team.preempted,
                "lostSeconds": _rounded(team.lost),
            }
            for team in teams(outcome)
        ],
        "flavors": [_gauge(gauge, outcome.end) for gauge in measures.gauges.values()],
        "waiting": {
            team: [_rounded(value) for value in series(steps, outcome.end)]
            for team, steps in sorted(measures.waiting_steps.items())
        },
        "waitsFor": [
            {"team": team, "holder": holder, "seconds": _rounded(seconds)}
            for (team, holder), seconds in sorted(measures.waited.items(), key=lambda item: (-item[1], item[0]))
        ],
        "preemptions": [
            {"at": _rounded(each.at), "job": each.run.key, "by": each.by.key, "reason": each.why}
            for each in outcome.preemptions
        ],
        "jobs": [
            {
                "key": run.key,
                "job": run.stream.name,
                "team": run.team,
                "row": {"file": run.stream.source.file, "line": run.stream.source.line},
                "arrived": _rounded(run.arrived),
                "started": _rounded(run.started),
                "ended": _rounded(run.ended),
                "preemptions": run.preemptions,
                "never": run.stream.shape.never or None,
            }
            for run in outcome.runs
        ],
    }


def _gauge(gauge: Gauge, end: float) -> dict[str, Any]:
    name = gauge.key.resource
    return {
        "flavor": gauge.key.flavor,
        "resource": name,
        "quota": shown(name, gauge.quota),
        "nodes": None if gauge.nodes is None else shown(name, gauge.nodes),
        "peak": shown(name, gauge.peak),
        "utilisation": share(gauge.used_seconds, gauge.most * end),
        "uncombinable": share(gauge.loose_seconds, gauge.most * end),
        "idleHours": _rounded(gauge.idle_seconds / gauge.unit / 3600),
        "uncombinableHours": _rounded(gauge.loose_seconds / gauge.unit / 3600),
        "step": _rounded(end / POINTS),
        "used": [_rounded(value / gauge.unit) for value in series(gauge.used_steps, end)],
        "idleInPieces": [_rounded(value / gauge.unit) for value in series(gauge.loose_steps, end)],
    }


def share(part: float, whole: float) -> float | None:
    """A part between 0 and 1 with four digits, None of nothing."""
    return round(part / whole, 4) if whole else None


def _rounded(value: float | None) -> float | int | None:
    if value is None:
        return None
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded
