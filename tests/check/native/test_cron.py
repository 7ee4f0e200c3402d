import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.cron import schedule_problem

TABLE = json.loads((Path(__file__).parent / "schedules.json").read_text("utf-8"))


@pytest.mark.parametrize("schedule", TABLE["accepted"])
def test_accepted(schedule: str) -> None:
    assert schedule_problem(schedule) == ""


@pytest.mark.parametrize("schedule", TABLE["refused"])
def test_refused(schedule: str) -> None:
    assert schedule_problem(schedule)


def test_problems_name_the_field() -> None:
    assert schedule_problem("0 25 * * *") == "hour '25' is not between 0 and 23"
    assert schedule_problem("* * * *") == "it has 4 fields, not 5 (minute, hour, day, month, weekday)"


@given(st.text())
def test_any_text_has_an_answer(schedule: str) -> None:
    assert isinstance(schedule_problem(schedule), str)
