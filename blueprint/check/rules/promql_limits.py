"""Limits that a value can never pass, or always has passed: silent alerts, gates that decide nothing.

Sources: the units of metrics (metrics.yaml, vllm_metrics.yaml); prometheus v0.316.0 promql/quantile.go; the Google SRE
workbook, chapter 5 (burn rates over several windows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from blueprint import promql
from blueprint.catalog.series import Series, series
from blueprint.check.bounds import Range, bounds, verdict
from blueprint.check.graph import Graph
from blueprint.check.queries import Written, measured, queries, recorded
from blueprint.check.rollouts import Metric, conditions
from blueprint.check.rules.of_query import fault
from blueprint.check.shapes import mapping, text
from blueprint.finding import Finding, Severity
from blueprint.promql import Binary, Call, Node


def value_range(graph: Graph, written: Written, node: Node) -> Range | None:
    """Between which numbers a part of a query lies."""
    versions = measured(graph, written).versions

    def known(name: str) -> Series | None:
        return series(name, versions)

    return bounds(node, known, graph.derived(recorded).get)


def unreachable_limits(graph: Graph) -> Iterator[Finding]:
    """PQL308, PQL317: a comparison in an alert or query that never holds, or always does."""
    for written in queries(graph):
        if written.tree is None or written.role == "dashboard":
            continue
        for node, _ in written.nodes:
            if not isinstance(node, Binary) or node.op not in promql.COMPARISONS:
                continue
            limit, within = promql.constant(node.right), value_range(graph, written, node.left)
            if limit is None or within is None or within[0] == within[1]:
                continue
            holds = verdict(node.op, limit, within)
            # `x >= 0` is the usual way to have every series, whatever its value.
            if holds is not None and not (holds and node.op == ">=" and limit == within[0]):
                how = "always" if holds else "never"
                message = f"{_range(within)}: it is {how} {node.op} {limit:g}"
                fix = _fix(node.left, within)
                severity = Severity.ERROR if not holds else Severity.WARNING
                yield fault(_code(node.left), written, message, fix, severity)


def _range(within: Range) -> str:
    return f"the value lies between {within[0]:g} and {within[1]:g}"


def _code(node: Node) -> str:
    quantile = any(isinstance(each, Call) and each.function == "histogram_quantile" for each, _ in promql.walk(node))
    return "PQL317" if quantile else "PQL308"


def _fix(node: Node, within: Range) -> str:
    if _code(node) == "PQL317":
        return "a limit between the buckets, or the share of requests in a bucket"
    return "a limit in the unit of the metric" if within == (0, 1) or within[1] > 100 else "a limit that can be passed"


def decided_conditions(graph: Graph) -> Iterator[Finding]:
    """PQL318: the condition of an analysis compares the value with what it can never, or does always, pass."""
    for written in queries(graph):
        if written.role != "analysis" or written.tree is None:
            continue
        within = value_range(graph, written, written.tree)
        if within is None or within[0] == within[1]:
            continue
        success, failure = conditions(Metric(written.manifest, written.body, ""))
        for name, condition in (("successCondition", success), ("failureCondition", failure)):
            limits = condition.limits if condition and "||" not in condition.text else []
            verdicts = [verdict(operator, limit, within) for operator, limit in limits]
            # `< 0` is the usual way to write a failure that is not meant to be.
            meant = name == "failureCondition" and any(limit <= within[0] for _, limit in limits)
            if limits and (all(verdicts) or (False in verdicts and not meant)):
                how = "always" if all(verdicts) else "never"
                yield fault("PQL318", written, f"{_range(within)}: {name} {how} holds", "compare in the query's unit")


def scaler_limits(graph: Graph) -> Iterator[Finding]:
    """PQL319: the threshold of a scaler is above everything that its query can give."""
    for written in queries(graph):
        if written.role != "scaler" or written.tree is None:
            continue
        within = value_range(graph, written, written.tree)
        threshold = _number(mapping(written.body.get("metadata")).get("threshold"))
        if within is not None and threshold is not None and within[1] <= threshold:
            message = f"the query gives at most {within[1]:g}, and the threshold is {threshold:g}: it never scales up"
            yield fault("PQL319", written, message, "a threshold in the unit of the query")


def _number(value: object) -> float | None:
    try:
        return (
            float(text(value)) if isinstance(value, str) else float(value) if isinstance(value, int | float) else None
        )
    except ValueError:
        return None


RULES: tuple[Callable[[Graph], Iterator[Finding]], ...] = (unreachable_limits, decided_conditions, scaler_limits)
TREE = ()
