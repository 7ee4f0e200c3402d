"""Every image that an object names: in its pods, in what is shaped like one, and in fields of its own; one reader."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from blueprint.catalog.references import steps, walk
from blueprint.catalog.tables import table
from blueprint.check.pods import PodTemplate, containers, pod_templates
from blueprint.check.shapes import Body, items, mapping
from blueprint.objects import Manifest


class Named(NamedTuple):
    """A field with an image. `around` is the mapping that holds it: a container, or whatever else."""

    path: str
    text: str
    around: Body
    pod: PodTemplate | None

    @property
    def policy(self) -> tuple[str, object]:
        """When it is pulled: the path of that field beside it, and its value."""
        name = "pullPolicy" if self.path.endswith(".reference") else "imagePullPolicy"
        return f"{self.path.rpartition('.')[0]}.{name}", self.around.get(name)


def images(manifest: Manifest) -> Iterator[Named]:
    """The images of an object of any kind that is known to name some, in the order of the tables."""
    for pod in pod_templates(manifest):
        yield from _of_pod(pod.spec, pod.spec_path, pod)
    fields, pods = _paths(manifest.api_version, manifest.kind)
    for way in fields:
        for path, text, around in walk(manifest.body, way):
            if isinstance(text, str):
                yield Named(path, text, mapping(around), None)
    for way in pods:
        for path, spec, _ in walk(manifest.body, way):
            if isinstance(spec, dict):
                yield from _of_pod(spec, path, None)


def _of_pod(spec: Body, where: str, pod: PodTemplate | None) -> Iterator[Named]:
    for path, container in containers(spec):
        if isinstance(container.get("image"), str):
            yield Named(f"{where}.{path}.image", container["image"], container, pod)
    for number, volume in enumerate(map(mapping, items(spec.get("volumes")))):
        source = mapping(volume.get("image"))
        if isinstance(source.get("reference"), str):
            yield Named(f"{where}.volumes[{number}].image.reference", source["reference"], source, pod)


_Ways = tuple[tuple[str, ...], ...]


@lru_cache(maxsize=1 << 10)
def _paths(api_version: str, kind: str) -> tuple[_Ways, _Ways]:
    group, slash, _ = api_version.partition("/")
    row = table("images")["kinds"].get(f"{kind}.{group}" if slash else kind)
    if row is None:
        return (), ()
    return tuple(map(steps, row["images"])), tuple(map(steps, row["pods"]))
