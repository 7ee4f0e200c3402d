"""How many replicas follow from a value: the arithmetic of Kubernetes' autoscaler, and what is read off the tree."""

from pathlib import Path

import pytest

from blueprint.conform.suites.scaling import Followed, Scaler, _forgiving, _scaled, expected, followed, scalers
from blueprint.conform.tree import rendered

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tree():
    return rendered(ROOT)


@pytest.mark.parametrize(
    ("value", "now", "replicas"),
    [
        (0, 3, 2),  # its fewest
        (30, 3, 3),  # exactly
        (32.9, 3, 3),  # within the tolerance
        (33.1, 3, 4),  # beyond it, rounded up
        (27.1, 3, 3),  # a little less is within it, too
        (20, 3, 2),
        (41, 2, 5),
        (1000, 3, 6),  # its most
    ],
)
def test_replicas_follow_from_the_value(value, now, replicas):
    assert expected(Scaler({}, Followed("", counts=False), 10, 2, 6), value, now) == replicas


def test_every_scaler_of_the_tree_is_read(tree):
    found = scalers(tree)
    assert {scaler.name for scaler in found} == {body["metadata"]["name"] for body in tree.of_kind("ScaledObject")}
    assert all(scaler.low < scaler.high and scaler.threshold > 0 for scaler in found)
    assert len({scaler.follows.series for scaler in found}) == len(found)


def test_a_scaler_follows_what_is_exposed_and_not_what_is_recorded(tree):
    found = {scaler.name: scaler.follows for scaler in scalers(tree)}
    assert found["assist-8b"].series.startswith("istio_requests_total{") and found["assist-8b"].counts
    assert found["chat-70b"].series.startswith("vllm:num_requests_waiting{") and not found["chat-70b"].counts
    for follows in found.values():
        [rule] = follows.rules
        assert "[6s]" in rule["expr"] and rule["record"].startswith("service:")


@pytest.mark.parametrize("query", ["sum(", "1", "up + up", 'sum(rate(a{b="c"}[1m])) / sum(rate(d[1m]))'])
def test_what_is_not_one_series_is_not_followed(tree, query):
    assert followed(tree, query) is None


def test_what_nobody_records_is_followed_itself(tree):
    assert followed(tree, 'max(a{b="c"})') == Followed('a{b="c"}', counts=False)


def test_only_time_place_and_target_differ_from_the_tree(tree):
    scaler = scalers(tree)[0]
    made, theirs = _scaled(scaler, "http://here")["spec"], scaler.body["spec"]
    for key in ("minReplicaCount", "maxReplicaCount", "fallback"):
        assert made[key] == theirs[key]
    [trigger], [original] = made["triggers"], theirs["triggers"]
    assert {**trigger["metadata"], "serverAddress": ""} == {**original["metadata"], "serverAddress": ""}
    behavior = made["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    slow = theirs["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior["scaleDown"]["policies"][0]["value"] == slow["scaleDown"]["policies"][0]["value"]
    assert (
        behavior["scaleDown"]["policies"][0]["periodSeconds"] * 60 == slow["scaleDown"]["policies"][0]["periodSeconds"]
    )


def test_the_fault_is_in_the_tree(tree):
    assert all(
        body["spec"]["triggers"][0]["metadata"]["ignoreNullValues"] == "true"
        for body in _forgiving(tree).of_kind("ScaledObject")
    )
