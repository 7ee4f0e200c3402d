import re

from hypothesis import given, settings

from blueprint.finding import Finding, Report, Severity, Source
from blueprint.report import Totals
from blueprint.report.github import commands

from .findings import REPORT, RULES
from .wild import reports

COMMAND = re.compile(r"::(error|warning|notice) title=[^:,]*(,(file|line|col)=[^:,]*)*::.*")


def test_golden():
    lines = commands(REPORT, Totals(10), RULES).splitlines()
    assert lines[7] == (
        "::error title=KQ202 never-admitted,file=apps/search-ai/reranker-sft.yaml,line=14::"
        "queue cannot ever admit this job%0APyTorchJob reranker-sft asks 24 nvidia.com/gpu (3 podsets: 8 + 8 + 8)%0A"
        "h100-train   16 nominal + 4 borrowable = 20   ← binds: borrowingLimit 4%0A"
        "PyTorchJob.kubeflow.org search-ai/reranker-sft · spec.pytorchReplicaSpecs%0Afix: borrowingLimit 4 → 8"
    )
    assert lines[8] == (
        "::warning title=WAV103,file=argocd/platform.yaml,line=9,col=3::wave 4 does not wait for wave 3"
    )
    assert lines[-1] == "10 objects · 10 findings (8 errors, 1 warning, 1 note)"


def test_values_are_escaped():
    found = Finding("NAM101", "50%\n::error::no", Source("a,b:c.yaml", 1))
    (line, _) = commands(Report.of([found]), Totals(), RULES).splitlines()
    assert line == "::error title=NAM101,file=a%2Cb%3Ac.yaml,line=1::50%25%0A::error::no"


def test_beyond_the_limit_findings_are_plain_lines():
    found = [Finding("NAM101", str(n), Source("::error::x", n), Severity.WARNING) for n in range(1, 31)]
    lines = commands(Report.of(found), Totals(), RULES).splitlines()
    assert sum(line.startswith("::warning") for line in lines) == 10
    assert sum(line.startswith("- ::error::x:") for line in lines) == 20


@settings(max_examples=50)
@given(reports)
def test_every_line_is_one_command_or_none(report):
    *lines, _ = commands(report, Totals(), RULES, each=2).splitlines()
    assert len(lines) == len(report.findings)
    assert all(COMMAND.fullmatch(line) or line.startswith("- ") for line in lines)
