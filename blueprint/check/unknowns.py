"""Findings about objects with unknown fields: only what holds whatever will stand there is told.

An object is judged as it is written and with its unknown fields left out. A finding stays if both tell it, and if it is
not about an unknown field itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from blueprint.check.locate import path_steps
from blueprint.check.scalars import Json
from blueprint.check.shapes import mapping
from blueprint.finding import Confidence, Finding, Ref, Severity, Source
from blueprint.objects import EVERYTHING, Manifest, Steps

_IDENTITY = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})
_ABOUT_NAMES = frozenset({"SCH104"})
"""Codes about the name of a field, which is known even where its value is not."""
_ABOUT_PLACEHOLDERS = frozenset({"ARG103"})
"""Codes that are told of a placeholder because nobody is going to fill it in."""
_ABOUT_MISSING = frozenset({"NAM101", "NAT100", "NAT102", "NAT502", "SCH105"})
"""Codes about what an object lacks: of a draft, what a tool may still add."""

Judge = Callable[[Manifest], list[Finding]]
Judges = Callable[[Sequence[Manifest]], Iterable[Finding]]


def of_one(manifest: Manifest, judge: Judge) -> list[Finding]:
    """What a judge says of one object, whatever stands in its unknown fields, and whatever is still done to a draft."""
    if manifest.draft:
        return [_of_draft(finding) for finding in of_one(replace(manifest, draft=False), judge)]
    if not manifest.unknown:
        return judge(manifest)
    if () in manifest.unknown:
        return []
    either = {(finding.code, finding.path) for finding in judge(bare(manifest))}
    return [
        finding
        for finding in judge(manifest)
        if _about_known(finding, manifest) and (finding.code in _ABOUT_NAMES or (finding.code, finding.path) in either)
    ]


def of_all(manifests: Sequence[Manifest], judge: Judges) -> list[Finding]:
    """What a judge says of objects together, whatever stands in their unknown fields."""
    # Of a draft, among other objects, nothing is known but that it is there.
    given = [replace(manifest, unknown=EVERYTHING) if manifest.draft else manifest for manifest in manifests]
    doubtful: dict[tuple[Source | None, Ref | None], Manifest] = {
        (manifest.source, manifest.ref): manifest for manifest in given if manifest.unknown
    }
    found = list(judge(given))
    if not doubtful:
        return found
    either = {_subject(finding) for finding in judge([bare(manifest) for manifest in given])}
    return [
        finding
        for finding in found
        if finding.code in _ABOUT_PLACEHOLDERS
        or (_subject(finding) in either and _about_known(finding, doubtful.get((finding.source, finding.object))))
    ]


def bare(manifest: Manifest) -> Manifest:
    """The object without its unknown fields; its identity and the members of lists stay, so that paths stay."""
    if not manifest.unknown:
        return manifest
    if () in manifest.unknown:
        metadata = mapping(manifest.body.get("metadata"))
        named = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
        return replace(manifest, body={"apiVersion": manifest.api_version, "kind": manifest.kind, "metadata": named})
    return replace(manifest, body=_without(manifest.body, (), manifest.unknown - _IDENTITY))


def _without(value: Json, steps: Steps, unknown: frozenset[Steps]) -> Json:
    if isinstance(value, dict):
        return {
            key: _without(member, (*steps, key), unknown)
            for key, member in value.items()
            if (*steps, key) not in unknown
        }
    if isinstance(value, list):
        return [_without(member, (*steps, index), unknown) for index, member in enumerate(value)]
    return value


def _of_draft(finding: Finding) -> Finding:
    if finding.confidence is not Confidence.CERTAIN:
        return finding
    softer = finding.code in _ABOUT_MISSING and finding.severity is Severity.ERROR
    return replace(finding, confidence=Confidence.LIKELY, severity=Severity.WARNING if softer else finding.severity)


def _subject(finding: Finding) -> tuple[str, Source | None, Ref | None, str]:
    return finding.code, finding.source, finding.object, finding.path


def _about_known(finding: Finding, manifest: Manifest | None) -> bool:
    if manifest is None:
        return True
    if () in manifest.unknown:
        return False
    steps = tuple(path_steps(finding.path))
    return not manifest.is_unknown(steps[:-1] if finding.code in _ABOUT_NAMES else steps)
