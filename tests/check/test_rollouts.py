"""Rollouts and their analyses as they are read: conditions, durations, arguments, templates."""

from __future__ import annotations

import pytest

from blueprint.check.graph import Graph
from blueprint.check.rollouts import Condition, arguments_in, is_go_duration, rollouts, seconds
from tests.check.rules.cases import manifests


@pytest.mark.parametrize(
    ("text", "indexed", "plain"),
    [
        ("result[0] < 1", True, False),
        ("result < 1", False, True),
        ("len(result) > 0 && result[0] < 1", True, False),
        ("all(result, # < 1)", False, False),
        ("isNaN(result) || result < 1", False, True),
        ("asFloat(result) < 1", False, True),
        ("default(result, 0) < 1", False, False),
        ("result.ok && my_result < 1", False, False),
    ],
)
def test_how_a_condition_takes_the_result(text: str, indexed: bool, plain: bool) -> None:
    assert (Condition(text).indexed, Condition(text).plain) == (indexed, plain)


def test_limits_of_a_condition() -> None:
    assert Condition("len(result) > 0 && result[0] >= 0.95 && result[ 0 ] < 1e3").limits == [(">=", 0.95), ("<", 1000)]
    assert Condition("result <= -2").limits == [("<=", -2)]


@pytest.mark.parametrize(
    ("value", "expected"), [("1m30s", 90), ("500ms", 0.5), (60, 60), ("60", 60), ("5 m", None), (None, None)]
)
def test_durations(value: object, expected: float | None) -> None:
    assert seconds(value) == expected


def test_durations_as_go_reads_them() -> None:
    assert is_go_duration("1h2m") and is_go_duration("0")
    assert not is_go_duration("60") and not is_go_duration("1d") and not is_go_duration("")


def test_arguments_are_found_anywhere() -> None:
    body = {"a": ["{{args.x}}", {"b": "p-{{ args.long-name }}-{{args.y}}"}], "c": 1}
    assert list(arguments_in(body)) == ["x", "long-name", "y"]


OBJECTS = """\
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: r, namespace: a}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: d}
  strategy:
    canary:
      analysis:
        templates: [{templateName: one}, {templateName: all, clusterScope: true}]
        args: [{name: x, value: "2"}]
      steps: [{analysis: {templates: [{templateName: gone}]}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: a}
spec: {template: {metadata: {labels: {app: d}}, spec: {containers: []}}}
---
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: one, namespace: a}
spec: {templates: [{templateName: two}], args: [{name: x}, {name: z, value: "1"}], metrics: [{name: m1}]}
---
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: two, namespace: a}
spec: {templates: [{templateName: one}], args: [{name: z}], metrics: [{name: m2, interval: 1m}]}
---
apiVersion: argoproj.io/v1alpha1
kind: ClusterAnalysisTemplate
metadata: {name: all}
spec: {metrics: [{name: m3, count: "3"}]}
"""


def test_templates_are_followed_and_arguments_bound() -> None:
    [rollout] = rollouts(Graph(manifests(OBJECTS)))
    assert rollout.labels == {"app": "d"}
    background, inline = rollout.analyses
    assert [metric.name for metric in background.metrics()] == ["m1", "m3", "m2"]
    assert [(metric.count, metric.endless) for metric in background.metrics()] == [(1, False), (3, False), (None, True)]
    assert {name: row.get("value") for name, row in background.bound().items()} == {"x": "2", "z": "1"}
    assert [ref.name for ref in inline.missing] == ["gone"] and not inline.templates
