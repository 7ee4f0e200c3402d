"""Pods that an object makes, be they written as a template, or as KServe writes them: around what serves a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

from blueprint.catalog.references import pod_spec_paths
from blueprint.catalog.tables import table
from blueprint.check.pods import PodTemplate, pod_templates
from blueprint.check.shapes import Body, items, mapping
from blueprint.objects import Manifest

Path = tuple[str, ...]


class Inline(PodTemplate):
    """A pod whose fields stand among those of the object: its path is that of its spec."""

    @property
    def spec_path(self) -> str:
        """The path of the pod's spec."""
        return self.path


class Place(NamedTuple):
    """Where a kind holds a pod's spec, and which of its fields are containers by themselves."""

    spec: Path
    containers: tuple[str, ...]


@cache
def inline(kind: str) -> tuple[Place, ...]:
    """The pods of a kind that are no templates: rows of `pods` in review_risks.yaml."""
    return tuple(
        Place(tuple(row["spec"].split(".")), tuple(row.get("containers", ())))
        for row in table("review_risks")["pods"]
        if any(fnmatchcase(kind, each) for each in row["kinds"])
    )


@cache
def aliases(kind: str) -> tuple[tuple[Path, Path], ...]:
    """Beginnings of paths of a kind, and what the table of risks calls them, the longest first."""
    found: list[tuple[Path, Path]] = [(steps[:-1], ("pod",)) for steps in pod_spec_paths(kind)]
    for place in inline(kind):
        found += [((*place.spec, name), ("pod", "spec", "containers", "[]")) for name in place.containers]
        found.append((place.spec, ("pod", "spec")))
    return tuple(sorted(found, key=lambda each: -len(each[0])))


def pods(manifest: Manifest) -> Iterator[PodTemplate]:
    """Every pod of an object; a container that stands by itself is the first of its pod's."""
    yield from pod_templates(manifest)
    for place in inline(manifest.ref.kind_name):
        spec = _at(manifest.body, place.spec)
        if not isinstance(spec, dict):
            continue
        alone = [{"name": "kserve-container", **mapping(spec[name])} for name in place.containers if name in spec]
        whole = {**spec, "containers": [*alone, *items(spec.get("containers"))]} if alone else spec
        metadata = {name: spec[name] for name in ("labels", "annotations") if name in spec}
        yield Inline(".".join(place.spec), metadata, whole)


def own_containers(body: Body, kind: str) -> Iterator[Body]:
    """The containers of pods that are no templates, as they stand in the body."""
    for place in inline(kind):
        spec = mapping(_at(body, place.spec))
        found = [spec.get(name) for name in place.containers]
        for each in (*found, *items(spec.get("containers"))):
            if isinstance(each, dict):
                yield each


def _at(body: Mapping[str, Any], path: Path) -> object:
    value: object = body
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
