"""A small cluster that serves one model, written in Python, for tests to change."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any

from blueprint.finding import Source
from blueprint.render.plan import Item
from blueprint.render.served import Served, served
from blueprint.render.serving import items
from blueprint.render.site import Site
from blueprint.render.templates import Templates
from blueprint.spec import Cluster, Delivery, Document, InferenceService, Platform, Team

VLLM = "registry.example.com/serving/vllm@sha256:" + "b" * 64
TEMPLATES = Templates()

CLUSTER: dict[str, Any] = {
    "environment": "production",
    "nodePools": [
        {"name": "a100", "purpose": "serving", "nodes": 4, "cpu": 120, "memory": "960Gi",
         "gpus": {"product": "NVIDIA-A100-SXM4-80GB", "count": 8}},
        {"name": "mig", "purpose": "serving", "nodes": 1, "cpu": 120, "memory": "960Gi",
         "gpus": {"product": "NVIDIA-A100-SXM4-80GB", "count": 8,
                  "mig": {"strategy": "mixed", "layout": {"1g.10gb": 7}}}},
    ],
    "gateway": {"domain": "models.example.com"},
    "monitoring": {"labels": {"release": "monitoring"}},
}  # fmt: skip
SERVICE: dict[str, Any] = {
    "team": "chat",
    "clusters": ["prod"],
    "model": "example/model-8b",
    "engine": {"vllm": "0.33.0", "image": VLLM},
    "gpus": {"pool": "a100", "cpu": 16, "memory": "96Gi"},
    "weights": {"claim": "weights", "path": "model-8b", "version": "v1", "size": "1Ti", "loadTime": "4m"},
}
QUOTAS: list[dict[str, Any]] = [
    {"cluster": "prod", "pool": "a100", "gpus": 16},
    {"cluster": "prod", "pool": "mig", "profile": "1g.10gb", "gpus": 56},
]


def change(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy of a spec with fields set by their paths: `{"gpus.nodes": 2}`; None takes a field away."""
    result = copy.deepcopy(base)
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = result
        for key in parents:
            place = place.setdefault(key, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = copy.deepcopy(value)
    return result


def _document(model: Any, file: str) -> Document[Any]:
    return Document(model, Source(file, 1), lambda path: Source(f"{file}#{path}", 1))


def _model(kind: Any, name: str, spec: dict[str, Any]) -> Any:
    body = {
        "apiVersion": "platform.blueprint/v1alpha1",
        "kind": kind.__name__,
        "metadata": {"name": name},
        "spec": spec,
    }
    return kind.model_validate_json(json.dumps(body))


def site(
    *services: dict[str, Any], cluster: dict[str, Any] | None = None, quotas: Iterable[dict[str, Any]] = QUOTAS
) -> Site:
    """A cluster `prod` with the services `chat`, `chat-2` …, each the small one with these changes."""
    documents = [
        _document(
            _model(InferenceService, "chat" if not at else f"chat-{at + 1}", change(SERVICE, changes)), "chat.yaml"
        )
        for at, changes in enumerate(services)
    ]
    team = _model(Team, "chat", {"members": [{"group": "chat"}], "quotas": list(quotas)})
    delivery = _model(
        Delivery, "platform", {"repository": {"url": "https://git.example.com/p.git"}, "promotion": [["prod"]]}
    )
    prod = _document(_model(Cluster, "prod", change(CLUSTER, cluster or {})), "prod.yaml")
    platform = Platform(
        clusters=(prod,), teams=(_document(team, "team.yaml"),), services=tuple(documents),
        deliveries=(_document(delivery, "delivery.yaml"),),
    )  # fmt: skip
    return Site(platform, prod, platform.deliveries[0], TEMPLATES)


def one(changes: dict[str, Any] | None = None, **where: Any) -> Served:
    """The one service of a site."""
    [found] = served(site(changes or {}, **where))
    return found


class Objects:
    """Rendered objects by kind and name."""

    def __init__(self, rendered: Iterable[Item]) -> None:
        self.items = list(rendered)

    def all(self, kind: str) -> list[dict[str, Any]]:
        """The bodies of a kind."""
        return [item.manifest.body for item in self.items if item.manifest.kind == kind]

    def kinds(self) -> set[str]:
        """All kinds there are."""
        return {item.manifest.kind for item in self.items}

    def __getitem__(self, key: str) -> dict[str, Any]:
        """The one object of a kind, or `Kind/name`."""
        kind, _, name = key.partition("/")
        found = [body for body in self.all(kind) if name in ("", body["metadata"]["name"])]
        assert len(found) == 1, f"{len(found)} of {key}"
        return found[0]


def rendered(changes: dict[str, Any] | None = None, **where: Any) -> Objects:
    """The objects of a site with one service."""
    return Objects(items(site(changes or {}, **where)))
