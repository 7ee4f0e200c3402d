"""A review as JSON, a contract (version 1: within it, fields are only added), and as findings for other formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from blueprint.finding import Confidence, Finding, Ref, Report, Severity, Source
from blueprint.report import json as report_json
from blueprint.report import sarif
from blueprint.report.places import heaviest
from blueprint.report.totals import Rules, Totals
from blueprint.review.model import Causes, Meaning, Review, Risk, Statement

VERSION = 1
UNKNOWN = Causes()
"""Where nothing is known of specs."""


def document(review: Review, rules: Rules, causes: Causes = UNKNOWN) -> dict[str, Any]:
    """The review as plain JSON values; every field is always there."""
    counts = review.counts
    return {
        "schema": VERSION,
        "base": review.base,
        "head": review.head,
        "risk": review.risk.short,
        "clusters": list(review.clusters),
        "counts": {
            "added": counts.added,
            "changed": counts.changed,
            "removed": counts.removed,
            "renamed": counts.renamed,
            "form": counts.form,
            "moved": counts.moved,
            "same": counts.same,
        },
        "statements": [_statement(each, causes) for each in review.statements],
        "meanings": [_meaning(each, causes) for each in review.meanings],
        "waves": [_meaning(each, causes) for each in review.waves],
        "reaches": list(review.radius),
        "findings": {
            "new": _findings(review.findings.new, rules),
            "fixed": _findings(review.findings.fixed, rules),
            "old": review.findings.old,
            "whole": review.findings.whole,
        },
    }


def _statement(each: Statement, causes: Causes) -> dict[str, Any]:
    ref = each.ref
    return {
        "risk": each.risk.short,
        "rule": each.rule,
        "words": each.words,
        "object": {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name},
        "cluster": each.cluster or None,
        "path": each.path or None,
        "reason": each.source or None,
        "base": _place(each.old),
        "head": _place(each.new),
        "spec": _place(causes.of(each)),
    }


def _place(place: Source | None) -> dict[str, Any] | None:
    return None if place is None else {"file": place.file, "line": place.line}


def _meaning(each: Meaning, causes: Causes) -> dict[str, Any]:
    return {
        "risk": each.risk.short,
        "kind": each.kind,
        "subject": each.subject or None,
        "cluster": each.cluster or None,
        "words": each.words,
        "spec": _place(causes.of(each)),
    }


def _findings(found: tuple[Finding, ...], rules: Rules) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = report_json.document(Report(list(found)), Totals(), rules)["findings"]
    return listed


_CODES = {
    Risk.UNKNOWN: "REV101",
    Risk.RESTART: "REV201",
    Risk.CAPACITY: "REV301",
    Risk.TRAFFIC: "REV401",
    Risk.SECURITY: "REV501",
    Risk.DESTRUCTIVE: "REV601",
}


def as_findings(review: Review, limit: Risk | None, causes: Causes = UNKNOWN) -> Report:
    """Statements, meanings and new findings as findings; those at or above the limit are the ones that fail.

    What is said stands on the line of the spec that caused it, where that is known.
    """
    found = [replace(each, source=_below(review, each.source)) for each in review.findings.new]
    found += [finding for finding, _ in _stated(review, limit, causes)]
    for meaning in review.meanings:
        if meaning.risk in _CODES:
            found.append(_of_class(meaning.risk, meaning.words, limit, causes.of(meaning), None, ""))
    return Report.of(found)


def _stated(review: Review, limit: Risk | None, causes: Causes) -> Iterator[tuple[Finding, Source | None]]:
    """Each statement that counts, and the rendered place where that is not the finding's own."""
    for each in review.statements:
        if each.risk in _CODES:
            rendered, cause = _below(review, each.place), causes.of(each)
            yield (
                _of_class(each.risk, each.words, limit, cause or rendered, each.ref, each.path),
                rendered if cause else None,
            )


def _below(review: Review, place: Source | None) -> Source | None:
    """A place in the tree as the repository has it."""
    return place and place._replace(file=f"{review.place}/{place.file}" if review.place else place.file)


def _of_class(risk: Risk, words: str, limit: Risk | None, place: Source | None, ref: Ref | None, path: str) -> Finding:
    failing = limit is not None and risk.rank >= limit.rank
    severity = Severity.ERROR if failing else Severity.NOTE if risk is Risk.RESTART else Severity.WARNING
    return Finding(_CODES[risk], words, place, severity, Confidence.LIKELY, ref, path)


def sarif_document(
    review: Review, limit: Risk | None, rules: Rules, version: str, causes: Causes = UNKNOWN
) -> dict[str, Any]:
    """SARIF whose results stand on the lines of specs, with the rendered files as related locations."""
    report = as_findings(review, limit, causes)
    value = sarif.document(report, rules, version)
    rendered: dict[Finding, list[Source]] = {}
    for finding, place in _stated(review, limit, causes):
        if place is not None:
            rendered.setdefault(finding, []).append(place)
    for result, finding in zip(value["runs"][0]["results"], heaviest(report, sarif.MOST), strict=True):
        if places := rendered.get(finding):
            result["relatedLocations"] = [_related(number, place) for number, place in enumerate(places, 1)]
    return value


def _related(number: int, place: Source) -> dict[str, Any]:
    where = {"artifactLocation": {"uri": sarif.uri(place.file)}, "region": {"startLine": max(place.line, 1)}}
    return {"id": number, "message": {"text": "the rendered object"}, "physicalLocation": where}
