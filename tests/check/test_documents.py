"""The fast parser reads what it is given as the exact one does."""

from __future__ import annotations

import math

import pytest
import yaml_rs
from hypothesis import given
from hypothesis import strategies as st

from blueprint.check.documents import suspicious
from blueprint.check.goyaml import Decoder, compose
from blueprint.check.scalars import Json, Unreadable

_WORDS = (
    "no on yes y ~ null true 1 0x1F 1_000 1d 12e3 2026-12-01 1:30 .inf && ! !! & * | > - -- # : :| a:b a: (x) [1d] {a} "
    "{{x}} {on} \"no\" 'no' it's say\" x,y , ] } = << ? % @ `c` \\/ sum(a[5m]) http://a:80/x 8 v1"
)
WORDS = st.sampled_from(_WORDS.split())
VALUES = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
PREFIXES = st.sampled_from(
    ("a: ", "b: ", "c.d/e: ", "- ", "- a: ", "  ", "  b: ", "  - ", "    ", "- - ", "f: |\n  ", "g:\n  h: ")
)
QUOTES = st.sampled_from(("", "", "", '"', "'", "("))
LINES = st.tuples(PREFIXES, QUOTES, VALUES, QUOTES).map("".join)
TEXTS = st.tuples(st.lists(LINES, min_size=1, max_size=5).map("\n".join), st.sampled_from(("", "\n", "\n\n"))).map(
    "".join
)


def exact(text: str) -> Json:
    """What Kubernetes reads."""
    node = compose(text)
    return Decoder().value(node) if node else None


def same(one: Json, two: Json) -> bool:
    """Whether values are equal in type, too."""
    if isinstance(one, float) and isinstance(two, float) and math.isnan(one):
        return math.isnan(two)
    return repr(one) == repr(two)


@given(TEXTS)
def test_what_is_not_suspicious_is_read_alike(text: str) -> None:
    if suspicious(text):
        return
    try:
        fast = yaml_rs.loads(text)
    except ValueError:
        return  # the exact parser decides
    try:
        assert same(fast, exact(text))
    except Unreadable as problem:
        pytest.fail(f"the exact parser refuses it: {problem.remark.message}")


@pytest.mark.parametrize(
    "text",
    [
        "script: |\n  echo no, on or off\n  [ ! -s x ] && exit 1\nname: a\n",
        'query: sum(rate(x{a="b"}[5m])) > 0 and on (pod) y\n',
        "condition: len(result) > 0 && result[0] < 1\n",
        "message: there is no quota on this queue\n",
        'regex: "(vllm:|http_).*"\n',
    ],
)
def test_words_of_texts_are_not_suspicious(text: str) -> None:
    assert not suspicious(text)
    assert same(yaml_rs.loads(text), exact(text))


@pytest.mark.parametrize(
    "text", ["a: no\n", "a: |\n  b", "- on\n", "a: {b: no}\n", "a: [x,\n  no]\n", 'a: "2026-12-01"\n']
)
def test_words_that_are_values_are_suspicious(text: str) -> None:
    assert suspicious(text)
