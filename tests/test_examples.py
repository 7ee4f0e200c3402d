"""Every example platform is green at once: rendered without a finding, and checked without an error or a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from blueprint.finding import Severity
from blueprint.new import copy_example, examples
from blueprint.pipeline import check_paths, render_platform
from blueprint.spec.load import load


@pytest.mark.parametrize("example", sorted(examples()))
def test_an_example_is_green_at_once(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_example(example, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    rendering = render_platform(Path("mine"), Path("mine/rendered"))
    assert rendering.report.findings == []
    found = check_paths(["mine/rendered"]).report.findings
    assert [finding for finding in found if finding.severity is not Severity.NOTE] == []


@pytest.mark.parametrize(
    ("example", "gpus", "teams", "clusters"),
    [("minimal", 8, 1, 1), ("small", 8, 1, 1), ("standard", 64, 3, 1), ("mig", 24, 2, 1), ("fleet", 168, 2, 3)],
)
def test_an_example_is_as_large_as_it_says(example: str, gpus: int, teams: int, clusters: int) -> None:
    platform = load(examples()[example]).platform
    pools = [pool for cluster in platform.clusters for pool in cluster.model.spec.node_pools if pool.gpus]
    assert sum(pool.nodes * pool.gpus.count for pool in pools if pool.gpus) == gpus
    assert (len(platform.teams), len(platform.clusters)) == (teams, clusters)
