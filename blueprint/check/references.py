"""The same object more than once: in one folder, in two versions, in two applications of a cluster.

Source: Argo CD v3.6.1 controller/state.go: within an application the last one wins (RepeatedResourceWarning); of two
applications each undoes what the other does (SharedResourceWarning).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest

Place = tuple[str, str]
"""The cluster and the application that an object is applied to and with."""


def folder(manifest: Manifest) -> str:
    """The folder of the file an object was read from: what one directory application applies together."""
    return manifest.folder


def repeated(manifests: Sequence[Manifest], together: Callable[[Manifest], str] = folder) -> Iterable[Finding]:
    """REF101, REF102: an object twice among those that are applied together (by default: in one folder)."""
    seen: dict[tuple[str, Ref], Manifest] = {}
    for manifest in sorted(manifests, key=lambda each: each.source):
        ref = manifest.ref
        if not ref.name:
            continue
        first = seen.setdefault((together(manifest), ref), manifest)
        if first is manifest:
            continue
        if first.api_version == manifest.api_version:
            message = f"{ref} is here and in {first.source}; the last one applied wins"
            yield Finding("REF101", message, manifest.source, object=ref, fix="remove one of the two")
        else:
            message = f"{ref} is {manifest.api_version} here and {first.api_version} in {first.source}: one object"
            yield Finding(
                "REF102", message, manifest.source, object=ref, path="apiVersion", fix="remove one of the two"
            )


def shared(manifests: Sequence[Manifest], place: Callable[[Manifest], Place | None]) -> Iterable[Finding]:
    """REF103: an object in two applications of one cluster; `place` is None for what no application applies."""
    owners: dict[tuple[str, Ref], tuple[str, Manifest]] = {}
    for manifest in sorted(manifests, key=lambda each: each.source):
        where, ref = place(manifest), manifest.ref
        if where is None or not ref.name:
            continue
        cluster, application = where
        owner, first = owners.setdefault((cluster, ref), (application, manifest))
        if owner != application:
            message = f"{ref} is in the applications {owner} ({first.source}) and {application} of cluster {cluster}"
            fix = "leave it to one application"
            yield Finding("REF103", message, manifest.source, object=ref, fix=fix)
