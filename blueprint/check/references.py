"""The same object more than once: in one folder, or in two versions; two applications are a matter of rules.argo_ops.

Source: Argo CD v3.6.1 controller/state.go: within an application the last one wins (RepeatedResourceWarning).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest


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
