import re

from hypothesis import given, settings

from blueprint.finding import Finding, Report, Source
from blueprint.report import Totals
from blueprint.report.markdown import markdown

from .findings import REPORT
from .wild import reports

GOLDEN = """\
**10 objects · 10 findings (8 errors, 1 warning, 1 note)**

| | where | what |
|---|---|---|
| error NAM101 |  | **no place, no object** |
| error SPC101 | <code>apps/0.yaml:1</code><br><code>apps/1.yaml:2</code><br><code>apps/2.yaml:3</code><br>and 3 more | **unknown field replica**<br>fix: replicas |
| error KQ202 | <code>apps/search-ai/reranker-sft.yaml:14</code> | **queue cannot ever admit this job**<br><sub>PyTorchJob.kubeflow.org search-ai/reranker-sft · spec.pytorchReplicaSpecs</sub><br>PyTorchJob reranker-sft asks 24 nvidia.com/gpu (3 podsets: 8 + 8 + 8)<br>h100-train   16 nominal + 4 borrowable = 20   ← binds: borrowingLimit 4<br>fix: borrowingLimit 4 → 8 |
| warning WAV103 | <code>argocd/platform.yaml:9:3</code> | **wave 4 does not wait for wave 3** |
| note TRE203 | <code>rendered</code> | **1 file is not in the lock and kept: x** |
"""  # noqa: E501


def test_golden():
    assert markdown(REPORT, Totals(10)) == GOLDEN


def test_without_findings_there_is_no_table():
    assert markdown(Report(), Totals(5, silenced=2)) == "**5 objects · no findings · 2 silenced**\n"


@settings(max_examples=50)
@given(reports)
def test_nothing_breaks_out_of_its_cell(report):
    text = markdown(report, Totals())
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| | ")]
    assert len(text.splitlines()) <= 3 + 1 + len(report.findings)
    for row in rows:
        assert row.count("|") == 4
        assert set(re.findall(r"<[^>]*>", row)) <= {"<code>", "</code>", "<br>", "<sub>", "</sub>"}


def test_what_does_not_fit_is_counted():
    many = Report.of([Finding(f"SCH{n}", f"wrong {n} " + "x" * 200, Source("a.yaml", n)) for n in range(100, 999)])
    text = markdown(many, Totals(), limit=5000)
    shown = text.count("| error")
    assert len(text) <= 5000
    assert 5 < shown < 25
    assert f"… and {899 - shown} more findings" in text
