"""Findings as JUnit's XML, which nearly every CI system shows: what fails a run is a failed test."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from xml.sax.saxutils import quoteattr

from blueprint.finding import Finding, Report
from blueprint.report.places import file_of, line_of, said
from blueprint.report.totals import Rules

# What XML 1.0 has no way to write.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report, rules: Rules) -> str:
    """A suite for each file with findings; a single test that passes where there are none.

    Warnings, notes and findings of style are tests that pass, with their words as output.
    """
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    failed = sum(finding.fails for finding in report.findings)
    lines.append(f"<testsuites{_attributes(name='blueprint', **_sums(len(report.findings) or 1, failed))}>")
    ordered = sorted(report.findings, key=file_of)
    for file, found in groupby(ordered, file_of):
        lines += _suite(file, list(found), rules)
    if not ordered:
        lines += [
            f"  <testsuite{_attributes(name='blueprint', **_sums(1, 0))}>",
            f"    <testcase{_attributes(name='no findings', classname='blueprint')}/>",
            "  </testsuite>",
        ]
    return "\n".join((*lines, "</testsuites>")) + "\n"


def _suite(file: str, found: list[Finding], rules: Rules) -> Iterable[str]:
    yield f"  <testsuite{_attributes(name=file, **_sums(len(found), sum(f.fails for f in found)))}>"
    names: Counter[str] = Counter()
    for finding in found:
        rule = rules.get(finding.code)
        placed = finding.source is not None
        subject = str(finding.object or "") or (f"line {line_of(finding)}" if placed else _headline(finding))
        name = " ".join(filter(None, (finding.code, rule.name if rule else "", subject, finding.path)))
        if names[name] and _headline(finding) not in name:  # two of one place: CI systems tell tests apart by name
            name = f"{name}: {_headline(finding)}"
        names[name] += 1
        name = f"{name} ({names[name]})" if names[name] > 1 else name
        place = {"file": file, "line": str(line_of(finding))} if placed else {}
        yield f"    <testcase{_attributes(name=name, classname=file if placed else 'blueprint', **place)}>"
        if finding.fails:
            attributes = _attributes(message=_headline(finding), type=finding.code)
            yield f"      <failure{attributes}>{_text(_place(finding))}</failure>"
        else:
            yield f"      <system-out>{_text(_place(finding))}</system-out>"
        yield "    </testcase>"
    yield "  </testsuite>"


def _headline(finding: Finding) -> str:
    return (finding.message.splitlines() or [""])[0]


def _place(finding: Finding) -> str:
    where = f"{finding.source}: " if finding.source else ""
    return f"{where}{finding.severity.value}: {said(finding)}"


def _sums(tests: int, failures: int) -> dict[str, str]:
    return {"tests": str(tests), "failures": str(failures), "errors": "0", "skipped": "0"}


def _attributes(**values: str) -> str:
    return "".join(f" {name}={quoteattr(_shown(value))}" for name, value in values.items())


def _text(value: str) -> str:
    return _shown(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def _shown(value: str) -> str:
    return _FORBIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
