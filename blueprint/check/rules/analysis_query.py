"""What a query of an analysis gives, and what its conditions make of it: the shape, nothing, NaN, and whose series.

Sources: argo-rollouts v1.10.2 metricproviders/prometheus/prometheus.go (a vector is a list of numbers, a scalar one
number), utils/evaluate/evaluate.go (expr-lang; comparisons with NaN are false).
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint import promql
from blueprint.check.graph import Graph
from blueprint.check.monitored import monitors_of
from blueprint.check.queries import Written, queries
from blueprint.check.rollouts import (
    HASH_LABEL,
    HASH_SERIES,
    Analysis,
    Metric,
    Rollout,
    arguments_in,
    conditions,
    hosts,
    rollouts,
)
from blueprint.check.rules.of_query import doubt, fault
from blueprint.check.rules.say import say
from blueprint.check.shapes import mapping, number, text
from blueprint.finding import Finding

_OF_TRAFFIC = (
    "vllm:",
    "http_",
    "istio_",
    "envoy_",
    "nginx_",
    "grpc_",
    "gen_ai_",
    "request",
    "traefik_",
    "linkerd_",
    "gateway_",
)
_STATUS = frozenset({"status", "code", "status_code", "response_code", "http_status", "finished_reason", "grpc_code"})


def _judged(graph: Graph) -> Iterator[tuple[Written, Metric, promql.Node]]:
    for written in queries(graph):
        if written.role == "analysis" and written.tree is not None:
            metric = Metric(written.manifest, written.body, written.at.partition(".provider")[0])
            if "rangeQuery" not in (metric.prometheus or {}):
                yield written, metric, written.tree


def shapes(graph: Graph) -> Iterator[Finding]:
    """ANA215, ANA216: a vector compared like a number, or a number taken for a list: every measurement is an Error."""
    for written, metric, tree in _judged(graph):
        scalar = promql.is_scalar(tree)
        for name, condition in zip(("successCondition", "failureCondition"), conditions(metric), strict=True):
            if condition is None:
                continue
            if not scalar and condition.plain:
                message = f"{name} compares result, and the query gives a list: the measurement is an Error"
                yield fault("ANA215", written, message, "result[0], or scalar(…) around the query")
            elif scalar and condition.indexed:
                message = f"{name} takes result[0], and the query gives one number: the measurement is an Error"
                yield fault("ANA216", written, message, "result, without an index")


def not_a_number(graph: Graph) -> Iterator[Finding]:
    """ANA217, ANA218: without traffic the value is NaN, which passes one kind of condition and fails the other."""
    for written, metric, tree in _judged(graph):
        success, failure = conditions(metric)
        given = [each for each in (success, failure) if each]
        if not _can_be_nan(tree) or len(given) != 1 or given[0].asks_nan or not given[0].limits:
            continue
        if failure:
            message = "without traffic the value is NaN, no comparison holds, and the measurement is a success"
            yield fault("ANA217", written, message, "a successCondition too: without traffic it is then inconclusive")
        else:
            message = "without traffic the value is NaN, no comparison holds, and the measurement is a failure"
            yield doubt("ANA218", written, message, "a failureCondition too: without traffic it is then inconclusive")


def _can_be_nan(tree: promql.Node) -> bool:
    """Whether 0/0 or a quantile of nothing can come out."""
    for node, _ in promql.walk(tree):
        if isinstance(node, promql.Binary) and node.op == "/" and promql.constant(node.right) is None:
            return True
        if isinstance(node, promql.Call) and node.function == "histogram_quantile":
            return True
    return False


def missing_numerators(graph: Graph) -> Iterator[Finding]:
    """ANA219: there is no series of errors before the first error, so the ratio is empty and not 0."""
    for written, metric, tree in _judged(graph):
        success, failure = conditions(metric)
        if all(each is None or each.asks_length for each in (success, failure)):
            continue
        for node, _ in promql.walk(tree):
            if not isinstance(node, promql.Binary) or node.op != "/" or not _only_errors(node.left):
                continue
            message = (
                "before the first error there is no such series: the result is empty, and the measurement an Error"
            )
            yield doubt("ANA219", written, message, "(… or vector(0)) / …, and len(result) > 0 in the condition")
            break


def _only_errors(node: promql.Node) -> bool:
    if any(isinstance(each, promql.Binary) and each.op == "or" for each, _ in promql.walk(node)):
        return False
    for select, _ in promql.selects(node):
        for matcher in select.matchers:
            some = matcher.op in {"=", "=~"} and (matcher.value[:1] in {"4", "5"} or "error" in matcher.value)
            none = matcher.op in {"!=", "!~"} and matcher.value[:1] == "2"
            if matcher.label in _STATUS and (some or none):
                return True
    return False


def first_of_many(graph: Graph) -> Iterator[Finding]:
    """ANA220: the query gives several series and the conditions look at one, in no order."""
    for written, metric, tree in _judged(graph):
        given = [each for each in conditions(metric) if each]
        looks_at_one = given and all("result[0]" in each.text.replace(" ", "") for each in given)
        if looks_at_one and not promql.single(tree) and not _recorded(tree):
            message = "the query can give several series, and the condition looks at the first of them, in no order"
            yield doubt("ANA220", written, message, "sum(…) or max(…) around it, or all(result, # …)")


def _recorded(tree: promql.Node) -> bool:
    """Whether it reads recorded series, of which there may be one."""
    return all(":" in select.metric and not select.metric.startswith("vllm:") for select, _ in promql.selects(tree))


def not_the_canary(graph: Graph) -> Iterator[Finding]:
    """ANA221: the query counts the pods of the stable version, too, so that the new one hardly changes it."""
    told: set[tuple[int, str]] = set()
    for rollout, analysis, written in _used(graph):
        tree = written.tree
        if tree is None or (id(written.manifest), written.at) in told:
            continue
        for select, _ in promql.selects(tree):
            if select.metric.startswith(_OF_TRAFFIC) and not _picks(rollout, analysis, select, written):
                told.add((id(written.manifest), written.at))
                of = rollout.manifest.ref.name
                message = f"{select.metric} is taken of all pods, also of those of the stable version of {of}"
                fix = f'{HASH_SERIES}="{{{{args.hash}}}}" with podTemplateHashValue: Latest, or the canary\'s Service'
                yield fault("ANA221", written, message, fix)
                break


def _used(graph: Graph) -> Iterator[tuple[Rollout, Analysis, Written]]:
    """The queries of analyses that judge a canary which takes a part of the traffic."""
    by_manifest: dict[int, list[Written]] = {}
    for written in queries(graph):
        if written.role == "analysis":
            by_manifest.setdefault(id(written.manifest), []).append(written)
    for rollout in rollouts(graph):
        partial = any((number(step.get("setWeight"), 0) or 0) not in (0, 100) for step in rollout.steps)
        for analysis in rollout.analyses:
            if analysis.kind in {"background", "inline"} and partial:
                for template in analysis.templates:
                    for written in by_manifest.get(id(template), ()):
                        yield rollout, analysis, written


def _picks(rollout: Rollout, analysis: Analysis, select: promql.Select, written: Written) -> bool:
    """Whether the matchers of a selector can mean the new version alone."""
    stable, new = hosts(rollout)
    rule = mapping(mapping(rollout.routing.get("istio")).get("destinationRule"))
    names = {name for name in (new, text(rule.get("canarySubsetName"))) if name}
    for matcher in select.matchers:
        if matcher.label in {
            HASH_SERIES,
            "destination_version",
            "destination_canonical_revision",
            "version",
            "subset",
            "revision",
        }:
            return True
        if any(name in matcher.value for name in names if name not in stable) or "canary" in matcher.value:
            return True
    if not any(matcher.filled for matcher in select.matchers):
        return False
    bound = analysis.bound()
    for name in arguments_in(written.text):
        argument = bound.get(name, {})
        value = text(argument.get("value"))
        if argument.get("valueFrom") or not value or "canary" in value or any(each in value for each in names):
            return True
    return False


def hash_not_scraped(graph: Graph) -> Iterator[Finding]:
    """ANA222: no monitor of the pods adds the hash of the pod template, so the query selects nothing."""
    for rollout, _, written in _used(graph):
        if HASH_SERIES not in written.text or written.tree is None:
            continue
        scraped = [select for select, _ in written.selects if select.matcher(HASH_SERIES)]
        owner = rollout.workload or rollout.manifest
        found = [
            *monitors_of(graph, rollout.manifest),
            *(monitors_of(graph, owner) if owner is not rollout.manifest else ()),
        ]
        if not scraped or not found or any({HASH_SERIES, "*"} & monitor.added_labels for monitor in found):
            continue
        if all(select.metric.startswith("kube_") for select in scraped):
            continue
        monitor = found[0].manifest
        message = (
            f"{monitor.kind} {monitor.ref.name} does not add {HASH_SERIES} to series: {written.name} selects nothing"
        )
        yield say("ANA222", monitor, message, "spec.podTargetLabels", f"podTargetLabels: [{HASH_LABEL}]")


RULES = (
    shapes,
    not_a_number,
    missing_numerators,
    first_of_many,
    not_the_canary,
    hash_not_scraped,
)
TREE = ()
