"""PromQL as plain values: the tree, placeholders, labels, and how many series can come out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint import promql
from blueprint.promql import Aggregate, Binary, Call, Matcher, Number, Select, Subquery


def tree(text: str) -> promql.Node:
    query = promql.read(text)
    assert query.tree is not None, query.error
    return query.tree


def test_every_kind_of_node() -> None:
    assert tree('x{a="1",b!~"2.*"}[5m]') == Select("x", (Matcher("a", "=", "1"), Matcher("b", "!~", "2.*")), 300)
    assert tree('{__name__="x"}') == Select("x", ())
    assert tree("-3") == Number(-3)
    assert tree("-x") == Binary("*", Number(-1), Select("x", ()))
    assert tree("(sum without (a) (x))") == Aggregate("sum", Select("x", ()), None, None, ("a",))
    assert tree("topk(2, x)") == Aggregate("topk", Select("x", ()), Number(2), None, None)
    assert tree("rate(x[5m:1m])") == Call("rate", (Subquery(Select("x", ()), 300, 60),))
    joined = tree("a * on(n) group_left(l) b")
    assert isinstance(joined, Binary)
    assert (joined.on, joined.ignoring, joined.grouped, joined.included) == (("n",), None, "left", ("l",))
    ignoring = tree("a == bool ignoring(n) b")
    assert isinstance(ignoring, Binary)
    assert (ignoring.on, ignoring.ignoring, ignoring.returns_bool) == (None, ("n",), True)


@pytest.mark.parametrize(
    "text",
    [
        "rate(x[$__rate_interval])",
        "rate(x[${window}])",
        "rate(x[[[window]]])",
        'rate(x{a="{{args.hash}}"}[{{.window}}])',
        "sum by ($group) (x) > $limit",
        "histogram_quantile($quantile, sum by (le) (rate(x_bucket[5m])))",
    ],
)
def test_placeholders_stand_for_something_unknown(text: str) -> None:
    query = promql.read(text)
    assert query.template and query.tree is not None and not query.error
    for select, _ in promql.selects(query.tree):
        assert select.window in {None, 0.0, 300.0}
        assert all(matcher.filled for matcher in select.matchers)
        assert select.value("a") is None


def test_a_threshold_that_is_filled_in_is_a_number_of_no_value() -> None:
    limit = tree("x > $limit")
    assert isinstance(limit, Binary) and limit.right == Number(0, filled=True)
    assert promql.constant(limit.right) is None


@pytest.mark.parametrize(
    "text", ["$metric[", "{{ x }}{{", "rate(x[5m*2])", "increase(x[1m] anchored)", "größe", "a.b.c"]
)
def test_what_may_be_right_elsewhere_is_no_error(text: str) -> None:
    query = promql.read(text)
    assert query.tree is None and query.error == ""


@pytest.mark.parametrize("text", ["sum by (le (x)", "rate(x)", "1 +", "", "sum(x) by"])
def test_what_is_wrong_everywhere_is_an_error(text: str) -> None:
    assert promql.read(text).error


@pytest.mark.parametrize(
    ("text", "single"),
    [
        ("sum(x)", True),
        ("sum by (a) (x)", False),
        ("x", False),
        ("1 - sum(x) / sum(y)", True),
        ("histogram_quantile(0.9, sum by (le) (rate(x_bucket[5m])))", True),
        ("histogram_quantile(0.9, sum by (le, pod) (rate(x_bucket[5m])))", False),
        ("sum(x) or vector(0)", True),
        ("sum(x) or y", False),
        ("topk(1, x)", True),
        ("topk(1, x) by (pod)", False),
        ("topk(3, x)", False),
        ("scalar(x)", True),
        ("absent(x)", True),
        ('label_replace(sum(x), "a", "b", "c", "d")', True),
        ("sum(x) > 5 and sum(y) < 1", True),
        ("max_over_time(sum(x)[5m:])", True),
        ('count_values("v", x)', False),
    ],
)
def test_whether_one_series_comes_out(text: str, single: bool) -> None:
    assert promql.single(tree(text)) is single


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("sum by (a, b) (x)", {"a", "b"}),
        ("sum(x) * 2", set()),
        ("sum by (a) (x) / on(a) group_left(c) sum by (a) (y)", {"a", "c"}),
        ("sum by (a) (x) and sum by (b) (y)", {"a"}),
        ("sum without (b) (sum by (a, b) (x))", {"a"}),
        ("x", None),
        ("absent(x)", None),
    ],
)
def test_the_labels_that_stay(text: str, labels: set[str] | None) -> None:
    assert promql.labels(tree(text)) == (None if labels is None else frozenset(labels))


@pytest.mark.parametrize(("text", "value"), [("14.4 * (1 - 0.9)", 1.44), ("2 ^ 3", 8), ("1 / 0", None), ("x", None)])
def test_constants(text: str, value: float | None) -> None:
    found = promql.constant(tree(text))
    assert found == (value if value is None else pytest.approx(value))


@given(st.text(alphabet="sumrate()[]{}<>=\"'5mx,+- by$._:1", max_size=60))
def test_any_text_has_an_answer(text: str) -> None:
    query = promql.read(text)
    assert query.tree is None or not query.error
    if query.tree is not None:
        promql.single(query.tree)
        promql.constant(query.tree)


def test_a_text_without_end_is_left_alone() -> None:
    for text in ("(" * 100_000, "-" * 50_000 + "x", "x + " * 20_000 + "x"):
        assert promql.read(text).tree is None
