"""Rules about Kueue on what works: the reference platform, and the manifests that projects ship."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check.graph import Graph
from blueprint.check.kueue import kueue
from blueprint.check.read import read
from blueprint.check.rules import across
from blueprint.finding import Finding, Source
from blueprint.objects import Manifest
from blueprint.render.platform import render
from blueprint.render.templates import Templates
from blueprint.spec.load import load

ROOT = Path(__file__).parents[3]
MODULES = Path(os.environ.get("GOMODCACHE") or Path(os.environ.get("GOPATH") or Path.home() / "go") / "pkg/mod")
SHIPPED = (
    "sigs.k8s.io/kueue@v0.17.0/config",
    "sigs.k8s.io/kueue@v0.17.0/test",
    "sigs.k8s.io/kueue@v0.17.0/cmd",
    "sigs.k8s.io/jobset@v0.11.1",
    "sigs.k8s.io/lws@v0.8.0",
    "github.com/kubeflow/training-operator@v1.9.3",
    "github.com/kubeflow/trainer/v2@v2.2.0",
    "github.com/kubeflow/mpi-operator@v0.8.0",
)


def _clusters() -> Iterator[tuple[str, list[Manifest]]]:
    platform = load(ROOT).platform
    for document in platform.clusters:
        result = render(platform, document, Templates(), SchemaPack.shipped())
        objects = [Manifest(file.manifest.body, Source(f"rendered/{file.path}", 1, 1)) for file in result.files]
        yield document.model.metadata.name, objects


CLUSTERS = dict(_clusters())


def _about_kueue(manifests: list[Manifest]) -> list[Finding]:
    return [finding for finding in across(manifests) if finding.code.startswith("KQ")]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_the_reference_platform_is_silent(cluster: str) -> None:
    assert not _about_kueue(CLUSTERS[cluster])


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_and_it_was_looked_at(cluster: str) -> None:
    found = kueue(Graph(CLUSTERS[cluster]))
    assert found.configurations
    assert found.world.nodes
    assert found.judged
    assert all(judged.assignment for judged in found.judged)


@pytest.mark.parametrize("folder", SHIPPED)
def test_what_projects_ship_is_silent(folder: str) -> None:
    path = MODULES / folder
    if not path.is_dir():
        pytest.skip(f"{folder} is not in the module cache")
    reading = read([path])
    by_folder: dict[str, list[Manifest]] = {}
    for manifest in (*reading.manifests, *reading.aside):
        by_folder.setdefault(str(Path(manifest.source.file).parent), []).append(manifest)
    assert not [finding for manifests in by_folder.values() for finding in _about_kueue(manifests)]
