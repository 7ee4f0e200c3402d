from xml.etree import ElementTree

from hypothesis import given, settings

from blueprint.finding import Report
from blueprint.report.junit import junit

from .findings import REPORT, RULES
from .wild import reports


def test_what_fails_is_a_failed_test_of_its_file():
    root = ElementTree.fromstring(junit(REPORT, RULES))
    assert (root.get("tests"), root.get("failures")) == ("10", "8")
    suite = next(s for s in root if s.get("name") == "apps/search-ai/reranker-sft.yaml")
    case = suite[0]
    assert case.get("name") == "KQ202 never-admitted PyTorchJob.kubeflow.org search-ai/reranker-sft spec.pytorchReplicaSpecs"  # noqa: E501  # fmt: skip
    assert (case.get("file"), case.get("line")) == ("apps/search-ai/reranker-sft.yaml", "14")
    failure = case.find("failure")
    assert failure.get("message") == "queue cannot ever admit this job"
    assert "fix: borrowingLimit 4 → 8" in failure.text


def test_what_does_not_fail_passes_and_is_told():
    root = ElementTree.fromstring(junit(REPORT, RULES))
    case = next(c for c in root.iter("testcase") if c.get("name").startswith("WAV103"))
    assert case.find("failure") is None
    assert case.find("system-out").text.startswith("argocd/platform.yaml:9:3: warning: wave 4")


def test_nothing_found_is_one_test_that_passes():
    root = ElementTree.fromstring(junit(Report(), RULES))
    assert (root.get("tests"), root.get("failures")) == ("1", "0")
    assert [case.get("name") for case in root.iter("testcase")] == ["no findings"]


@settings(max_examples=50)
@given(reports)
def test_every_report_is_well_formed_and_counts_right(report):
    root = ElementTree.fromstring(junit(report, RULES).encode())
    cases, failures = list(root.iter("testcase")), list(root.iter("failure"))
    assert len(cases) == (len(report.findings) or 1)
    assert len(failures) == sum(f.fails for f in report.findings) == int(root.get("failures"))
    assert sum(int(suite.get("tests")) for suite in root) == len(cases) == int(root.get("tests"))
