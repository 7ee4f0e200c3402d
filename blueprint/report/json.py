"""Findings as JSON, a contract: `report.schema.json` beside this file describes version 1.

Within a version, fields are only added. The same findings give the same bytes; times are left out for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources
from typing import Any

from blueprint.finding import Edit, Finding, Report
from blueprint.report.totals import Application, Changes, Rules, Totals

VERSION = 1


def document(
    report: Report,
    totals: Totals,
    rules: Rules,
    *,
    applications: Iterable[Application] | None = None,
    changes: Changes | None = None,
    patches: bool = False,
) -> dict[str, Any]:
    """The report as plain JSON values. `applications` and `changes` are for runs that render; left out when None.

    With `patches` a finding with a safe fix has it as `patch`, too.
    """
    value: dict[str, Any] = {
        "schema": VERSION,
        "read": {
            "files": totals.files,
            "documents": totals.documents,
            "objects": totals.objects,
            "skipped": totals.skipped,
        },
        "findings": [_finding(finding, rules, patches=patches) for finding in report.findings],
        "silenced": totals.silenced,
    }
    if applications is not None:
        value["applications"] = [
            {"cluster": a.cluster, "name": a.name, "objects": a.objects, "waves": a.waves} for a in applications
        ]
    if changes is not None:
        value["changes"] = {
            "added": list(changes.added),
            "changed": list(changes.changed),
            "removed": list(changes.removed),
            "lockChanged": changes.lock_changed,
        }
    return value


def dump(document: object) -> str:
    """Indented JSON in pure ASCII, so that no terminal and no encoding can misread it; ends with a newline."""
    return json.dumps(document, indent=2) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of `document`."""
    loaded: dict[str, Any] = json.loads((resources.files("blueprint.report") / "report.schema.json").read_text())
    return loaded


def _finding(finding: Finding, rules: Rules, *, patches: bool) -> dict[str, Any]:
    """Every field but `patch` is always there; `source` and `object` are null where there is none, texts are ""."""
    source, ref, rule = finding.source, finding.object, rules.get(finding.code)
    return {
        "code": finding.code,
        "name": rule.name if rule else "",
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "object": {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name} if ref else None,
        "source": {"file": source.file, "line": source.line} if source else None,
        "fix": finding.fix,
    } | ({"patch": [_operation(edit) for edit in finding.patch]} if patches and finding.patch else {})


def _operation(edit: Edit) -> dict[str, Any]:
    """One operation of JSON Patch, as RFC 6902 writes it."""
    operation: dict[str, Any] = {"op": edit.op, "path": edit.path}
    if edit.source:
        operation["from"] = edit.source
    if edit.value:
        operation["value"] = json.loads(edit.value)
    return operation
