"""An outcome for a person: a table of teams, a bar of characters for each flavor, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blueprint.admission.amounts import shown
from blueprint.finding import Severity
from blueprint.report.totals import counted
from blueprint.simulate import Simulation
from blueprint.simulate.measure import Gauge
from blueprint.simulate.run import Outcome
from blueprint.simulate.summary import Team, gangs_kept, series, share, teams

_BLOCKS = " ▁▂▃▄▅▆▇█"
_MOST_ROWS = 12


def text(found: Simulation, width: int = 100) -> str:
    """The simulation as lines no wider than the terminal; ends with a newline."""
    return "\n".join(_lines(found, width)) + "\n"


def _lines(found: Simulation, width: int) -> Iterator[str]:
    for finding in found.report.findings:
        place = f"{finding.source}: " if finding.source else ""
        fix = f" ({finding.fix})" if finding.fix else ""
        yield f"{place}{finding.severity} {finding.code} {finding.message}{fix}"
    outcome = found.outcome
    if outcome is None:
        errors = sum(finding.severity is Severity.ERROR for finding in found.report.findings)
        yield f"not simulated: {errors} error{'s' * (errors != 1)} in the arrivals"
        return
    finished = sum(run.ended is not None for run in outcome.runs)
    waiting = sum(run.started is None for run in outcome.runs)
    yield (
        f"on this inventory (Kueue {found.kueue}): {counted(len(outcome.runs), 'workload')} in {span(outcome.end)}; "
        f"{finished:,} finished, {waiting:,} never started"
    )
    yield ""
    yield from _table(teams(outcome))
    yield ""
    yield from _bars(outcome, max(20, min(60, width - 60)))
    yield from _rest(outcome)


def _table(found: Sequence[Team]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        ("team", "jobs", "started", "P50 wait", "P95 wait", "longest", "preempted", "work lost")
    ]
    for team in found:
        waits = (span(value) for value in (team.p50, team.p95, team.longest))
        rows.append((team.name, f"{team.jobs:,}", f"{team.started:,}", *waits, f"{team.preempted:,}", span(team.lost)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join((row[0].ljust(len(first)), *others))


def _bars(outcome: Outcome, width: int) -> Iterator[str]:
    used = [gauge for gauge in outcome.measures.gauges.values() if gauge.peak]
    names = [f"{gauge.key.flavor} {gauge.key.resource}" for gauge in used]
    waiting = {team: steps for team, steps in outcome.measures.waiting_steps.items() if any(n for _, n in steps)}
    names += [f"waiting {team}" for team in waiting]
    column = max((len(name) for name in names), default=0)
    for gauge, name in zip(used, names, strict=False):
        line = bar(series(gauge.used_steps, outcome.end, width), gauge.most)
        yield f"{name:<{column}} {line} {_of(gauge, outcome.end)}"
    for team, steps in sorted(waiting.items()):
        most = max(number for _, number in steps)
        line = bar(series(steps, outcome.end, width), most)
        yield f"{f'waiting {team}':<{column}} {line} at most {most:,}"
    if names:
        yield f"{'':<{column}} 0{span(outcome.end):>{width - 1}}"


def bar(values: Sequence[float], most: float) -> str:
    """A row of blocks; something is never drawn as nothing."""
    last = len(_BLOCKS) - 1
    return "".join(
        _BLOCKS[0] if value <= 0 or most <= 0 else _BLOCKS[max(1, min(last, round(value / most * last)))]
        for value in values
    )


def _of(gauge: Gauge, end: float) -> str:
    name = gauge.key.resource
    used = share(gauge.used_seconds, gauge.most * end) or 0
    words = f"{used:.0%} of {shown(name, gauge.most)}, peak {shown(name, gauge.peak)}"
    if gauge.loose_seconds:
        words += f", {gauge.loose_seconds / gauge.unit / 3600:,.1f} h idle in pieces"
    return words


def _rest(outcome: Outcome) -> Iterator[str]:
    waited = sorted(outcome.measures.waited.items(), key=lambda item: (-item[1], item[0]))
    if waited:
        yield ""
    for (team, holder), seconds in waited[:_MOST_ROWS]:
        whom = "jobs of its own" if team == holder else f"jobs of {holder}"
        yield f"{team} waits for {whom}: {span(seconds)} in all"
    if outcome.preemptions:
        first = outcome.preemptions[0]
        yield ""
        yield (
            f"{len(outcome.preemptions):,} preemptions, the first after {span(first.at)}: "
            f"{first.run.key} by {first.by.key} ({first.why})"
        )
    if outcome.restless:
        yield "workloads preempt each other in turn without an end, as they would in a cluster"
    kept = "kept in every admission" if gangs_kept(outcome) else "not kept: a job ran with part of its pods"
    yield f"all or nothing: {kept}"


def span(seconds: float | None) -> str:
    """`45s`, `12m`, `3h10m`, `2d4h`: the two largest units; `ever` where there is no end."""
    if seconds is None:
        return "ever"
    whole = round(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        number, whole = divmod(whole, length)
        if number and len(parts) < 2:
            parts.append(f"{number}{unit}")
        elif parts:
            break
    return "".join(parts) or "0s"
