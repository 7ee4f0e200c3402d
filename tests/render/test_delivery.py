"""Delivery: projects that allow what they hold, Applications in waves, and the root."""

from __future__ import annotations

from pathlib import Path

import pytest

from blueprint.catalog.schemas import SchemaPack
from tests.render.worlds import PLAIN, World, cluster, job, team

QUOTA = "[{cluster: here, pool: gpu, gpus: 8}]"


def world(folder: Path, **spec: str) -> World:
    return World(folder, cluster(f"[{PLAIN}]", **spec), team(QUOTA), job(pool="gpu"))


def test_the_project_allows_exactly_what_is_rendered(tmp_path: Path) -> None:
    rendered, pack = world(tmp_path), SchemaPack.shipped()
    project = rendered.get("AppProject", "ai-platform")["spec"]
    cluster_wide = {(row["group"], row["kind"]) for row in project["clusterResourceWhitelist"]}
    namespaced = {(row["group"], row["kind"]) for row in project["namespaceResourceWhitelist"]}
    held = [file.manifest for file in rendered.cluster.files if file.application not in ("argocd", "bootstrap")]
    for manifest in held:
        kind = pack.kind(manifest.api_version, manifest.kind)
        assert kind is not None
        key = (manifest.ref.group, manifest.ref.kind)
        assert key in (namespaced if kind.namespaced else cluster_wide)
    assert len(cluster_wide) + len(namespaced) == len({(m.ref.group, m.ref.kind) for m in held})
    spaces = {m.ref.namespace for m in held if m.ref.namespace}
    assert {row["namespace"] for row in project["destinations"]} == spaces | {""}
    assert ("", "Secret") not in namespaced


def test_applications_point_at_their_folder_and_come_in_waves(tmp_path: Path) -> None:
    rendered = world(tmp_path)
    applications = rendered.all("Application")
    folders = {file.path.split("/")[1] for file in rendered.cluster.files}
    for name, body in applications.items():
        assert body["spec"]["source"]["path"].startswith("rendered/here/")
        assert "directory" not in body["spec"]["source"], (
            "the controller takes its zero value out, the root puts it back"
        )
        [project] = [p for n, p in rendered.all("AppProject").items() if n == body["spec"]["project"]]
        own = body["spec"]["destination"].get("namespace", "")
        assert own in [row["namespace"] for row in project["spec"]["destinations"]], "Argo CD refuses it otherwise"
        assert body["spec"]["source"]["path"].split("/")[2] in folders
        assert "ServerSideApply=true" in body["spec"]["syncPolicy"]["syncOptions"], name

    def wave(name: str) -> int:
        return int(applications[name]["metadata"]["annotations"].get("argocd.argoproj.io/sync-wave", "0"))

    assert wave("queues") < wave("team-alpha") < wave("runs-alpha")
    assert wave("access") < wave("team-alpha")


def test_the_root_may_write_projects_and_applications_only(tmp_path: Path) -> None:
    project = world(tmp_path).get("AppProject", "ai-platform-root")["spec"]
    assert project["clusterResourceWhitelist"] == []
    assert {row["kind"] for row in project["namespaceResourceWhitelist"]} == {"AppProject", "Application", "ConfigMap"}
    assert [row["namespace"] for row in project["destinations"]] == ["argocd"]


@pytest.mark.parametrize("server", [None, "https://here.example.com:6443"])
def test_the_root_may_write_just_the_kinds_in_its_folder(server: str | None, tmp_path: Path) -> None:
    rendered = world(tmp_path, **({"server": server} if server else {})).cluster
    held = {file.manifest.kind for file in rendered.files if file.application == "argocd"}
    [project] = [
        f.manifest.body for f in rendered.files if f.application == "bootstrap" and f.manifest.kind == "AppProject"
    ]
    assert {row["kind"] for row in project["spec"]["namespaceResourceWhitelist"]} == held


def test_one_argocd_for_several_clusters_keeps_names_apart(tmp_path: Path) -> None:
    own = world(tmp_path / "own")
    central = world(tmp_path / "central", server="https://here.example.com:6443")
    assert "queues" in own.all("Application")
    assert "here-queues" in central.all("Application")
    assert "ai-platform-here" in central.all("AppProject")

    def place(rendered: World) -> str:
        return next(f.application for f in rendered.cluster.files if f.manifest.ref.name == "argocd-cm")

    assert place(own) == "argocd"
    assert place(central) == "bootstrap"


def test_argocd_learns_to_judge_applications_and_queues(tmp_path: Path) -> None:
    config = world(tmp_path).get("ConfigMap", "argocd-cm")
    assert "resource.customizations.health.argoproj.io_Application" in config["data"]
    assert "resource.customizations.health.kueue.x-k8s.io_ClusterQueue" in config["data"]
    assert "Prune=false" in config["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]


def test_without_automation_nothing_syncs_by_itself(tmp_path: Path) -> None:
    delivery = (
        "apiVersion: platform.blueprint/v1alpha1\nkind: Delivery\nmetadata: {name: delivery}\n"
        "spec: {repository: {url: https://git.example.com/x.git}, automated: false}\n"
    )
    rendered = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), delivery=delivery)
    assert all("automated" not in body["spec"]["syncPolicy"] for body in rendered.all("Application").values())


SIGNED = """
apiVersion: platform.blueprint/v1alpha1
kind: Delivery
metadata: {name: delivery}
spec:
  repository: {url: https://git.example.com/platform/gitops.git}
  plugin: blueprint-verified
  flux: {secret: committers}
  signingKeys: [0123456789ABCDEF, FEDCBA98765432100123456789ABCDEFFEDCBA98]
"""


def test_signed_commits_are_asked_for_in_every_project(tmp_path: Path) -> None:
    rendered = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), job(pool="gpu"), delivery=SIGNED)
    projects = rendered.all("AppProject")
    assert set(projects) == {"ai-platform", "ai-platform-root"}
    for body in projects.values():
        (policy,) = body["spec"]["sourceIntegrity"]["git"]["policies"]
        assert policy["repos"] == [{"url": "*"}]
        assert policy["gpg"] == {"mode": "strict", "keys": ["0123456789ABCDEF", "89ABCDEFFEDCBA98"]}
    assert "sourceIntegrity" not in world(tmp_path / "plain").get("AppProject", "ai-platform")["spec"]


def test_flux_gets_a_source_that_verifies(tmp_path: Path) -> None:
    rendered = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), job(pool="gpu"), delivery=SIGNED)
    source = rendered.get("GitRepository", "ai-platform")
    assert source["metadata"]["namespace"] == "flux-system"
    assert source["spec"]["verify"] == {"mode": "HEAD", "secretRef": {"name": "committers"}}
    assert "GitRepository" not in {file.manifest.kind for file in world(tmp_path / "plain").cluster.files}


def test_a_plugin_takes_the_place_of_plain_folders(tmp_path: Path) -> None:
    rendered = World(tmp_path, cluster(f"[{PLAIN}]"), team(QUOTA), job(pool="gpu"), delivery=SIGNED)
    for body in rendered.all("Application").values():
        assert body["spec"]["source"]["plugin"] == {"name": "blueprint-verified"}
        assert "directory" not in body["spec"]["source"]
