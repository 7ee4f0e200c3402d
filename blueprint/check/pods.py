"""Pods wherever they are written: plain ones, and the templates of workloads, jobs and CRDs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from blueprint.catalog.references import pod_spec_paths, walk
from blueprint.check.shapes import Body, items, mapping
from blueprint.objects import Manifest


class PodTemplate(NamedTuple):
    """One pod as it is written.

    `path` leads to the map that holds metadata and spec: "" for a Pod, `spec.template` for a Deployment.
    """

    path: str
    metadata: Body
    spec: Body

    @property
    def spec_path(self) -> str:
        """The path of the pod's spec."""
        return f"{self.path}.spec" if self.path else "spec"


CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
"""The lists of containers of a pod, in the order in which Kubernetes visits them."""


@lru_cache(maxsize=1 << 10)
def _paths(api_version: str, kind: str) -> tuple[tuple[str, ...], ...]:
    group, slash, _ = api_version.partition("/")
    return pod_spec_paths(f"{kind}.{group}" if slash else kind)


def pod_templates(manifest: Manifest) -> Iterator[PodTemplate]:
    """Every pod template of an object of any kind that is known to hold some, in the order of the table."""
    for steps in _paths(manifest.api_version, manifest.kind):
        for path, spec, holder in walk(manifest.body, steps):
            if isinstance(spec, dict):
                yield PodTemplate(path[:-5] if path != "spec" else "", mapping(mapping(holder).get("metadata")), spec)


def containers(spec: Body) -> Iterator[tuple[str, Body]]:
    """Every container of a pod with its path below the spec: `initContainers[0]`, …"""
    for name in CONTAINER_LISTS:
        if name in spec:
            for index, container in enumerate(items(spec[name])):
                if isinstance(container, dict):
                    yield f"{name}[{index}]", container
