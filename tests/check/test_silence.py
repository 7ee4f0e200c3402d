"""Comments silence what they are about, and nothing else."""

from __future__ import annotations

import pytest

from blueprint.catalog.rules import rules
from blueprint.check.silence import comments, silenced
from blueprint.finding import Finding, Source

TEXT = """\
# blueprint: ignore NAM101 everything in this object
apiVersion: v1
kind: Pod
metadata:
  name: a  # blueprint: ignore NAM102, NAM103 this line
spec:
  # blueprint: ignore IMG the whole list
  containers:
  - name: a

    image: x
  - name: b
    image: y
  volumes: []
---
# blueprint: ignore SCH104
apiVersion: v1
items:
- kind: Pod  # blueprint: ignore SIZ this item
  metadata:
    name: b
- kind: Pod
"""


@pytest.mark.parametrize(
    ("line", "codes", "first", "last"),
    [
        (1, ("NAM101",), 1, 14),
        (5, ("NAM102", "NAM103"), 5, 5),
        (7, ("IMG",), 8, 13),
        (16, ("SCH104",), 17, 22),
        (19, ("SIZ",), 19, 21),
    ],
)
def test_what_a_comment_is_about(line: int, codes: tuple[str, ...], first: int, last: int) -> None:
    found = next(comment for comment in comments(TEXT) if comment.line == line)
    assert (found.codes, found.first, found.last) == (codes, first, last)


@pytest.mark.parametrize("code", sorted({*rules(), *(code.rstrip("0123456789") for code in rules())}))
def test_every_code_and_every_family_can_be_named(code: str) -> None:
    found = list(comments(f"kind: Pod  # blueprint: ignore {code} it is known\n"))
    assert [comment.codes for comment in found] == [(code,)]


def test_a_reason_may_begin_with_capitals() -> None:
    found = list(comments("kind: Pod  # blueprint: ignore KQ701, KQ NO GPU IMG here\n"))
    assert [comment.codes for comment in found] == [("KQ701", "KQ")]


def told(*findings: tuple[str, int]) -> tuple[list[tuple[str, int]], int]:
    given = [Finding(code, "x", Source("a.yaml", line)) for code, line in findings]
    kept, count = silenced(given, ["a.yaml"], lambda file: TEXT)
    return [(f.code, f.source.line) for f in kept if f.source], count


def test_findings_are_silenced_by_code_and_place() -> None:
    kept, count = told(("NAM101", 9), ("NAM101", 20), ("NAM102", 5), ("NAM102", 6), ("IMG104", 13), ("IMG104", 14))
    assert kept == [("NAM101", 20), ("NAM102", 6), ("IMG104", 14)]
    assert count == 3


def test_what_is_said_of_the_file_stands_on_its_first_document() -> None:
    assert told(("NAM101", 0), ("SCH104", 0)) == ([("SCH104", 0)], 1)


def test_other_files_and_findings_without_a_place_are_told() -> None:
    given = [Finding("NAM101", "x", Source("b.yaml", 2)), Finding("NAM101", "x")]
    assert silenced(given, ["a.yaml"], lambda file: TEXT) == (given, 0)


@pytest.mark.parametrize("rest", ["", " because", " XXX101", " NAM101 XXX101 because", " nam101"])
def test_a_comment_that_cannot_work_is_told(rest: str) -> None:
    kept, _ = silenced([], ["a.yaml"], lambda file: f"# blueprint: ignore{rest}\na: 1\n")
    assert [(f.code, f.source.line) for f in kept if f.source] == [("YML304", 1)]


def test_a_comment_with_nothing_below_it_does_nothing() -> None:
    assert list(comments("a: 1\n# blueprint: ignore NAM101\n---\nb: 1\n")) == []
    assert list(comments("a: 1\n# blueprint: ignore NAM101\n")) == []


def test_a_comment_above_the_first_separator_is_about_the_first_document() -> None:
    (found,) = comments("# blueprint: ignore NAM101\n\n---\n# more\na: 1\nb: 2\n---\nc: 1\n")
    assert (found.first, found.last) == (1, 6)


def test_a_file_that_is_gone_silences_nothing() -> None:
    given = [Finding("NAM101", "x", Source("a.yaml", 2))]
    assert silenced(given, ["a.yaml"], lambda file: None) == (given, 0)
