"""References of images, as a registry reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.check.images import image

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("text", "repository", "tag", "digest"),
    [
        ("nginx", "nginx", "", ""),
        ("nginx:1.27", "nginx", "1.27", ""),
        ("localhost:5000/a/b:1", "localhost:5000/a/b", "1", ""),
        (f"registry.example.com/a/b:1@{DIGEST}", "registry.example.com/a/b", "1", DIGEST),
        (f"Registry.Example.com/a@{DIGEST}", "Registry.Example.com/a", "", DIGEST),
        ("[::1]:5000/a:1", "[::1]:5000/a", "1", ""),
        ("a__b/c-d.e:v1_2", "a__b/c-d.e", "v1_2", ""),
        (f"registry.example.com/{'a' * 255}:1", f"registry.example.com/{'a' * 255}", "1", ""),
    ],
)
def test_parts(text: str, repository: str, tag: str, digest: str) -> None:
    assert image(text)[:3] == (repository, tag, digest)
    assert not image(text).problem


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("https://a/b", "scheme"),
        ("a b", "blanks"),
        ("registry.example.com/Team/a", "lower-case"),
        ("a@sha256:abc", "digest"),
        (f"a@sha256:{'a' * 63}", "64 hexadecimal digits"),
        ("0123456789abcdef" * 4, "identifier"),
        ("a" * 248, "256 characters"),
        (f"registry.example.com/{'a' * 256}:1", "256 characters"),
        ("a:-x", "form"),
        ("", "form"),
        ("a" * 600, "form"),
    ],
)
def test_problems(text: str, why: str) -> None:
    assert why in image(text).problem
    assert image(text).repository == ""


@given(st.text(max_size=40))
def test_any_text_is_an_image_or_has_a_problem(text: str) -> None:
    parts = image(text)
    assert bool(parts.problem) is not bool(parts.repository)
