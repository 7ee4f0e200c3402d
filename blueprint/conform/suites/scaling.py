"""Scaling: KEDA and Kubernetes' own autoscaler, by the tree's triggers and limits, on what a real Prometheus records by
the tree's rules of the series that pods and proxies expose.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from blueprint.conform.client import Target
from blueprint.conform.components.keda import ADAPTER, OPERATOR, external_metrics
from blueprint.conform.components.kueue import KUEUE, TRAINING
from blueprint.conform.components.rollouts import PROMETHEUS, load_rules
from blueprint.conform.exporter import Loads, fixed, named, shortened
from blueprint.conform.stage import Fault, Stage, Suite, WrongAnswerError, accepted, condition, holds
from blueprint.conform.tree import Tree
from blueprint.promql import Call, read, selects
from blueprint.quantity import parse_quantity

Body = dict[str, Any]

_SPACE = "conform-scaling"
_MINUTE = 60
"""Windows of a cluster are divided by this: its minutes are seconds here."""
_WINDOW = "6s"
"""The windows of recording rules, though: a rate wants several scrapes, of which there is one a second."""
_RATES = frozenset({"rate", "irate", "increase"})
_TOLERANCE = 0.1
"""kube-controller-manager v1.35.4 --horizontal-pod-autoscaler-tolerance."""
_LITTLE, _NEAR = 1.05, 0.02
"""A little more, and how near to it a rate over scrapes comes: together well within the tolerance."""
_STRETCH = 3
"""Times the patience of a stage: going down takes one window for each pod."""


@dataclass(frozen=True, slots=True)
class Scaler:
    """A ScaledObject of the tree: what its trigger follows, the value for one replica, and its limits."""

    body: Body
    follows: Followed
    threshold: float
    low: int
    high: int

    @property
    def name(self) -> str:
        """Its name, which its Deployment here bears, too."""
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Followed:
    """The one exposed series that a query comes from, whether it counts, and the recording rules in between."""

    series: str
    counts: bool
    rules: tuple[Body, ...] = ()


def followed(tree: Tree, query: str) -> Followed | None:
    """What a query follows, through the tree's recording rules; None where that is not one series."""
    parsed = read(query).tree
    found = list(selects(parsed)) if parsed is not None else []
    if len(found) != 1:
        return None
    [(select, above)] = found
    labels = fixed(select)
    for rule in (r for b in tree.of_kind("PrometheusRule") for g in b["spec"]["groups"] for r in g["rules"]):
        if rule.get("record") == select.metric and labels.items() <= rule.get("labels", {}).items():
            below = followed(tree, rule["expr"])
            return below and replace(below, rules=(*below.rules, {**rule, "expr": shortened(rule["expr"], _WINDOW)}))
    counts = any(isinstance(node, Call) and node.function in _RATES for node in above)
    return Followed(named(select.metric, labels), counts)


def scalers(tree: Tree) -> list[Scaler]:
    """The ScaledObjects with one trigger on Prometheus that follows one series, counted for each replica."""
    found = []
    for body in tree.of_kind("ScaledObject"):
        spec = body["spec"]
        [trigger, *more] = spec["triggers"]
        if more or trigger["type"] != "prometheus" or trigger.get("metricType", "AverageValue") != "AverageValue":
            continue
        if follows := followed(tree, trigger["metadata"]["query"]):
            threshold = float(trigger["metadata"]["threshold"])
            found.append(Scaler(body, follows, threshold, spec["minReplicaCount"], spec["maxReplicaCount"]))
    return found


def expected(scaler: Scaler, value: float, now: int) -> int:
    """How many replicas follow from a value and how many there are now, without limits on speed.

    Source: kubernetes v1.35.4 pkg/controller/podautoscaler/replica_calculator.go GetExternalPerPodMetricReplicas.
    """
    ratio = value / (scaler.threshold * now)
    wanted = now if abs(1 - ratio) <= _TOLERANCE else math.ceil(value / scaler.threshold)
    return min(max(wanted, scaler.low), scaler.high)


def run(stage: Stage) -> None:
    """Every scaler of the tree at once, through values that mean more, less, the same, too much and nothing."""
    found = scalers(stage.tree)
    stage.local.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _SPACE}}])
    with stage.case("the operator, the server of metrics and Prometheus start") as case:
        if not stage.local.runs(PROMETHEUS.name):
            stage.local.start(PROMETHEUS)
        stage.local.start(OPERATOR)
        stage.local.start(ADAPTER)
        service, api = external_metrics(stage.local.ground(ADAPTER.name))
        stage.local.create([service, api])
        stage.until(api, lambda b: holds(b, "Available"), stage.patience, "the external metrics to be served")
        case.said = "keda, keda-adapter, prometheus"
        load_rules(stage.local.ground(PROMETHEUS.name), [rule for scaler in found for rule in scaler.follows.rules])
    prometheus = stage.local.ground(PROMETHEUS.name).ports
    counters = frozenset(scaler.follows.series for scaler in found if scaler.follows.counts)
    with Loads(prometheus["exporter"], counters) as exporter:
        exporter.values |= {scaler.follows.series: 0.0 for scaler in found}
        for scaler in found:
            address = f"http://127.0.0.1:{prometheus['serve']}"
            accepted(stage.client.create(_deployment(scaler)), f"Deployment {scaler.name}")
            accepted(stage.client.create(_scaled(scaler, address)), f"ScaledObject {scaler.name}")
        _values(stage, found, exporter)


def _values(stage: Stage, found: list[Scaler], exporter: Loads) -> None:
    def expose(value: Callable[[Scaler], float]) -> None:
        exporter.values |= {scaler.follows.series: value(scaler) for scaler in found}

    with stage.case("without load it has its fewest, and KEDA says that it is ready") as case:
        for scaler in found:
            stage.until(_scaled(scaler, ""), lambda b: holds(b, "Ready"), stage.patience, f"{scaler.name} to be Ready")
        case.said = _all(stage, found, lambda s: s.low)
    with stage.case("load of several replicas gives that many") as case:
        expose(lambda s: s.threshold * (s.low + 1.5))
        case.said = _all(stage, found, lambda s: expected(s, s.threshold * (s.low + 1.5), s.low))
    with stage.case("a little more changes nothing", negative=True) as case:
        there = {s.name: expected(s, s.threshold * (s.low + 1.5), s.low) for s in found}
        expose(lambda s: s.threshold * there[s.name] * _LITTLE)
        for scaler in found:
            _seen(stage, scaler, scaler.threshold * _LITTLE)
        case.said = _all(stage, found, lambda s: there[s.name])
    with stage.case("never more than its most", negative=True) as case:
        expose(lambda s: s.threshold * s.high * 10)
        for scaler in found:
            _autoscaler(stage, scaler, lambda b: _limited(b, "TooManyReplicas"), "the limit to be met")
        case.said = _all(stage, found, lambda s: s.high)
    with stage.case("without a metric nothing is taken away", negative=True) as case:
        exporter.values.clear()
        for scaler in found:
            stage.until(
                _scaled(scaler, ""), lambda b: holds(b, "Fallback"), stage.patience, f"{scaler.name} to fall back"
            )
        case.said = _all(stage, found, lambda s: s.high)
    with stage.case("when the load is gone it goes down again, to its fewest") as case:
        expose(lambda s: s.threshold * 0.5)
        case.said = _all(stage, found, lambda s: s.low)


def _all(stage: Stage, found: list[Scaler], wanted: Callable[[Scaler], int]) -> str:
    """Wait until each Deployment has what is wanted; says it."""
    words = []
    for scaler in found:
        count = wanted(scaler)
        _autoscaler(stage, scaler, lambda b, n=count: _counts(b) == (n, n), f"{count} replicas of {scaler.name}")  # type: ignore[misc]
        body = accepted(stage.client.get(Target("apps/v1", "Deployment", _SPACE, scaler.name)), scaler.name).body
        if body["spec"]["replicas"] != count:
            raise WrongAnswerError(f"{scaler.name} has {body['spec']['replicas']} replicas, not {count}")
        words.append(f"{scaler.name} {count}")
    return ", ".join(words)


def _autoscaler(stage: Stage, scaler: Scaler, seen: Callable[[Body], bool], what: str) -> Body:
    target = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    meta = {"name": f"keda-hpa-{scaler.name}", "namespace": _SPACE}
    return stage.until({**target, "metadata": meta}, lambda b: bool(b) and seen(b), stage.patience * _STRETCH, what)


def _counts(autoscaler: Body) -> tuple[int, int]:
    status = autoscaler.get("status") or {}
    return status.get("currentReplicas", -1), status.get("desiredReplicas", -1)


def _limited(autoscaler: Body, reason: str) -> bool:
    return condition(autoscaler, "ScalingLimited").get("reason") == reason


def _seen(stage: Stage, scaler: Scaler, average: float) -> None:
    """Wait until the autoscaler has read a value for each replica."""

    def read(body: Body) -> bool:
        rows = (body.get("status") or {}).get("currentMetrics") or ()
        values = [row["external"]["current"].get("averageValue") for row in rows if row.get("type") == "External"]
        return any(value and abs(float(parse_quantity(value)) - average) < average * _NEAR for value in values)

    _autoscaler(stage, scaler, read, f"{average:g} for each replica of {scaler.name} to be read")


def _deployment(scaler: Scaler) -> Body:
    labels = {"app": scaler.name}
    container = {"name": "c", "image": f"registry.example.com/serving/vllm@sha256:{'1' * 64}"}
    pod = {"containers": [container], "tolerations": [{"operator": "Exists"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": scaler.name, "namespace": _SPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _scaled(scaler: Scaler, address: str) -> Body:
    """The tree's ScaledObject; only time is shorter, Prometheus elsewhere, and a Deployment of here is scaled."""
    made = copy.deepcopy(scaler.body)
    made["metadata"] = {"name": scaler.name, "namespace": _SPACE}
    spec = made["spec"]
    spec |= {"pollingInterval": 1, "scaleTargetRef": {"name": scaler.name}}
    spec["triggers"][0]["metadata"]["serverAddress"] = address
    behavior = ((spec.get("advanced") or {}).get("horizontalPodAutoscalerConfig") or {}).get("behavior") or {}
    for direction in behavior.values():
        if "stabilizationWindowSeconds" in direction:
            direction["stabilizationWindowSeconds"] //= _MINUTE
        for policy in direction.get("policies") or ():
            policy["periodSeconds"] = max(1, policy["periodSeconds"] // _MINUTE)
    return made


def _forgiving(tree: Tree) -> Tree:
    """Scalers for which no answer means no load."""

    def put(body: Body) -> None:
        body["spec"]["triggers"][0]["metadata"]["ignoreNullValues"] = "true"

    return tree.changed("ScaledObject", put)


SUITE = Suite(
    name="scaling",
    title="Replicas follow the tree's triggers, within its limits",
    run=run,
    needs=(KUEUE, TRAINING),
    starts=(PROMETHEUS, OPERATOR, ADAPTER),
    faults=(Fault("a scaler that takes silence for no load", _forgiving, "without a metric"),),
    elsewhere="it starts its own KEDA and Prometheus",
)
