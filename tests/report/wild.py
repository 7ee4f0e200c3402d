"""Reports of any findings at all, with texts that try to break out of a format."""

from __future__ import annotations

from hypothesis import strategies as st

from blueprint.finding import Confidence, Finding, Ref, Report, Severity, Source

texts = st.text(max_size=5) | st.text(st.sampled_from("a:,%<>&\"'|`*@#] \n\r\x1b\x00\u202e\ud800]]>é/.\\-"), max_size=8)
findings = st.builds(
    Finding,
    st.from_regex(r"[A-Z]{2,4}[0-9]{3}", fullmatch=True),
    texts,
    st.none() | st.builds(Source, texts, st.integers(0, 9), st.integers(0, 9)),
    st.sampled_from(Severity),
    st.sampled_from(Confidence),
    st.none() | st.builds(Ref, texts, texts, texts, texts),
    texts,
    texts,
)
reports = st.lists(findings, max_size=5).map(Report.of)
