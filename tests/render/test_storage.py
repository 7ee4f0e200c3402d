"""Storage: claims of a team against the quota of its namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.render.worlds import PLAIN, World, cluster, job, team


@pytest.mark.parametrize(("storage", "exceeds"), [("3Ti", True), ("4Ti", False), ("4095Gi", True), ("5Ti", False)])
def test_claims_fit_the_quota(storage: str, exceeds: bool, tmp_path: Path) -> None:
    run = job(
        pool="gpu",
        datasets="[{name: data, claim: data, path: /data, size: 3Ti}]",
        checkpoint="{size: 1Ti, path: /save}",
    )
    owner = team("[{cluster: here, pool: gpu, gpus: 4}]", storage=storage)
    world = World(tmp_path, cluster(f"[{PLAIN}]"), owner, run)
    found = [finding for finding in world.findings if finding.code == "STO101"]
    assert bool(found) is exceeds
    assert all("4Ti" in finding.fix for finding in found)


def test_claims_of_others_do_not_count(tmp_path: Path) -> None:
    data = "[{name: data, claim: data, path: /data, size: 3Ti}]"
    quota = "[{cluster: here, pool: gpu, gpus: 4}]"
    world = World(
        tmp_path,
        cluster(f"[{PLAIN}]"),
        team(quota, storage="4Ti"),
        team(quota, name="beta", storage="4Ti"),
        job("one", pool="gpu", datasets=data),
        job("two", pool="gpu", datasets=data, team="beta"),
    )
    assert not world.findings
