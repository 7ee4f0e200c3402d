"""A review as JSON, a contract (version 1: within it, fields are only added), and as findings for other formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blueprint.finding import Confidence, Finding, Ref, Report, Severity, Source
from blueprint.report import json as report_json
from blueprint.report import sarif
from blueprint.report.totals import Rules, Totals
from blueprint.review.model import Meaning, Review, Risk, Statement

VERSION = 1


def document(review: Review, rules: Rules, causes: Mapping[str, Source] | None = None) -> dict[str, Any]:
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
        "statements": [_statement(each, causes or {}) for each in review.statements],
        "meanings": [_meaning(each) for each in review.meanings],
        "waves": [_meaning(each) for each in review.waves],
        "reaches": list(review.radius),
        "findings": {
            "new": _findings(review.findings.new, rules),
            "fixed": _findings(review.findings.fixed, rules),
            "old": review.findings.old,
            "whole": review.findings.whole,
        },
    }


def _statement(each: Statement, causes: Mapping[str, Source]) -> dict[str, Any]:
    ref, place = each.ref, each.place
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
        "spec": _place(causes.get(place.file) if place else None),
    }


def _place(place: Source | None) -> dict[str, Any] | None:
    return None if place is None else {"file": place.file, "line": place.line}


def _meaning(each: Meaning) -> dict[str, Any]:
    return {
        "risk": each.risk.short,
        "kind": each.kind,
        "subject": each.subject or None,
        "cluster": each.cluster or None,
        "words": each.words,
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


def as_findings(review: Review, limit: Risk | None, causes: Mapping[str, Source] | None = None) -> Report:
    """Statements, meanings and new findings as findings; those at or above the limit are the ones that fail.

    A statement stands on the line of the spec that caused it, where that is known.
    """
    found = list(review.findings.new)
    for each in review.statements:
        if each.risk in _CODES:
            place = (causes or {}).get(each.place.file) if each.place else None
            found.append(_of_class(each.risk, each.words, limit, place or each.place, each.ref, each.path))
    for meaning in review.meanings:
        if meaning.risk in _CODES:
            found.append(_of_class(meaning.risk, meaning.words, limit, None, None, ""))
    return Report.of(found)


def _of_class(risk: Risk, words: str, limit: Risk | None, place: Source | None, ref: Ref | None, path: str) -> Finding:
    failing = limit is not None and risk.rank >= limit.rank
    severity = Severity.ERROR if failing else Severity.NOTE if risk is Risk.RESTART else Severity.WARNING
    return Finding(_CODES[risk], words, place, severity, Confidence.LIKELY, ref, path)


def sarif_document(
    review: Review, limit: Risk | None, rules: Rules, version: str, causes: Mapping[str, Source] | None = None
) -> dict[str, Any]:
    """SARIF whose results stand on the lines of specs, with the rendered files as related locations."""
    report = as_findings(review, limit, causes)
    value = sarif.document(report, rules, version)
    rendered = {
        (_CODES[each.risk], str(each.ref), each.path): each.place
        for each in review.statements
        if each.risk in _CODES and each.place is not None
    }
    for result in value["runs"][0]["results"]:
        names = [each["fullyQualifiedName"] for each in result["locations"][0].get("logicalLocations", ())]
        place = rendered.get((result["ruleId"], names[0] if names else "", result["properties"]["path"]))
        if place is not None:
            uri = f"{review.place}/{place.file}".lstrip("/") if review.place else place.file
            where = {"artifactLocation": {"uri": uri}, "region": {"startLine": max(place.line, 1)}}
            result["relatedLocations"] = [
                {"id": 1, "message": {"text": "the rendered object"}, "physicalLocation": where}
            ]
    return value
