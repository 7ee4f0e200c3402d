"""One look-up for what Prometheus' series are."""

from __future__ import annotations

import pytest

from blueprint.catalog.series import absent, boundary, series


@pytest.mark.parametrize(
    ("name", "kind", "part", "grows"),
    [
        ("vllm:prompt_tokens_total", "counter", "", True),
        ("vllm:num_requests_waiting", "gauge", "", False),
        ("vllm:iteration_tokens_total", "histogram", "", False),
        ("vllm:iteration_tokens_total_bucket", "counter", "bucket", True),
        ("vllm:e2e_request_latency_seconds_sum", "counter", "sum", True),
        ("istio_request_duration_milliseconds_bucket", "counter", "bucket", True),
        ("DCGM_FI_DEV_XID_ERRORS", "gauge", "", False),
        ("keda_trigger_registered_total", "gauge", "", False),
        ("anything_total", "counter", "", True),
    ],
)
def test_types(name: str, kind: str, part: str, grows: bool) -> None:
    found = series(name)
    assert found is not None
    assert (found.type, found.part, found.grows) == (kind, part, grows)


def test_names_that_tell_nothing() -> None:
    assert series("uptime") is None
    assert series("vllm:never_heard_of") is None
    found = series("other_total")
    assert found is not None and not found.sure


def test_absence_by_version() -> None:
    gone = absent("vllm:gpu_cache_usage_perc", ["0.33.0"])
    assert gone is not None and gone.instead == "vllm:kv_cache_usage_perc" and not gone.hidden
    hidden = absent("vllm:gpu_cache_usage_perc", ["0.11.2"])
    assert hidden is not None and hidden.hidden
    assert absent("vllm:gpu_cache_usage_perc", ["0.10.2", "0.33.0"]) is None
    assert absent("vllm:gpu_cache_usage_perc", []) is None
    assert absent("vllm:gpu_cache_usage_perc", ["9.9.9"]) is None
    assert absent("something_else", ["0.33.0"]) is None


def test_boundaries_as_the_label_writes_them() -> None:
    assert [boundary(each) for each in (5, 0.75, 1000)] == ["5.0", "0.75", "1000.0"]
