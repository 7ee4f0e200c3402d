"""Findings: what fails a run, and a stable order."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from blueprint.finding import Confidence, Finding, Ref, Report, Severity, Source, fingerprints

finding = Finding("KQ101", "message", Source("a.yaml", 3))
findings = st.builds(
    Finding,
    code=st.sampled_from(["KQ101", "KQ102"]),
    message=st.sampled_from(["one", "two"]),
    source=st.none() | st.builds(Source, st.sampled_from(["a", "b"]), st.integers(0, 3), st.integers(0, 3)),
    severity=st.sampled_from(Severity),
    confidence=st.sampled_from(Confidence),
    path=st.sampled_from(["", "spec"]),
)


def test_only_errors_that_are_no_matter_of_style_fail() -> None:
    assert finding.fails
    assert replace(finding, confidence=Confidence.LIKELY).fails
    assert not replace(finding, confidence=Confidence.STYLE).fails
    assert not replace(finding, severity=Severity.WARNING).fails


@given(st.lists(findings), st.randoms(use_true_random=False))
def test_a_report_does_not_depend_on_the_order(found: list[Finding], chance: object) -> None:
    shuffled = list(found)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert set(Report.of(found).findings) == set(found)
    key = [(f.source, f.severity, f.code, f.path, f.message) for f in Report.of(found).findings]
    assert key == [(f.source, f.severity, f.code, f.path, f.message) for f in Report.of(shuffled).findings]


def test_text_forms() -> None:
    assert str(Source("a.yaml", 3, 7)) == "a.yaml:3:7"
    assert str(Source("a.yaml")) == "a.yaml"
    assert str(Ref("apps", "Deployment", "n", "d")) == "Deployment.apps n/d"
    assert str(Ref("", "Namespace", "", "n")) == "Namespace n"


def test_fingerprints_follow_a_finding_and_are_never_the_same() -> None:
    ref = Ref("", "Pod", "a", "b")
    one = Finding("NAM101", "24 are too many", Source("f.yaml", 3), object=ref, path="spec")
    moved = Finding("NAM101", "25 are too many", Source("f.yaml", 9), object=ref, path="spec")
    elsewhere = Finding("NAM101", "24 are too many", Source("g.yaml", 3), object=ref, path="spec")
    assert fingerprints([one]) == fingerprints([moved])
    assert fingerprints([one])[0] not in fingerprints([elsewhere])
    first, second = fingerprints([one, moved])
    assert first == fingerprints([one])[0] != second
    assert fingerprints([Finding("NAM101", "x")]) != fingerprints([Finding("NAM101", "y")])
