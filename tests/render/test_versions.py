"""Versions: another minor of a component is said, a patch is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.render.worlds import PLAIN, World, cluster, team

QUOTA = team("[{cluster: here, pool: gpu, gpus: 8}]")


@pytest.mark.parametrize(
    ("components", "codes"),
    [
        ("{kueue: 0.17.0}", []),
        ("{kueue: 0.17.8}", []),
        ("{kueue: 0.19.2}", ["VER101"]),
        ("{kueue: 0.19.2, lws: 0.10.0}", ["VER101", "VER101"]),
        ("{velero: null}", []),
        ("{kubernetes: 1.20.0}", ["VER102"]),
    ],
)
def test_versions(components: str, codes: list[str], tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]", components=components), QUOTA)
    found = [finding for finding in world.findings if finding.code.startswith("VER")]
    assert sorted({f.code for f in found}) == sorted(set(codes))
    if codes and codes[0] == "VER101":
        assert len(found) == len(codes)
        assert all(f.source and f.source.line > 0 for f in found)
        assert not any(f.fails for f in found)
