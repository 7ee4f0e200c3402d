"""The annotations by which an object tells Argo CD its wave, how to apply and delete it, and what to ignore in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from blueprint.catalog import gating
from blueprint.objects import Manifest
from blueprint.render.plan import Drift
from blueprint.sync import WAVE

OPTIONS = "argocd.argoproj.io/sync-options"
IGNORE = "argocd.argoproj.io/ignore-differences"
"""argo-cd v3.6.1 util/argo/diff/ignore.go: YAML with the one key `jsonPointers`; jq paths cannot stand here."""

ANNOTATIONS_LIMIT = 262_144
"""Bytes of all annotations of one object, keys and values (apimachinery TotalAnnotationSizeLimitB)."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_TRACKING = 1024
"""Room for the tracking annotation that Argo CD adds (application, group, kind, namespace and name)."""


def json_size(body: Mapping[str, Any]) -> int:
    """The object as compact JSON, in bytes."""
    return len(orjson.dumps(body, default=str))


def annotated(manifest: Manifest, wave: int, drift: Iterable[Drift] = ()) -> Manifest:
    """The object with its wave (none for wave 0), its sync options and the JSON pointers to ignore.

    Options that the object states itself win over ours; a wave that it states does not: waves come from needs.
    """
    metadata = manifest.body.get("metadata")
    meta: dict[str, Any] = dict(metadata) if isinstance(metadata, dict) else {}
    had = meta.get("annotations")
    notes: dict[str, Any] = dict(had) if isinstance(had, dict) else {}
    notes.pop(WAVE, None)
    if wave:
        notes[WAVE] = str(wave)
    pointers = sorted({pointer for rule in drift for pointer in rule.pointers})
    if pointers and IGNORE not in notes:
        notes[IGNORE] = "jsonPointers:\n" + "".join(f"- {pointer}\n" for pointer in pointers)
    options = _options(manifest, notes.get(OPTIONS))
    if options:
        notes[OPTIONS] = ",".join(options)
    body = _with(manifest.body, meta, notes)
    if too_large_to_remember(body) and not _states(options, "ServerSideApply"):
        notes[OPTIONS] = ",".join([*options, "ServerSideApply=true"])
        body = _with(manifest.body, meta, notes)
    return Manifest(body, manifest.source)


def too_large_to_remember(body: Mapping[str, Any]) -> bool:
    """Whether a client-side apply of the object fails, because it is copied into an annotation that would be too long.

    The copy is what Go's encoder writes: `<`, `>` and `&` take six bytes each.
    """
    text = orjson.dumps(body, default=str)
    if len(text) * 6 < ANNOTATIONS_LIMIT - _TRACKING:
        return False
    copy = len(text) + 5 * sum(map(text.count, (b"<", b">", b"&"))) + 1
    metadata = body.get("metadata")
    notes = metadata.get("annotations") if isinstance(metadata, dict) else None
    others = (
        sum(len(str(k).encode()) + len(str(v).encode()) for k, v in notes.items()) if isinstance(notes, dict) else 0
    )
    return len(_LAST_APPLIED) + copy + others + _TRACKING > ANNOTATIONS_LIMIT


def _options(manifest: Manifest, stated: object) -> list[str]:
    options = [part.strip() for part in stated.split(",") if part.strip()] if isinstance(stated, str) else []
    ref = manifest.ref
    ours = list(gating.options(ref.group, ref.kind))
    if gating.maker(ref) is not None:
        ours.append("SkipDryRunOnMissingResource=true")
    return options + [option for option in ours if not _states(options, option.partition("=")[0])]


def _states(options: Iterable[str], key: str) -> bool:
    return any(option.partition("=")[0] == key for option in options)


def _with(body: Mapping[str, Any], metadata: dict[str, Any], annotations: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in metadata.items() if key != "annotations"}
    if annotations:
        meta["annotations"] = dict(annotations)
    return {**body, "metadata": meta}
