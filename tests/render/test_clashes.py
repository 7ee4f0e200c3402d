"""Applications of several clusters in one Argo CD."""

from __future__ import annotations

from pathlib import Path

from blueprint.catalog.schemas import SchemaPack
from blueprint.finding import Finding
from blueprint.render.platform import clashes, render
from blueprint.render.templates import Templates
from blueprint.spec.load import load
from tests.render.worlds import DELIVERY, PLAIN, cluster, team


def _clashes(folder: Path, *servers: str) -> list[Finding]:
    """What cluster `a` with team `team-b` and cluster `a-team` with team `b` have in common."""
    rows = zip(("a", "a-team"), ("team-b", "b"), servers, strict=True)
    texts = [DELIVERY]
    for name, owner, server in rows:
        texts.append(cluster(f"[{PLAIN}]", server=server).replace("name: here", f"name: {name}"))
        texts.append(team(f"[{{cluster: {name}, pool: gpu, gpus: 2}}]", owner))
    (folder / "clusters").mkdir()
    (folder / "clusters/all.yaml").write_text("\n---\n".join(texts))
    loaded = load(folder)
    assert not loaded.findings
    pack = SchemaPack.shipped()
    rendered = [render(loaded.platform, each, Templates(), pack) for each in loaded.platform.clusters]
    return list(clashes(rendered, loaded.platform))


def test_two_clusters_may_not_make_one_application(tmp_path: Path) -> None:
    [finding] = _clashes(tmp_path, "https://a.example.com", "https://b.example.com")
    assert finding.code == "REF104"
    assert str(finding.object) == "Application.argoproj.io argocd/a-team-team-b"
    assert "belong to a and to a-team" in finding.message


def test_clusters_with_an_argo_cd_of_their_own_may_use_the_same_names(tmp_path: Path) -> None:
    own = "https://kubernetes.default.svc"
    assert not _clashes(tmp_path, own, own)
