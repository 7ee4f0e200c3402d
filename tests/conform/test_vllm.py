"""The model that answers nobody: its series say what its mode says."""

import re

import pytest

from blueprint.conform.vllm import Mode, Simulator, Version

HASH = {"rollouts_pod_template_hash": "abc"}
LATE = (
    'sum(rate(vllm:time_to_first_token_seconds_bucket{namespace="chat",rollouts_pod_template_hash="{{args.h}}",'
    'le="0.75"}[10s])) / sum(rate(vllm:time_to_first_token_seconds_count{namespace="chat"}[10s]))'
)
FAILED = 'sum(rate(istio_requests_total{reporter="destination",response_code=~"5.."}[10s]))'


def series(mode, seconds=10.0):
    simulator = Simulator(0, (LATE, FAILED), [Version(HASH, mode, since=0.0)])
    lines = simulator.text(seconds).splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def one(found, pattern):
    [value] = [value for name, value in found.items() if re.search(pattern, name)]
    return value


@pytest.mark.parametrize(("mode", "share"), [(Mode.GOOD, 0.995), (Mode.SLOW, 0.5)])
def test_a_slow_version_answers_late(mode, share):
    found = series(mode)
    assert one(found, r'_bucket.*le="0\.75"') / one(found, "_count") == pytest.approx(share)
    assert one(found, r'_bucket.*le="\+Inf"') == one(found, "_count")


@pytest.mark.parametrize(("mode", "failed"), [(Mode.GOOD, 0), (Mode.FAILING, 60)])
def test_a_failing_version_fails(mode, failed):
    assert one(series(mode), "response_code=.503") == pytest.approx(failed)


def test_without_traffic_there_is_nothing():
    assert series(Mode.IDLE) == {}


def test_series_bear_the_labels_of_the_query_and_of_the_version():
    for name in series(Mode.GOOD):
        assert 'rollouts_pod_template_hash="abc"' in name
        assert "{{" not in name


def test_counters_grow():
    early, late = series(Mode.GOOD, 5.0), series(Mode.GOOD, 6.0)
    assert early.keys() == late.keys()
    assert sum(late.values()) > sum(early.values())
