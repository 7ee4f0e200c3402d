"""Halves: the same results in the same order, whoever did the work."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.halves import each


@given(st.lists(st.integers(), max_size=9), st.booleans())
@settings(deadline=None, max_examples=25)
def test_the_order_is_kept(items: list[int], together: bool) -> None:
    assert each(lambda item: item * 2, items, together=together) == [item * 2 for item in items]


def test_two_processes_work() -> None:
    first, second, third = each(lambda _: os.getpid(), ["a", "b", "c"], together=True)
    assert first == third == os.getpid()
    assert second != first


def test_a_copy_that_dies_or_fails_costs_nothing_but_time() -> None:
    here = os.getpid()

    def work(item: str) -> str:
        if item == "dies" and os.getpid() != here:
            os._exit(9)
        return item

    assert each(work, ["stays", "dies"], together=True) == ["stays", "dies"]
    assert each(lambda item: item if os.getpid() == here else (lambda: item), [1, 2], together=True) == [1, 2]


def test_an_exception_is_raised_here() -> None:
    def work(item: int) -> int:
        raise ValueError(item)

    with pytest.raises(ValueError, match="1"):
        each(work, [1, 2], together=True)
