"""The folder that a run leaves: what was seen, with which programs, so that anybody can check it again offline."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree as xml

from blueprint.conform.stage import Case
from blueprint.errors import UsageError
from blueprint.finding import Confidence, Finding, Severity, Source

SUMS, SUMMARY, JUNIT = "SHA256SUMS", "summary.json", "junit.xml"
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def digest(path: Path) -> str:
    """`sha256:<hex>` of a file."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def junit(cases: Sequence[Case]) -> bytes:
    """The cases as JUnit XML, one testsuite for each suite."""
    root = xml.Element("testsuites", name="blueprint conform")
    suites: dict[str, list[Case]] = {}
    for case in cases:
        suites.setdefault(case.suite, []).append(case)
    for name, own in suites.items():
        failed = sum(not case.passed for case in own)
        seconds = f"{sum(case.seconds for case in own):.2f}"
        suite = xml.SubElement(root, "testsuite", name=name, tests=str(len(own)), failures=str(failed), time=seconds)
        for case in own:
            title = _printable(f"{'(must not) ' if case.negative else ''}{case.name}")
            node = xml.SubElement(suite, "testcase", classname=name, name=title, time=f"{case.seconds:.2f}")
            if case.passed:
                xml.SubElement(node, "system-out").text = _printable(case.said)
            else:
                xml.SubElement(node, "failure", message=_printable(case.said)[:500]).text = _printable(case.said)
    xml.indent(root)
    return bytes(xml.tostring(root, encoding="utf-8", xml_declaration=True))


def _printable(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(c if c in "\n\t" or c >= " " else "?" for c in text)


def write(folder: Path, summary: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write the files (path below the folder → bytes), the summary, and the sums of everything that lies there.

    Raises UsageError where the folder holds something that no run of ours left.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / SUMS).is_file():
        raise UsageError("the folder for the evidence holds other files", where=str(folder), hint="give a new one")
    if (folder / SUMS).is_file():
        for name in _sums(folder):
            (folder / name).unlink(missing_ok=True)
    everything = {**files, SUMMARY: (json.dumps(summary, indent=2, sort_keys=True) + "\n").encode()}
    for name, content in everything.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    lines = [f"{hashlib.sha256(everything[name]).hexdigest()}  {name}\n" for name in sorted(everything)]
    (folder / SUMS).write_text("".join(lines), "utf-8")


def verify(folder: Path) -> list[Finding]:
    """What is wrong with a folder of evidence: files changed, missing or added, counts that disagree, red cases.

    Raises UsageError where it is no evidence at all.
    """
    if not (folder / SUMS).is_file() or not (folder / SUMMARY).is_file():
        raise UsageError("no evidence of a run lies there", where=str(folder), hint="blueprint conform --out DIR")
    sums = _sums(folder)
    findings = list(_by_sums(folder, sums))
    try:
        summary = json.loads((folder / SUMMARY).read_text("utf-8"))
        cases = [Case(**case) for case in summary["cases"]]
        said = {name: row["sha256"] for name, row in summary["components"].items()}
        reported = xml.fromstring((folder / JUNIT).read_bytes())  # noqa: S314 - its sum was checked
    except (OSError, ValueError, KeyError, TypeError, xml.ParseError) as error:
        return [*findings, _finding(folder / SUMMARY, f"it cannot be read: {error}")]
    if junit(cases) != (folder / JUNIT).read_bytes() or len(list(reported.iter("testcase"))) != len(cases):
        findings.append(_finding(folder / JUNIT, f"it does not tell the {len(cases)} cases of {SUMMARY}"))
    findings += [
        _finding(folder / SUMMARY, f"component {name} has no digest")
        for name, value in said.items()
        if not _DIGEST.fullmatch(value)
    ]
    findings += [
        _finding(folder / SUMMARY, f"{case.suite}: {case.name}: {case.said}", "CNF102")
        for case in cases
        if not case.passed
    ]
    return findings


def _sums(folder: Path) -> dict[str, str]:
    found = {}
    for line in (folder / SUMS).read_text("utf-8").splitlines():
        match = _LINE.fullmatch(line)
        if match is None or ".." in PurePosixPath(match[2]).parts or match[2].startswith("/"):
            raise UsageError(f"{SUMS} holds a line that is no sum of a file below it", where=str(folder / SUMS))
        found[match[2]] = match[1]
    return found


def _by_sums(folder: Path, sums: Mapping[str, str]) -> Iterable[Finding]:
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {SUMS}
    for name in sorted(sums.keys() | there):
        if name not in sums:
            yield _finding(folder / name, "the run did not write this file")
        elif name not in there:
            yield _finding(folder / name, "it is missing")
        elif digest(folder / name) != f"sha256:{sums[name]}":
            yield _finding(folder / name, "it was changed after the run")


def _finding(path: Path, message: str, code: str = "CNF101") -> Finding:
    return Finding(code, message, Source(str(path)), severity=Severity.ERROR, confidence=Confidence.CERTAIN)
