"""Container images: references that cannot be read, that move, and versions that contradict each other.

Sources: github.com/distribution/reference v0.6.0; kubernetes.io docs/concepts/containers/images.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from blueprint.catalog.tables import table
from blueprint.catalog.versions import version
from blueprint.check.graph import Graph, labels_of
from blueprint.check.imaged import Named, images
from blueprint.check.images import Image, image
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import mapping, placeholder, text
from blueprint.finding import Finding
from blueprint.objects import Manifest

_TO_BE_FILLED = re.compile(r"[A-Z][A-Z0-9_]*|.*[<>$%].*|.*\b(?:REPLACE|CHANGE|YOUR)[-_A-Z]*\b.*")
"""Texts that a person or a tool is meant to replace: IMAGE, <registry>/app."""


_Used = tuple[Manifest, Named, Image]
"""An object, the field with an image, and what that says."""


def _read(graph: Graph) -> Sequence[_Used]:
    return list(_all(graph))


def _images(graph: Graph) -> Sequence[_Used]:
    return graph.derived(_read)


def _all(graph: Graph) -> Iterator[_Used]:
    for manifest in graph.manifests:
        for named in images(manifest):
            if named.text and not placeholder(named.text) and not _TO_BE_FILLED.fullmatch(named.text):
                yield manifest, named, image(named.text)


def references(graph: Graph) -> Iterator[Finding]:
    """IMG101, IMG102, IMG103, IMG104: images that no kubelet can pull, or that are not the same tomorrow."""
    moving: dict[int, tuple[Manifest, str, str, int]] = {}
    for manifest, named, parts in _images(graph):
        name = named.text
        if parts.problem:
            message = f"{name!r} is no image: {parts.problem}; the pod stays in InvalidImageName"
            yield say("IMG101", manifest, message, named.path, "write registry/repository:tag@sha256:…")
        elif not parts.digest and parts.tag in ("", "latest"):
            how = "has no tag, which means latest" if not parts.tag else "is latest"
            message = f"{name} {how}: what runs depends on the day, and on the node"
            yield warn("IMG102", manifest, message, named.path, "pin a version by its digest")
            where, policy = named.policy
            if policy in ("IfNotPresent", "Never"):
                message = f"{name} moves, and is pulled only where it is missing: nodes run different versions"
                yield warn("IMG103", manifest, message, where, "pin a version by its digest")
        elif not parts.digest:
            first = moving.setdefault(id(manifest), (manifest, named.path, name, 0))
            moving[id(manifest)] = (*first[:3], first[3] + 1)
    for manifest, where, name, count in moving.values():
        more = f" (and {count - 1} more)" if count > 1 else ""
        message = f"{name}{more} is named by a tag, which can be moved; only a digest says what was tested"
        yield note("IMG104", manifest, message, where, "add the digest: name:tag@sha256:…")


def two_digests(graph: Graph) -> Iterator[Finding]:
    """IMG105: one tag of one repository with two digests: one of the two is not what the tag says."""
    first: dict[tuple[str, str], tuple[str, Manifest]] = {}
    for manifest, named, parts in _images(graph):
        if parts.tag and parts.digest:
            digest, other = first.setdefault((parts.repository, parts.tag), (parts.digest, manifest))
            if digest != parts.digest:
                message = f"{parts.repository}:{parts.tag} has another digest here than in {other.ref} ({other.source})"
                yield warn("IMG105", manifest, message, named.path, "use one digest for one version")


def contradicting_versions(graph: Graph) -> Iterator[Finding]:
    """IMG106: the version label says one version, and the image is another."""
    for manifest, named, parts in _images(graph):
        if named.pod is None or named.path.endswith(".reference"):
            continue
        labels = {**labels_of(manifest.body), **mapping(named.pod.metadata.get("labels"))}
        said, name = text(labels.get("app.kubernetes.io/version")), text(labels.get("app.kubernetes.io/name"))
        last = parts.repository.rpartition("/")[2]
        if not said or not parts.tag or not (last == name or named.around.get("name") == name):
            continue
        label, tag = version(said), version(parts.tag.partition("-")[0])
        if label and tag and label[:3] != tag[:3] and said.count(".") == parts.tag.partition("-")[0].count("."):
            message = (
                f"app.kubernetes.io/version says {said}, the image is {parts.tag}: flags of one may be new to the other"
            )
            yield warn("IMG106", manifest, message, named.path, "use the image of the version, or say why not")


def old_registries(graph: Graph) -> Iterator[Finding]:
    """IMG107: registries that are no longer filled."""
    for manifest, named, parts in _images(graph):
        for row in table("legacy")["registries"]:
            if parts.repository.startswith(f"{row['host']}/"):
                message = f"{row['host']} gets no new images, and may answer no more"
                yield warn("IMG107", manifest, message, named.path, f"use {row['instead']}")


RULES = (references, two_digests, contradicting_versions, old_registries)
TREE = ()
