"""Autoscalers that act, and wrongly: arithmetic of queries, what wakes them, what they do to a canary and a quota.

Sources: keda v2.21.0 pkg/scalers/prometheus_scaler.go (one series, empty results), pkg/scaling; the formula of the
HorizontalPodAutoscaler (kubernetes.io docs/tasks/run-application/horizontal-pod-autoscale); argo-rollouts v1.10.2
pkg/apis/rollouts/v1alpha1/types.go (HPAReplicas).
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint import promql
from blueprint.catalog.series import series
from blueprint.check.allowances import limits, plain
from blueprint.check.bounds import bounds
from blueprint.check.engines import engines
from blueprint.check.graph import Graph
from blueprint.check.queries import Written, queries, recorded
from blueprint.check.rollouts import Rollout
from blueprint.check.rules.of_query import doubt, fault
from blueprint.check.rules.say import note, say, warn
from blueprint.check.scalers import Scaler, metric_type, scalers
from blueprint.check.shapes import mapping, maps, number, text
from blueprint.finding import Finding
from blueprint.promql import Aggregate, Binary, Call, Node, Select

_SHARES = ((0, 1),)
_FROM_OUTSIDE = ("router", "gateway", "epp", "ingress", "envoy", "proxy")


def _scaled(graph: Graph) -> Iterator[tuple[Scaler, Written]]:
    by_manifest = {id(scaler.manifest): scaler for scaler in scalers(graph)}
    for written in queries(graph):
        if written.role == "scaler" and id(written.manifest) in by_manifest:
            yield by_manifest[id(written.manifest)], written


def several_series(graph: Graph) -> Iterator[Finding]:
    """SCL201: a query that gives a series for each pod; from the second on the scaler ends in an error."""
    for _, written in _scaled(graph):
        tree = written.tree
        if tree is None or promql.single(tree) or promql.is_scalar(tree):
            continue
        if any(":" in each.metric and not each.metric.startswith("vllm:") for each, _ in promql.selects(tree)):
            continue
        message = "the query gives a series for each pod; with more than one KEDA gives up with an error"
        yield fault("SCL201", written, message, "sum(…) around it")


def averages(graph: Graph) -> Iterator[Finding]:
    """SCL202, SCL203: a value is divided by the replicas that is an average already, or no amount at all."""
    for scaler, written in _scaled(graph):
        tree = written.tree
        if (
            tree is None
            or metric_type(written.body) != "AverageValue"
            or mapping(mapping(scaler.spec.get("advanced")).get("scalingModifiers"))
        ):
            continue
        if isinstance(tree, Aggregate) and tree.op == "avg":
            message = "the average is divided by the replicas once more, since AverageValue is the default"
            yield fault("SCL202", written, message, "sum(…), or metricType: Value")
        elif what := _no_amount(tree):
            message = f"{what} is no amount to be divided by the replicas, as AverageValue does"
            yield fault("SCL203", written, message, "metricType: Value")
        elif bounds(tree, series, graph.derived(recorded).get) in _SHARES:
            message = "a share between 0 and 1 is no amount to be divided by the replicas, as AverageValue does"
            yield fault("SCL203", written, message, "metricType: Value")


def _no_amount(tree: Node) -> str:
    match tree:
        case Call("histogram_quantile", _):
            return "a latency"
        case Aggregate(("max" | "min" | "quantile") as op, _):
            return f"a {op}"
        case Call("scalar" | "ceil" | "floor" | "avg_over_time" | "max_over_time", args) if args:
            return _no_amount(args[0])
        case Binary("or", left, _):
            return _no_amount(left)
    return ""


def silent_outages(graph: Graph) -> Iterator[Finding]:
    """SCL204: no answer counts as 0, so that an outage of Prometheus takes replicas away."""
    for scaler, written in _scaled(graph):
        if text(mapping(written.body.get("metadata")).get("ignoreNullValues")).lower() in {"false", "f", "0"}:
            continue
        if scaler.least is not None and scaler.most is not None and scaler.least >= scaler.most:
            continue
        fallback = "; the fallback does not come in then" if scaler.spec.get("fallback") else ""
        message = f"nothing counts as 0 here: a renamed metric or an empty Prometheus scales to the least{fallback}"
        yield doubt("SCL204", written, message, 'ignoreNullValues: "false", and a fallback')


def sleepers(graph: Graph) -> Iterator[Finding]:
    """SCL205: at 0 replicas the only signal is gone, since it comes from the pods themselves."""
    inside: dict[int, list[bool]] = {}
    scaled: dict[int, Scaler] = {}
    for scaler, written in _scaled(graph):
        scaled[id(scaler.manifest)] = scaler
        inside.setdefault(id(scaler.manifest), []).append(_from_pods(graph, written.tree))
    for key, verdicts in inside.items():
        scaler = scaled[key]
        asleep = scaler.least == 0 or scaler.spec.get("idleReplicaCount") == 0
        others = [t for t in scaler.triggers if text(t.get("type")) not in {"prometheus", "cpu", "memory"}]
        if asleep and all(verdicts) and not others:
            said = "minReplicaCount is 0" if "minReplicaCount" in scaler.spec else "minReplicaCount is 0 by default"
            if scaler.spec.get("idleReplicaCount") == 0:
                said = "idleReplicaCount is 0"
            message = f"{said}, and every signal comes from the pods that are gone then: it never wakes"
            fix = "minReplicaCount: 1, or a metric of the gateway"
            yield say("SCL205", scaler.manifest, message, "spec.minReplicaCount", fix)


def _from_pods(graph: Graph, tree: Node | None, depth: int = 0) -> bool:
    """Whether all that a query reads is exposed by vLLM's own pods."""
    if tree is None or depth > 4:
        return False
    for select, _ in promql.selects(tree):
        behind = graph.derived(recorded).get(select.metric)
        if behind is not None:
            if not _from_pods(graph, behind, depth + 1):
                return False
            continue
        found = series(select.metric)
        if found is None or found.by != "vllm" or _elsewhere(select):
            return False
    return True


def _elsewhere(select: Select) -> bool:
    return any(word in matcher.value for matcher in select.matchers for word in _FROM_OUTSIDE)


def inflated_by_canary(graph: Graph) -> Iterator[Finding]:
    """SCL206: an autoscaler counts the pods of a canary, whose number is a share of what the autoscaler sets."""
    for scaler in scalers(graph):
        if scaler.workload is None or scaler.workload.kind != "Rollout":
            continue
        rollout = Rollout(graph, scaler.workload)
        weighted = any(mapping(step.get("setCanaryScale")).get("weight") for step in rollout.steps)
        if weighted and rollout.canary.get("dynamicStableScale") is not True:
            message = f"it counts the canary of {rollout.manifest.ref.name}, too, which is a share of what it sets"
            fix = "setCanaryScale.replicas, or dynamicStableScale: true"
            yield warn("SCL206", scaler.manifest, message, "spec.scaleTargetRef", fix)


def poor_signals(graph: Graph) -> Iterator[Finding]:
    """SCL207: CPU, memory or GPU utilisation of a model server, which say little about its load."""
    serving = {id(engine.manifest) for engine in engines(graph)}
    for _, written in _scaled(graph):
        if written.tree and any(each.metric.startswith("DCGM_FI_DEV_GPU_UTIL") for each, _ in written.selects):
            message = "GPU utilisation is near 100 at low load and at high load: it is no signal for a model server"
            yield doubt("SCL207", written, message, "waiting or running requests, or the use of the cache")
    for scaler in scalers(graph):
        if scaler.workload is None or id(scaler.workload) not in serving:
            continue
        for index, trigger in enumerate(scaler.triggers):
            if text(trigger.get("type")) in {"cpu", "memory"}:
                yield _poor(scaler, f"spec.triggers[{index}].type", text(trigger.get("type")))
        for index, metric in enumerate(maps(scaler.spec.get("metrics"))):
            name = text(mapping(metric.get("resource") or metric.get("containerResource")).get("name"))
            if name in {"cpu", "memory"}:
                yield _poor(scaler, f"spec.metrics[{index}]", name)


def _poor(scaler: Scaler, path: str, name: str) -> Finding:
    message = f"the {name} of a server of models says little about how many requests wait"
    return warn("SCL207", scaler.manifest, message, path, "waiting or running requests")


def beyond_quota(graph: Graph) -> Iterator[Finding]:
    """SCL208: at its maximum a workload asks for more accelerators than its namespace or queue can ever have."""
    for scaler in scalers(graph):
        if scaler.workload is None or scaler.most is None:
            continue
        for resource, each in scaler.accelerators.items():
            asked = scaler.most * each
            for limit, where in limits(graph, scaler.workload, scaler.pods, resource):
                if asked > limit:
                    fit = int(limit // each)
                    message = f"{scaler.most} replicas need {asked} {resource}, and {where} has {plain(limit)}"
                    name = "maxReplicaCount" if scaler.by_keda else "maxReplicas"
                    yield warn("SCL208", scaler.manifest, message, f"spec.{name}", f"{fit}, or a larger quota")
                    break


def hasty_scaling(graph: Graph) -> Iterator[Finding]:
    """SCL209: replicas that take minutes to load are taken away at once when the load falls."""
    serving = {id(engine.manifest) for engine in engines(graph)}
    for scaler in scalers(graph):
        own = mapping(mapping(scaler.spec.get("advanced")).get("horizontalPodAutoscalerConfig"))
        behavior = mapping(own.get("behavior")) if scaler.by_keda else mapping(scaler.spec.get("behavior"))
        window = number(mapping(behavior.get("scaleDown")).get("stabilizationWindowSeconds"))
        if window is not None and window < 120 and scaler.workload is not None and id(scaler.workload) in serving:
            message = f"a replica goes after {window} s of less load, and loading another takes minutes"
            at = "spec.advanced.horizontalPodAutoscalerConfig.behavior" if scaler.by_keda else "spec.behavior"
            fix = "stabilizationWindowSeconds: 300 or more"
            yield note("SCL209", scaler.manifest, message, f"{at}.scaleDown.stabilizationWindowSeconds", fix)


RULES = (
    several_series,
    averages,
    silent_outages,
    sleepers,
    inflated_by_canary,
    poor_signals,
    beyond_quota,
    hasty_scaling,
)
TREE = ()
