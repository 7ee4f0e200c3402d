"""Which objects an Application applies: by folder, seen from wherever the tree was read."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.check.applications import Deliveries, health_scripts
from blueprint.check.graph import Graph
from blueprint.finding import Source
from blueprint.objects import Manifest


def app(name: str, path: str, **source: Any) -> Manifest:
    body = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "source": {"repoURL": "https://git.example.com/p.git", "path": path, **source},
            "destination": {"name": "a"},
        },
    }
    return Manifest(body, Source("apps/all.yaml", 1))


def thing(file: str) -> Manifest:
    return Manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}, Source(file, 1))


def owned(application: Manifest, *files: str) -> set[str]:
    deliveries = Deliveries(Graph([application, *map(thing, files)]))
    return {manifest.source.file for manifest in deliveries.objects(deliveries.applications[0])}


FILES = ("tree/web/a.yaml", "tree/web/sub/b.yaml", "tree/other/c.yaml")


@pytest.mark.parametrize(
    ("path", "source", "files"),
    [
        ("tree/web", {}, {"tree/web/a.yaml"}),
        ("./tree/web/", {}, {"tree/web/a.yaml"}),
        ("tree/web", {"directory": {"recurse": True}}, {"tree/web/a.yaml", "tree/web/sub/b.yaml"}),
        ("tree/web", {"directory": {"recurse": True, "exclude": "sub/*"}}, {"tree/web/a.yaml"}),
        ("tree/web", {"directory": {"recurse": True, "include": "*.json"}}, set()),
        ("tree/web", {"kustomize": {}}, {"tree/web/a.yaml", "tree/web/sub/b.yaml"}),
        ("tree/web", {"chart": "web"}, set()),
        ("web", {}, {"tree/web/a.yaml"}),
        ("tree/none", {}, set()),
        (".", {}, set()),
    ],
)
def test_objects_of_an_application(path: str, source: dict[str, Any], files: set[str]) -> None:
    assert owned(app("web", path, **source), *FILES) == files


def test_a_tree_read_from_outside_and_from_inside_of_the_repository() -> None:
    assert owned(app("web", "tree/web"), "/srv/repo/tree/web/a.yaml") == {"/srv/repo/tree/web/a.yaml"}
    assert owned(app("web", "rendered/prod/web"), "prod/web/a.yaml") == {"prod/web/a.yaml"}
    assert owned(app("web", "rendered/prod/web"), "web/a.yaml") == set()


def test_health_scripts_of_the_map_and_of_values() -> None:
    data = {"resource.customizations.health.kueue.x-k8s.io_ClusterQueue": "…", "other": "…"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": data}
    scripts, complete = health_scripts(Graph([Manifest(body, Source("cm.yaml"))]))
    assert scripts == {("kueue.x-k8s.io", "ClusterQueue")} and complete
    values = {"values": "resource.customizations.health.argoproj.io_Application: x"}
    scripts, complete = health_scripts(Graph([app("argocd", "a", helm=values)]))
    assert scripts == {("argoproj.io", "Application")} and not complete
