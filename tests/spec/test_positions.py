"""Paths and the places that they name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.finding import Source
from blueprint.spec.positions import Locator, segments, written
from blueprint.spec.reader import read

TEXT = b"""\
metadata: {name: a}
spec:
  quotas:
    - cluster: prod
      lend: 4
    - {cluster: stage,
       lend: 5}
  labels: {example.com/zone: b, "": c, 'x"]': d}
  note: >
    folded
"""


@pytest.fixture
def locate() -> Locator:
    [text] = read(TEXT, "f.yaml").texts
    return Locator("f.yaml", text.place)


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ("", 1, 1),
        ("metadata", 1, 1),
        ("metadata.name", 1, 12),
        ("spec.quotas", 3, 3),
        ("spec.quotas[0]", 4, 7),
        ("spec.quotas[0].lend", 5, 7),
        ("spec.quotas[1]", 6, 7),
        ("spec.quotas[1].lend", 7, 8),
        ('spec.labels["example.com/zone"]', 8, 12),
        ('spec.labels[""]', 8, 33),
        ('spec.labels["x\\"]"]', 8, 40),
        ("spec.note", 9, 3),
    ],
)
def test_fields_are_found(locate: Locator, path: str, line: int, column: int) -> None:
    assert locate(path) == Source("f.yaml", line, column)


@pytest.mark.parametrize(
    ("path", "line"),
    [("spec.quotas[0].borrow", 4), ("spec.quotas[7].lend", 3), ("spec.rollout.canary[0]", 2), ("status", 1), ("[", 1)],
)
def test_a_field_that_is_not_written_is_where_the_nearest_around_it_is(locate: Locator, path: str, line: int) -> None:
    assert locate(path).line == line


@given(st.lists(st.one_of(st.text(max_size=8), st.integers(0, 10**6)), max_size=6))
def test_paths_read_back(path: list[str | int]) -> None:
    assert segments(written(path)) == tuple(path)


@given(st.text(max_size=30))
def test_any_text_is_some_path(text: str) -> None:
    assert isinstance(segments(text), tuple)
