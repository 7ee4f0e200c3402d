"""The same object more than once: in one folder, or in two versions; two applications are a matter of rules.argo_ops.

Source: Argo CD v3.6.1 controller/state.go: within an application the last one wins (RepeatedResourceWarning).
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence

from blueprint.check.shapes import Body, mapping, maps, text
from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.objects import Manifest

_APPLICATION = "argoproj.io"


def folder(manifest: Manifest) -> str:
    """The folder of the file an object was read from: what one directory application applies together."""
    return manifest.folder


def repeated(manifests: Sequence[Manifest], together: Callable[[Manifest], str] = folder) -> Iterable[Finding]:
    """REF101, REF102: an object twice among those that are applied together (by default: in one folder).

    It is certain within one file, in what a Kustomize root or a chart makes, and in a folder that an Application of the
    tree reads. Of two files in any other folder one may stand in place of the other, as variants of an example do.
    """
    seen: dict[tuple[str, Ref], Manifest] = {}
    twice: list[tuple[Manifest, Manifest]] = []
    for manifest in sorted(manifests, key=lambda each: each.source):
        if manifest.ref.name:
            first = seen.setdefault((together(manifest), manifest.ref), manifest)
            if first is not manifest:
                twice.append((first, manifest))
    read = list(_read(manifests)) if twice else []
    for first, manifest in twice:
        ref, path = manifest.ref, ""
        if first.api_version == manifest.api_version:
            code, message = "REF101", f"{ref} is here and in {first.source}; the last one applied wins"
        else:
            code, path = "REF102", "apiVersion"
            message = f"{ref} is {manifest.api_version} here and {first.api_version} in {first.source}: one object"
        severity, confidence = Severity.ERROR, Confidence.CERTAIN
        if not (first.root or first.source.file == manifest.source.file or _both_read(read, first, manifest)):
            severity, confidence = Severity.WARNING, Confidence.LIKELY
            message += ", where both files are applied"
        fix = "remove one of the two"
        yield Finding(code, message, manifest.source, severity, confidence, object=ref, path=path, fix=fix)


def _read(manifests: Sequence[Manifest]) -> Iterator[Body]:
    """The sources of the Applications among the objects that are folders of plain files."""
    for manifest in manifests:
        if manifest.kind == "Application" and manifest.ref.group == _APPLICATION:
            spec = mapping(manifest.body.get("spec"))
            for source in (mapping(spec.get("source")), *maps(spec.get("sources"))):
                if not source.keys() & {"helm", "kustomize", "plugin", "chart"}:
                    yield source


def _both_read(sources: Sequence[Body], *manifests: Manifest) -> bool:
    """Whether one source takes in the files of both objects."""
    return any(all(_takes(source, manifest) for manifest in manifests) for source in sources)


def _takes(source: Body, manifest: Manifest) -> bool:
    path = posixpath.normpath(text(source.get("path")).strip("/") or ".")
    directory = mapping(source.get("directory"))
    chosen = any(text(directory.get(key)) for key in ("include", "exclude"))
    at = manifest.folder
    return not chosen and (at == path or at.endswith(f"/{path}") or (path == "." and not at))
