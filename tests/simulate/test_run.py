"""The clock over small clusters: waiting, preemption, checkpoints, pieces of nodes, and who waits for whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import orjson
import pytest
import yaml

from blueprint.errors import UsageError
from blueprint.simulate import Simulation, simulate_paths
from blueprint.simulate.picture import svg
from blueprint.simulate.run import Outcome
from blueprint.simulate.summary import document, percentile, series, teams
from blueprint.simulate.text import bar, span, text
from tests.admission.writing import GPU, Body, flavor, gpus, kueue, local, node, pods, workload

LOWER = {"withinClusterQueue": "LowerPriority"}


def simulated(tmp_path: Path, rows: list[Body], *objects: Body, until: float | None = None) -> Simulation:
    """A simulation on these objects; a flavor `f` and a LocalQueue for each ClusterQueue come of themselves."""
    queues = [body["metadata"]["name"] for body in objects if body["kind"] == "ClusterQueue"]
    flavors = [] if any(body["kind"] == "ResourceFlavor" for body in objects) else [flavor("f")]
    bodies = [*flavors, *objects, *(local(name, name) for name in queues)]
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(bodies))
    (tmp_path / "arrivals.json").write_bytes(orjson.dumps(rows))
    return simulate_paths([tmp_path / "objects.yaml"], tmp_path / "arrivals.json", until=until)


def came(tmp_path: Path, rows: list[Body], *objects: Body, until: float | None = None) -> Outcome:
    """The outcome of one without findings."""
    found = simulated(tmp_path, rows, *objects, until=until)
    assert found.outcome is not None, found.report.findings
    return found.outcome


def row(queue: str, gpu: int, count: int = 1, **more: Any) -> Body:
    """Workloads of one pod in a LocalQueue of namespace `team`."""
    return {"queue": queue, "namespace": "team", "pods": 1, "requests": {GPU: gpu}, "count": count, **more}


def times(outcome: Outcome) -> list[tuple[float, float | None, float | None]]:
    """Arrival, start and end of every workload."""
    return [(run.arrived, run.started, run.ended) for run in outcome.runs]


def test_they_wait_for_each_other(tmp_path: Path) -> None:
    outcome = came(tmp_path, [row("a", 4, 3, duration=100, every=10)], gpus("a", 4))
    assert times(outcome) == [(0, 0, 100), (10, 100, 200), (20, 200, 300)]
    (team,) = teams(outcome)
    assert (team.p50, team.p95, team.longest) == (90, 180, 180)
    (gauge,) = outcome.measures.gauges.values()
    assert (gauge.used_seconds, gauge.peak, gauge.idle_seconds) == (1200, 4, 0)
    assert dict(outcome.measures.waited) == {("team", "team"): pytest.approx(270)}


def test_a_small_one_goes_first_unless_the_queue_is_strict(tmp_path: Path) -> None:
    rows = [row("a", 3, duration=100), row("a", 4, at=1, duration=100), row("a", 1, at=2, duration=10)]
    assert times(came(tmp_path, rows, gpus("a", 4)))[2] == (2, 2, 12)
    assert times(came(tmp_path, rows, gpus("a", 4, queueingStrategy="StrictFIFO")))[2] == (2, 200, 210)


@pytest.mark.parametrize(("checkpoint", "end", "lost"), [(None, 160, 50), (20, 120, 10), (60, 160, 50)])
def test_a_preempted_one_goes_on_from_its_checkpoint(
    tmp_path: Path, checkpoint: int | None, end: int, lost: int
) -> None:
    low = row("a", 4, duration=100) | ({"checkpoint": checkpoint} if checkpoint else {})
    outcome = came(tmp_path, [low, row("a", 4, at=50, duration=10, priority=10)], gpus("a", 4, preemption=LOWER))
    assert times(outcome) == [(0, 0, end), (50, 50, 60)]
    assert outcome.runs[0].lost == lost
    (preemption,) = outcome.preemptions
    assert (preemption.at, preemption.run, preemption.by) == (50, outcome.runs[0], outcome.runs[1])


def test_without_a_duration_it_runs_to_the_end(tmp_path: Path) -> None:
    outcome = came(tmp_path, [row("a", 2), row("a", 4, duration=10)], gpus("a", 4), until=1000)
    assert times(outcome) == [(0, 0, None), (0, None, None)]
    (team,) = teams(outcome)
    assert (team.p50, team.p95, outcome.end) == (0, None, 1000)


def test_the_limit_of_a_job_ends_it(tmp_path: Path) -> None:
    body = workload(pods(requests={GPU: 1}), queue="a", name="w")
    body["metadata"]["labels"] = {"kueue.x-k8s.io/max-exec-time-seconds": "30"}
    rows = [{"job": "Workload/w"}, {"job": "Workload/w", "duration": 100}, {"job": "Workload/w", "duration": 10}]
    assert [end for _, _, end in times(came(tmp_path, rows, gpus("a", 4), body))] == [30, 30, 10]


def test_idle_pieces_are_told(tmp_path: Path) -> None:
    tree = [
        flavor("f", nodeLabels={"p": "f"}, topologyName="t"),
        kueue("Topology", "t", {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}),
        *(node(name, {"p": "f"}, {GPU: 4}) for name in ("n1", "n2")),
    ]
    outcome = came(tmp_path, [row("a", 3, 2, duration=100), row("a", 2, at=10, duration=10)], *tree, gpus("a", 8))
    assert times(outcome)[2] == (10, 100, 110)
    (gauge,) = outcome.measures.gauges.values()
    assert (gauge.nodes, gauge.loose_seconds) == (8, 2 * 90), "two GPUs lie idle, one on each node"


def test_whose_jobs_are_in_the_way(tmp_path: Path) -> None:
    queues = [gpus("a", 4, cohort="c"), gpus("b", 4, cohort="c"), local("b2", "b", "other")]
    rows = [row("b2", 8, duration=100) | {"namespace": "other"}, row("a", 2, at=20, duration=10)]
    outcome = came(tmp_path, rows, *queues)
    assert dict(outcome.measures.waited) == {("team", "other"): pytest.approx(80)}


def test_jobs_that_are_not_fit_are_findings(tmp_path: Path) -> None:
    rows = [{"job": "Job/absent"}, row("nowhere", 1)]
    found = simulated(tmp_path, rows, gpus("a", 4))
    assert [finding.code for finding in found.report.findings] == ["SIM201", "SIM202"]
    assert found.outcome is None
    assert document(found)["simulation"] is None
    assert "not simulated: 2 errors" in text(found)


def test_what_never_fits_is_told_and_waits(tmp_path: Path) -> None:
    found = simulated(tmp_path, [row("a", 8, duration=1), row("a", 1, duration=1)], gpus("a", 4))
    assert [(f.code, f.severity.value) for f in found.report.findings] == [("SIM203", "warning")]
    assert found.outcome is not None
    assert times(found.outcome) == [(0, None, None), (0, 0, 1)]


def test_one_cluster_at_a_time(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "q.yaml").write_text(yaml.safe_dump(gpus("a", 4)))
    (tmp_path / "arrivals.yaml").write_text("- {job: Job/a}\n")
    with pytest.raises(UsageError, match="2 times"):
        simulate_paths([tmp_path / "one", tmp_path / "two"], tmp_path / "arrivals.yaml")
    with pytest.raises(UsageError, match="no ClusterQueue"):
        simulate_paths([tmp_path / "arrivals.yaml"], tmp_path / "arrivals.yaml")


def test_the_same_twice_in_words_numbers_and_a_picture(tmp_path: Path) -> None:
    rows = [row("a", 3, 20, duration="10m", every="1m"), row("a", 1, 5, duration="1h", priority=5)]
    first, second = (simulated(tmp_path, rows, gpus("a", 4, preemption=LOWER)) for _ in "12")
    assert document(first) == document(second)
    assert text(first) == text(second)
    picture = ElementTree.fromstring(svg(first))
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert svg(first) == svg(second)
    assert "on this inventory" in text(first)
    assert "will" not in text(first).split()


def test_figures() -> None:
    assert series([(0, 2), (5, 0), (15, 4)], 20, 4) == [2, 0, 0, 4]
    assert series([(0, 1), (7, 3)], 10, 2) == [1, pytest.approx(2.2)]
    assert [percentile(range(1, 101), part) for part in (0.5, 0.95, 1)] == [50, 95, 100]
    assert percentile([1, float("inf")], 0.95) is None
    assert bar([0, 0.01, 4, 8], 8) == " ▁▄█"
    assert [span(value) for value in (0, 59, 3600, 93784, None)] == ["0s", "59s", "1h", "1d2h", "ever"]
