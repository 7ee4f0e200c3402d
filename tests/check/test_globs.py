"""Globs, as Argo CD and policy engines read them."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.check.globs import glob


@pytest.mark.parametrize(
    ("pattern", "value", "separators", "takes"),
    [
        ("https://git.example.com/*", "https://git.example.com/a", "/", True),
        ("https://git.example.com/*", "https://git.example.com/a/b", "/", False),
        ("https://git.example.com/**", "https://git.example.com/a/b", "/", True),
        ("*", "a/b", "", True),
        ("team-?", "team-a", "", True),
        ("team-?", "team-ab", "", False),
        ("{dev,test}-*", "test-1", "", True),
        ("{dev,test}-*", "prod-1", "", False),
        ("[a-c]x", "bx", "", True),
        ("[!a-c]x", "bx", "", False),
        ("a.b", "axb", "", False),
        ("a[", "a[", "", True),
        (r"a\*", "a*", "", True),
    ],
)
def test_globs(pattern: str, value: str, separators: str, takes: bool) -> None:
    assert glob(pattern, value, separators) is takes


@given(st.text("ab*?[]{},/\\", max_size=12), st.text("ab/", max_size=8))
def test_any_pattern_is_read(pattern: str, value: str) -> None:
    glob(pattern, value, "/")
    glob(pattern, value)


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=8))
def test_without_separators_it_is_the_shell_s(pattern: str, value: str) -> None:
    assert glob(pattern, value) is fnmatch.fnmatchcase(value, pattern)
