"""Between which numbers a value lies, and what follows for a comparison."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint import promql
from blueprint.catalog.series import series
from blueprint.check.bounds import Range, bounds, is_share, verdict

RECORDED = {"job:bad:share": 'sum(rate(http_requests_total{status="5xx"}[5m])) / sum(rate(http_requests_total[5m]))'}


def tree(text: str) -> promql.Node:
    found = promql.read(text).tree
    assert found is not None
    return found


def of(text: str) -> Range | None:
    return bounds(tree(text), series, {name: tree(query) for name, query in RECORDED.items()}.get)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vllm:kv_cache_usage_perc", (0, 1)),
        ("max by (pod) (vllm:kv_cache_usage_perc) * 100", (0, 100)),
        ("sum(vllm:kv_cache_usage_perc)", None),
        ("avg_over_time(DCGM_FI_DEV_GPU_UTIL[5m])", (0, 100)),
        ('1 - sum(rate(a_bucket{le="1.0"}[5m])) / sum(rate(a_count[5m]))', (0, 1)),
        ('(sum(rate(a{s="5"}[5m])) or vector(0)) / sum(rate(a[5m]))', (0, 1)),
        ("sum(rate(a[5m])) / sum(rate(b[5m]))", None),
        ('sum(rate(a{x="1"}[5m])) / sum(rate(a{y="1"}[5m]))', None),
        ("sum(rate(a[5m])) / sum(rate(a[1m]))", None),
        ("job:bad:share", (0, 1)),
        ("max(job:bad:share) > bool 0.5", (0, 1)),
        ("app:error_ratio:rate5m", (0, 1)),
        ("histogram_quantile(0.5, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[5m])))", (0.15, 7680)),
        ("histogram_quantile(0.5, sum by (le) (rate(unknown_bucket[5m])))", None),
        ("rate(vllm:prompt_tokens_total[5m])", None),
    ],
)
def test_ranges(text: str, expected: Range | None) -> None:
    found = of(text)
    assert found == (None if expected is None else pytest.approx(expected))


def test_shares_by_the_same_labels() -> None:
    assert is_share(tree('sum by (a) (rate(x{s="5"}[5m]))'), tree("sum by (a) (rate(x[5m]))"))
    assert not is_share(tree('sum by (a) (rate(x{s="5"}[5m]))'), tree("sum by (b) (rate(x[5m]))"))


COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq}
numbers = st.floats(-100, 100).map(lambda value: round(value, 2))


@given(st.sampled_from(sorted(COMPARE)), numbers, numbers, numbers, st.floats(0, 1))
def test_a_verdict_holds_for_every_value_in_the_range(name: str, limit: float, a: float, b: float, part: float) -> None:
    low, high = min(a, b), max(a, b)
    said = verdict(name, limit, (low, high))
    for value in (low, high, low + (high - low) * part):
        if said is not None and low <= value <= high:
            assert COMPARE[name](value, limit) is said


def test_no_verdict_is_lost() -> None:
    assert verdict(">", 1, (0, 1)) is False
    assert verdict(">", 0.5, (0, 1)) is None
    assert verdict("<", 90, (0, 1)) is True
    assert verdict("==", 2, (0, 1)) is False
    assert verdict("!=", 2, (0, 1)) is None
    assert verdict(">", 5, (0, math.inf)) is None
