"""A real Argo CD, whose repository server asks our plugin: what was signed is compared and synced, what was altered is
refused, and nothing of it is written.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from blueprint.attest import sign as signing
from blueprint.conform.argo import Argo, said
from blueprint.conform.client import Target
from blueprint.conform.component import Component, Ground
from blueprint.conform.components.argocd import CONTROLLER, REDIS, REPOSITORY, base, environment
from blueprint.conform.local import LocalCluster
from blueprint.conform.repository import Repository
from blueprint.conform.stage import Record, Stage
from blueprint.conform.tree import Tree
from blueprint.runtime.plugin import CONFIG
from tests.attest.conftest import office, signed_tree  # noqa: F401 - fixtures
from tests.attest.world import MALLORY, RENDERER, Office, rendered
from tests.conformance.conftest import program

SPACE = "chat"
PATH = "rendered/prod-a/chat"
NAME = "blueprint-verified"
SECONDS = 120


def _plugins(ground: Ground) -> dict[str, str]:
    """The sidecar's environment: the socket lies where the repository server looks, Python is this one."""
    shared = ground.folder.parent / REPOSITORY.name / "plugins"
    mine = environment(ground.folder, "argocd-cmp-server") | {"ARGOCD_PLUGINSOCKFILEPATH": str(shared)}
    python = f"{Path(sys.executable).parent}{os.pathsep}{mine['PATH']}"
    return mine | {"PATH": python, CONFIG: str(ground.folder / "blueprint.yaml")}


def _await_socket(cluster: LocalCluster) -> None:
    """The plugin's server has no port to ask: its socket appears when it listens."""
    socket = cluster.ground(REPOSITORY.name).folder / "plugins" / f"{NAME}.sock"
    deadline = time.monotonic() + SECONDS
    while not socket.exists():
        assert cluster.runs("argocd-cmp-server"), cluster.log("argocd-cmp-server").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.1)


class World:
    """A cluster with Argo CD, the plugin beside its repository server, and a repository with a signed tree."""

    def __init__(self, cluster: LocalCluster, argo: Argo, signed: Path, store: Office) -> None:
        self.cluster, self.argo, self.tree, self.office = cluster, argo, signed, store

    def commit(self, message: str) -> None:
        """Push the tree as it lies on the disk, and let Argo CD look."""
        found = {f"rendered/{f.relative_to(self.tree).as_posix()}": f for f in self.tree.rglob("*") if f.is_file()}
        self.argo.repository.commit(message, {path: file.read_text() for path, file in found.items()})

    def look(self) -> dict[str, Any]:
        return self.argo.refresh("chat", hard=True)


@pytest.fixture
def world(tmp_path: Path, signed_tree: Path, office: Office) -> Iterator[World]:  # noqa: F811
    for name in ("argocd", "redis", "kube-controller-manager", "kube-scheduler", "kwok"):
        program(name)
    copied = tmp_path / "rendered"
    shutil.copytree(signed_tree, copied, symlinks=True)
    definition = (resources.files("blueprint.runtime") / "data/plugin.yaml").read_text()
    trusted = tmp_path / "root.json"
    trusted.write_text(json.dumps(office.store.trusted_root()))
    config = {"trustedRoot": str(trusted), "signers": [{"subject": RENDERER, "issuer": office.store.issuer}]}

    def prepare(ground: Ground) -> None:
        (ground.folder / "plugin.yaml").write_text(definition)
        (ground.folder / "blueprint.yaml").write_text(json.dumps(config))

    server = Component(
        name="argocd-cmp-server",
        program="argocd",
        prepare=prepare,
        environment=_plugins,
        arguments=lambda g: [f"--config-dir-path={g.folder}", "--logformat=text"],
        after=(REPOSITORY.name,),
    )
    parts = (REDIS, REPOSITORY, server, CONTROLLER)
    with LocalCluster([], later=parts) as cluster:
        cluster.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}])
        for part in (REDIS, REPOSITORY, server):
            cluster.start(part)
        _await_socket(cluster)
        for body in base():
            assert cluster.client.apply(body).ok
        cluster.start(CONTROLLER)
        stage = Stage("plugin", Tree("prod-a", {}, (), {}), cluster, Record(), tmp_path)
        found = World(cluster, Argo(stage, Repository(tmp_path), SECONDS), copied, office)
        found.commit("a signed tree")
        found.argo.apply("chat", PATH, SPACE, plugin=NAME)
        yield found


def _refused(body: dict[str, Any], code: str) -> None:
    assert body["status"]["sync"]["status"] == "Unknown", said(body)
    assert "ComparisonError" in said(body)
    assert code in said(body)


def test_argo_cd_takes_manifests_of_a_signed_tree_only(world: World) -> None:
    """One run of Argo CD for all: it is a minute to start."""
    definition = yaml.safe_load((resources.files("blueprint.runtime") / "data/plugin.yaml").read_text())
    assert definition["metadata"]["name"] == NAME
    body = world.look()
    assert body["status"]["sync"]["status"] == "OutOfSync", said(body)
    assert sorted(row["kind"] for row in body["status"]["resources"]) == ["Deployment", "Service"]

    altered = world.tree / "prod-a/queues/clusterqueue-a.yaml"
    kept = altered.read_text()
    altered.write_text(kept + "spec: {}\n")
    world.commit("altered elsewhere in the tree")
    _refused(world.look(), "SIG201")
    synced = world.argo.sync("chat")
    assert synced["status"]["operationState"]["phase"] in ("Failed", "Error"), said(synced)
    assert "SIG201" in said(synced)
    for kind, version in (("Deployment", "apps/v1"), ("Service", "v1")):
        assert world.cluster.client.get(Target(version, kind, SPACE, "chat")).status == 404

    altered.write_text(kept)
    (world.tree / "prod-a/chat/zz.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n")
    world.commit("one file more")
    _refused(world.look(), "SIG203")

    (world.tree / "prod-a/chat/zz.yaml").unlink()
    world.commit("as it was")
    assert world.look()["status"]["sync"]["status"] == "OutOfSync"

    signing.write(world.tree, world.office.both(rendered(world.tree, sequence=8), MALLORY))
    world.commit("signed by somebody else")
    _refused(world.look(), "SIG104")
