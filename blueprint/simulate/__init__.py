"""The verb `simulate`: a stream of jobs through Kueue's decision, on the inventory that stands among the objects.

It says what the scheduler does with these jobs on this inventory, if each of them runs as long as the file says. It
does not say when jobs will start: nodes fail, images are pulled, people submit other jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blueprint.admission.queues import GROUP
from blueprint.admission.settings import asked_for
from blueprint.admission.state import idle
from blueprint.admission.world import world
from blueprint.check.read import Reading, read
from blueprint.errors import UsageError
from blueprint.finding import Report
from blueprint.simulate.arrivals import load
from blueprint.simulate.run import Outcome, simulate
from blueprint.simulate.stream import Reader

__all__ = ["Simulation", "simulate_paths"]


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came of it; `outcome` is None where the arrivals are not fit to be simulated (see the report)."""

    report: Report
    kueue: str
    outcome: Outcome | None


def simulate_paths(
    paths: Sequence[Path | str], arrivals: Path, *, kueue: str = "", until: float | None = None
) -> Simulation:
    """Simulate the arrivals of a file on the queues, flavors and nodes below the paths; `until` is in seconds.

    Raises UsageError where there are no queues, or those of several clusters, or no such version of Kueue.
    """
    kueue = asked_for(kueue)
    reading = read(paths)
    _one_cluster(reading)
    found = world(reading.manifests, reading.aside, kueue)
    rows, findings = load(arrivals)
    if findings:
        return Simulation(Report.of(findings), found.settings.version, None)
    state = idle(found)
    reader = Reader(state)
    streams = reader.streams(rows)
    report = Report.of(reader.findings)
    outcome = None if report.failed else simulate(state, streams, until)
    return Simulation(report, found.settings.version, outcome)


def _one_cluster(reading: Reading) -> None:
    places: dict[str, list[str]] = {}
    for manifest in reading.manifests:
        if manifest.ref.group == GROUP and manifest.kind == "ClusterQueue":
            places.setdefault(manifest.ref.name, []).append(manifest.source.file)
    if not places:
        raise UsageError("there is no ClusterQueue among the objects", hint="name the folder of one rendered cluster")
    twice = next((files for files in places.values() if len(files) > 1), None)
    if twice is not None:
        raise UsageError(
            f"a ClusterQueue is there {len(twice)} times: {', '.join(twice[:3])}", hint="name the folder of one cluster"
        )
