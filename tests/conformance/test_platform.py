"""Every rendered object, in wave order, is accepted by the real API server with the real CRDs."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.catalog.argocd import sync_rank
from blueprint.catalog.constraints import constraint_crd
from blueprint.catalog.schemas import SchemaPack
from blueprint.conform.client import Client
from blueprint.conform.controlplane import ControlPlane
from blueprint.new import examples
from blueprint.render.outside import COMPONENT_NAMESPACES
from blueprint.render.platform import RenderedCluster, render
from blueprint.render.templates import Templates
from blueprint.spec.load import load
from blueprint.sync import wave

STANDING = (*COMPONENT_NAMESPACES, "argocd", "monitoring")


def clusters() -> list[tuple[str, RenderedCluster]]:
    """Every cluster of every example platform, rendered."""
    pack, templates = SchemaPack.shipped(), Templates()
    found = []
    for example, root in examples().items():
        platform = load(root).platform
        found += [(example, render(platform, document, templates, pack)) for document in platform.clusters]
    return found


def in_order(cluster: RenderedCluster) -> list[dict[str, Any]]:
    """The objects as Argo CD writes them: what the root holds, then Application by Application, wave by wave."""
    position = {application.name: application.wave for application in cluster.applications}
    files = sorted(
        cluster.files,
        key=lambda file: (
            position.get(file.application, -1),
            file.application,
            wave(file.manifest.body),
            sync_rank(file.manifest.kind),
            file.path,
        ),
    )
    return [file.manifest.body for file in files]


def delete_everything(client: Client, bodies: list[dict[str, Any]]) -> None:
    from blueprint.conform.client import Target

    for body in reversed(bodies):
        if body["kind"] != "Namespace":
            client.delete(Target.of(body))
            if body["kind"] == "PersistentVolumeClaim":
                # Protected until the controller manager, which does not run here, sees that no pod uses it.
                client.patch(Target.of(body), {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(("example", "cluster"), clusters(), ids=lambda value: getattr(value, "name", value))
def test_every_object_is_accepted_in_wave_order(
    example: str, cluster: RenderedCluster, platform_plane: ControlPlane
) -> None:
    for namespace in STANDING:
        platform_plane.namespace(namespace)
    bodies = in_order(cluster)
    assert bodies
    refused = []
    for body in bodies:
        if body["kind"] == "ConstraintTemplate":
            platform_plane.load_crds([constraint_crd(body)])
        # No Argo CD runs here that would ever take its finalizer away.
        stays = {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "finalizers"}}
        for dry_run in (True, False):
            answer = platform_plane.client.apply(body if dry_run else stays, dry_run=dry_run)
            if not answer.ok:
                refused.append(f"{body['kind']} {body['metadata']['name']}: {answer.message}")
                break
    delete_everything(platform_plane.client, bodies)
    assert not refused
