"""The file of arrivals: forms of time, tables, and mistakes at their line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from blueprint.errors import UsageError
from blueprint.simulate.arrivals import Arrival, load, seconds


def rows(tmp_path: Path, text: str, name: str = "arrivals.yaml") -> list[tuple[Arrival, int]]:
    """The rows of a file without mistakes, with their lines."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    found, findings = load(file)
    assert [str(finding) for finding in findings] == []
    return [(row, source.line) for row, source in found]


def mistakes(tmp_path: Path, text: str, name: str = "arrivals.yaml") -> list[tuple[str, int, str]]:
    """Code, line and message of what is wrong with a file."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return [(f.code, f.source.line if f.source else 0, f.message) for f in load(file)[1]]


def test_a_list_and_a_mapping_are_alike(tmp_path: Path) -> None:
    row = "{job: Job/a, at: 90, count: 3, every: 10m, duration: 1h30m, priority: high}"
    (listed,) = rows(tmp_path, f"# jobs\n- {row}\n")
    (mapped,) = rows(tmp_path, f"arrivals:\n- {row}\n")
    assert listed == mapped
    row_, line = listed
    assert (line, row_.at, row_.every) == (2, timedelta(seconds=90), timedelta(minutes=10))
    assert (row_.duration, row_.priority, row_.count) == (timedelta(minutes=90), "high", 3)


def test_json_is_read_as_well(tmp_path: Path) -> None:
    ((row, _),) = rows(tmp_path, '[{"job": "Job/a", "at": "2026-11-30T08:00:00Z"}]', "arrivals.json")
    assert row.at == datetime(2026, 11, 30, 8, tzinfo=UTC)


def test_a_table_holds_the_same(tmp_path: Path) -> None:
    text = "job,queue,pods,requests.nvidia.com/gpu,at,count,duration\nJob/a,,,,0,2,3600\n,train,4,8,1h,,2h\n"
    (first, one), (second, two) = rows(tmp_path, text, "arrivals.csv")
    assert (first.job, first.count, first.duration, one) == ("Job/a", 2, timedelta(hours=1), 2)
    assert (second.queue, second.pods, second.requests, two) == ("train", 4, {"nvidia.com/gpu": "8"}, 3)


@pytest.mark.parametrize(
    ("text", "code", "line", "words"),
    [
        ("- {job: Job/a, dur: 1h}\n", "SPC131", 1, "dur"),
        ("- job: Job/a\n  duration: soon\n", "SPC136", 2, "duration"),
        ("- job: Job/a\n- {count: 2}\n", "SPC137", 2, "no job is given"),
        ("- job: Job/a\n  object: {kind: Job}\n", "SPC137", 2, "exclude"),
        ("- {pods: 2, queue: q}\n", "SPC137", 1, "belong together"),
        ("- {pods: 2, requests: {cpu: 1}}\n", "SPC137", 1, "queue"),
        ("- {pods: 2, requests: {cpu: many}, queue: q}\n", "SPC137", 1, "no quantity"),
        ("- {pods: 2, requests: {cpu: -1}, queue: q}\n", "SPC137", 1, "no quantity"),
        ("- {job: Job/a, count: 0}\n", "SPC135", 1, "at least 1"),
        ("- {job: Job/a, at: 1h}\n- {job: Job/b, at: '2026-11-30T08:00:00Z'}\n", "SIM102", 2, "time of day"),
        ("- {job: Job/a, count: 150000}\n- {job: Job/b, count: 150000}\n", "SIM103", 2, "200,000"),
        ("", "SIM101", 1, "no arrivals"),
        ("- [1\n", "SPC103", 1, ""),
    ],
)
def test_mistakes_are_told_at_their_line(tmp_path: Path, text: str, code: str, line: int, words: str) -> None:
    (found,) = mistakes(tmp_path, text)
    assert found[:2] == (code, line)
    assert words in found[2]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("job,count\nJob/a,two\n", "SPC133", 2),
        ("job,cuont\nJob/a,2\n", "SPC131", 2),
        ("job\nJob/a,2\n", "SIM101", 2),
        ('job\n"Job/a\n', "SIM101", 2),
    ],
)
def test_mistakes_in_tables_too(tmp_path: Path, text: str, code: str, line: int) -> None:
    assert [found[:2] for found in mistakes(tmp_path, text, "arrivals.csv")] == [(code, line)]


def test_a_row_that_is_too_long_hides_no_other(tmp_path: Path) -> None:
    text = "job,count\nJob/a,1,2\nJob/b,1\nJob/c,1,2\nJob/d,two\n"
    found = [(code, line) for code, line, _ in mistakes(tmp_path, text, "arrivals.csv")]
    assert found == [("SIM101", 2), ("SIM101", 4), ("SPC133", 5)]


def test_what_cannot_be_read_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "absent.yaml")
    with pytest.raises(UsageError, match="no span"):
        seconds("next week")
    assert seconds("7d") == 7 * 86400
