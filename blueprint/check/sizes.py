"""Sizes that the API server, etcd or the way of applying do not take.

Sources: k8s.io/apimachinery@v0.35.4 pkg/api/validation/objectmeta.go (annotations); k8s.io/kubernetes@v1.35.4
pkg/apis/core/types.go (MaxSecretSize); go.etcd.io/etcd/server/v3@v3.7.3 embed/config.go (DefaultMaxRequestBytes);
k8s.io/kubectl@v0.35.4 pkg/util/apply.go (the last-applied annotation).
"""

from __future__ import annotations

import orjson

from blueprint.catalog.schemas import Kind
from blueprint.check.shapes import Body, mapping, text
from blueprint.finding import Confidence, Finding, Severity
from blueprint.objects import Manifest

ANNOTATIONS = 256 * 1024
"""Bytes of all annotation keys and values together; with client-side apply a copy of the object is one of them."""

DATA = 1024 * 1024
"""Bytes of all values of a ConfigMap or Secret."""

REQUEST = 1536 * 1024
"""Bytes of a request to etcd."""

_APPLIED_OTHERWISE = ("ServerSideApply=true", "Replace=true")


def sizes(manifest: Manifest, kind: Kind | None) -> list[Finding]:
    """SIZ1xx: what is too large."""
    body = manifest.body
    metadata = mapping(body.get("metadata"))
    annotations = mapping(metadata.get("annotations"))
    found: list[Finding] = []
    if annotations:
        total = sum(len(str(key).encode()) + len(text(value).encode()) for key, value in annotations.items())
        if total > ANNOTATIONS:
            message = f"the annotations have {total:,} bytes; {ANNOTATIONS:,} are allowed"
            found.append(_finding(manifest, "SIZ101", message, "metadata.annotations", "keep large values elsewhere"))
    if manifest.api_version == "v1" and manifest.kind in ("ConfigMap", "Secret"):
        total = _data(body, manifest.kind)
        if total > DATA:
            message = f"the values have {total:,} bytes; a {manifest.kind} holds {DATA:,}"
            found.append(
                _finding(manifest, "SIZ102", message, "data", "split it, or keep the data in a volume or image")
            )
    total = _written(body)
    if total > REQUEST:
        message = f"the object has {total:,} bytes; etcd takes {REQUEST:,} in one request"
        found.append(_finding(manifest, "SIZ103", message, "", "split it"))
    elif total > ANNOTATIONS and not _applied_otherwise(annotations):
        found.append(
            Finding(
                "SIZ104",
                f"client-side apply keeps a copy of the object in an annotation, and {total:,} bytes are more than "
                f"the {ANNOTATIONS:,} that annotations may have",
                manifest.source,
                Severity.WARNING,
                Confidence.LIKELY,
                manifest.ref,
                "metadata.annotations" if annotations else "metadata",
                "annotate it with argocd.argoproj.io/sync-options: ServerSideApply=true",
            )
        )
    return found


def _written(body: Body) -> int:
    """Bytes of compact JSON; 0 for a body that JSON cannot hold, which the schema check reports."""
    try:
        return len(orjson.dumps(body))
    except TypeError:
        return 0


def _data(body: Body, kind: str) -> int:
    total = sum(
        len(text(value).encode())
        for value in mapping(body.get("data" if kind == "ConfigMap" else "stringData")).values()
    )
    encoded = mapping(body.get("binaryData" if kind == "ConfigMap" else "data"))
    return total + sum(_decoded(text(value)) for value in encoded.values())


def _decoded(value: str) -> int:
    """Bytes behind a base64 text."""
    bare = value.replace("\n", "").replace("\r", "")
    return len(bare) // 4 * 3 - (len(bare) - len(bare.rstrip("=")))


def _applied_otherwise(annotations: Body) -> bool:
    options = text(annotations.get("argocd.argoproj.io/sync-options"))
    return any(option.strip() in _APPLIED_OTHERWISE for option in options.split(","))


def _finding(manifest: Manifest, code: str, message: str, path: str, fix: str) -> Finding:
    return Finding(code, message, manifest.source, object=manifest.ref, path=path, fix=fix)
