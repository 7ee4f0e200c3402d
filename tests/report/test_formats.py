import pytest

from blueprint.finding import Report
from blueprint.report import Totals
from blueprint.report.formats import NAMES, written

from .findings import REPORT, RULES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("report", [REPORT, Report()])
def test_every_format_is_written_and_ends_with_a_newline(name, report):
    text = written(name, report, Totals(), RULES, "1.0")
    assert text.endswith("\n")
    assert ("KQ202" in text) is bool(report.findings)


def test_another_name_is_a_mistake_of_ours():
    with pytest.raises(ValueError, match="yaml"):
        written("yaml", REPORT, Totals(), RULES, "1.0")
