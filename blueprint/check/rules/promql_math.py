"""Queries that give numbers, and the wrong ones: counters as they are, windows too short, buckets that are none.

Sources: prometheus.io docs (rate, histogram_quantile, naming), prometheus v0.316.0 promql/functions.go, quantile.go;
argo-rollouts, KEDA and vLLM issues are named on the pages of the rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from blueprint import promql
from blueprint.catalog.series import Series, boundary, series
from blueprint.catalog.vllm import CUSTOM_BUCKETS
from blueprint.check.engines import Engine
from blueprint.check.graph import Graph
from blueprint.check.queries import Measured, measured, queries, scrape_interval
from blueprint.check.rules.of_query import doubt, fault, remark
from blueprint.finding import Confidence, Finding, Severity
from blueprint.promql import Aggregate, Binary, Call, Node, Select, Subquery

_RATES = frozenset({"rate", "irate", "increase"})
_OF_GAUGES = frozenset({"deriv", "delta", "idelta", "predict_linear"})
_OF_PRESENCE = frozenset(
    {"absent", "absent_over_time", "present_over_time", "count_over_time", "changes", "resets", "timestamp"}
)
_COUNTING = frozenset({"count", "group", "count_values"})


def _called(above: tuple[Node, ...]) -> list[str]:
    return [node.function for node in above if isinstance(node, Call)]


def raw_counters(graph: Graph) -> Iterator[Finding]:
    """PQL301: a counter without rate or increase: its value only grows, until a restart."""
    for written in queries(graph):
        if written.tree is None or written.role in {"dashboard", "record"}:
            continue
        for each, above in written.selects:
            found = series(each.metric, measured(graph, written).versions)
            if found is None or not found.grows or set(_called(above)) & (_RATES | _OF_PRESENCE | _OF_GAUGES):
                continue
            if any(isinstance(node, Aggregate) and node.op in _COUNTING for node in above) or _beside(above, each):
                continue
            message = f"{each.metric} is a counter: its value only grows, and so does this one"
            fix = f"rate({each.metric}[…]) or increase"
            severity = Severity.ERROR if written.role in {"scaler", "analysis"} else Severity.WARNING
            sure = None if found.sure else Confidence.LIKELY
            yield fault("PQL301", written, message, fix, severity, sure)


def _beside(above: tuple[Node, ...], select: Select) -> bool:
    """Whether the selector only decides which series are taken: the right side of and, unless, group_left; a ratio."""
    below: Node = select
    for node in reversed(above):
        if isinstance(node, Binary):
            if node.op in {"and", "unless"} and node.right is below:
                return True
            if node.op == "/" or node.grouped:
                return True
        below = node
    return False


def rates_of_gauges(graph: Graph) -> Iterator[Finding]:
    """PQL302: rate or increase of a gauge, which takes each fall for a restart."""
    for written in queries(graph):
        for each, above in written.selects:
            found = series(each.metric, measured(graph, written).versions)
            used = [name for name in _called(above[-1:]) if name in _RATES]
            if found is None or found.type != "gauge" or not used:
                continue
            what = f" ({found.note})" if found.note else ""
            message = f"{each.metric} is a gauge{what}; {used[0]} takes each fall of it for a restart"
            severity = Severity.ERROR if found.note and written.acts else Severity.WARNING
            yield fault("PQL302", written, message, "delta or deriv, or the value itself", severity)


def short_windows(graph: Graph) -> Iterator[Finding]:
    """PQL303: a window in which there are not two samples."""
    for written in queries(graph):
        for each, above in written.selects:
            if not each.window or not each.metric.startswith("vllm:") or not set(_called(above[-1:])) & _RATES:
                continue
            interval = scrape_interval(graph, written)
            if interval is None or each.window >= 2 * interval:
                continue
            if each.window <= interval:
                message = f"a window of {each.window:g} s holds one sample, scraped every {interval:g} s: no rate"
                severity = Severity.ERROR if written.role != "dashboard" else Severity.WARNING
            else:
                message = f"a window of {each.window:g} s holds two samples only at times, scraped every {interval:g} s"
                severity = Severity.WARNING
            yield fault("PQL303", written, message, f"[{4 * interval:g}s] or more", severity)
            break


def wrong_boundaries(graph: Graph) -> Iterator[Finding]:
    """PQL304: a value of le that is no boundary of this histogram, or is not written as one."""
    for written in queries(graph):
        for each, _ in written.selects:
            value, of = each.value("le"), measured(graph, written)
            found = series(each.metric, of.versions) if value is not None else None
            if value is None or found is None or found.part != "bucket" or not found.buckets or value in {"+Inf", ""}:
                continue
            problem = _boundary_problem(value, found, _all_buckets(graph, found, of))
            if problem:
                sure = None if of.known and found.by == "vllm" else Confidence.LIKELY
                message = f'le="{value}" selects nothing: {problem[0]}'
                severity = Severity.ERROR if written.role != "dashboard" else Severity.WARNING
                yield fault("PQL304", written, message, problem[1], severity, sure)


def _boundary_problem(value: str, found: Series, buckets: tuple[float, ...]) -> tuple[str, str] | None:
    try:
        number = float(value)
    except ValueError:
        return "it is no number", f'le="{boundary(buckets[0])}"'
    if number not in buckets:
        near = sorted(buckets, key=lambda each: abs(each - number))[:2]
        more = "; --custom-histogram-buckets can add it" if found.by == "vllm" else ""
        return (
            f"{found.metric} has no such bucket",
            f"a boundary: {' or '.join(boundary(each) for each in sorted(near))}{more}",
        )
    if found.by == "vllm" and value != boundary(number):
        return f'boundaries are written as "{boundary(number)}"', f'le="{boundary(number)}"'
    return None


class _Given:
    """The boundaries that servers are given, by histogram; read once for each set of servers."""

    def __init__(self, graph: Graph) -> None:
        self._read: dict[int, Mapping[str, frozenset[float]]] = {}

    def of(self, measured_ones: Measured) -> Mapping[str, frozenset[float]]:
        """Boundaries by the name of the histogram."""
        key = id(measured_ones)
        if key not in self._read:
            found: dict[str, set[float]] = {}
            for engine in measured_ones.engines:
                for name, values in _custom(engine):
                    found.setdefault(name, set()).update(values)
            self._read[key] = {name: frozenset(values) for name, values in found.items()}
        return self._read[key]


def _custom(engine: Engine) -> Iterator[tuple[str, list[float]]]:
    argument = engine.option("--custom-histogram-buckets")
    try:
        given = json.loads(argument.known) if argument and argument.known else {}
    except ValueError:
        return
    for key, values in given.items() if isinstance(given, dict) else ():
        for name in CUSTOM_BUCKETS.get(key, ()) if isinstance(values, list) else ():
            yield name, [float(value) for value in values if isinstance(value, int | float)]


def _all_buckets(graph: Graph, found: Series, of: Measured) -> tuple[float, ...]:
    """The boundaries of a histogram, with those that any of the servers is given."""
    more = graph.derived(_Given).of(of).get(found.metric, frozenset())
    return tuple(sorted({*(found.buckets or ()), *more})) if more else found.buckets or ()


def quantiles(graph: Graph) -> Iterator[Finding]:
    """PQL305, PQL306, PQL307: histogram_quantile without le, without rate, or with a share that is none."""
    for written in queries(graph):
        for node, above in written.nodes:
            if not isinstance(node, Call) or node.function != "histogram_quantile" or len(node.args) != 2:
                continue
            share, of = promql.constant(node.args[0]), node.args[1]
            if share is not None and not 0 <= share <= 1:
                message = f"the quantile {share:g} is not between 0 and 1"
                yield fault("PQL307", written, message, f"{share / 100:g}" if share > 1 else "0.95")
            buckets = [(each, up) for each, up in promql.selects(of) if each.metric.endswith("_bucket")]
            if not buckets:
                continue
            labels = promql.labels(of)
            if labels is not None and "le" not in labels:
                message = "the buckets are added up without le, so no quantile can be told"
                yield fault("PQL305", written, message, "sum by (le, …) (rate(…))")
            elif not any(set(_called(up)) & _RATES for _, up in buckets):
                message = "without rate the quantile is that of all time since the start"
                yield doubt("PQL306", written, message, "rate(…_bucket[5m])")
            if any(isinstance(up, Aggregate) and up.op in {"avg", "sum"} for up in above):
                message = "the average of quantiles is no quantile"
                yield doubt("PQL313", written, message, "sum the buckets by le, then take the quantile")


_PATTERN = re.compile(r"\.\*|\.\+|\\d|\[[^\]]+\]|^\d\.\.$|\w\|\w|^\^|\$$")


def patterns_as_texts(graph: Graph) -> Iterator[Finding]:
    """PQL309: a pattern behind `=`, which compares texts."""
    for written in queries(graph):
        for each, _ in written.selects:
            for matcher in each.matchers:
                if matcher.op in {"=", "!="} and not matcher.filled and _PATTERN.search(matcher.value):
                    message = f'{matcher.label}{matcher.op}"{matcher.value}" compares texts, and this is a pattern'
                    fix = f'{matcher.label}{"=~" if matcher.op == "=" else "!~"}"{matcher.value}"'
                    yield fault("PQL309", written, message, fix)


def labels_that_never_meet(graph: Graph) -> Iterator[Finding]:
    """PQL310: the two sides of an operation have different labels, so that no series finds another."""
    for written in queries(graph):
        for node, _ in written.nodes:
            if (
                not isinstance(node, Binary)
                or node.op in {"or", "unless"}
                or node.on is not None
                or node.ignoring is not None
            ):
                continue
            if promql.is_scalar(node.left) or promql.is_scalar(node.right):
                continue
            left, right = promql.labels(node.left), promql.labels(node.right)
            if left is None or right is None or left == right or promql.FILLED in left | right:
                continue
            apart = ", ".join(sorted(left ^ right))
            message = f"the sides of `{node.op}` differ in {apart}: no series of one meets one of the other"
            yield fault("PQL310", written, message, "the same labels in by (…), or on(…) group_left")


def finished_is_not_successful(graph: Graph) -> Iterator[Finding]:
    """PQL311: requests that ended in any way are taken for successful ones."""
    for written in queries(graph):
        if written.tree is None or "vllm:request_success_total" not in written.text:
            continue
        for each, above in written.selects:
            divides = any(isinstance(node, Binary) and node.op == "/" for node in above)
            if each.metric == "vllm:request_success_total" and divides and not each.matcher("finished_reason"):
                if "finished_reason" in written.text:
                    break
                message = "it counts requests that ended, also by error and abort, and none that was refused"
                fix = 'finished_reason=~"stop|length", or the counts of the gateway'
                yield doubt("PQL311", written, message, fix)
                break


def reported_twice(graph: Graph) -> Iterator[Finding]:
    """PQL312: requests of a mesh are counted by the client's and by the server's proxy."""
    for written in queries(graph):
        if written.tree is None or not written.acts:
            continue
        for each, above in written.selects:
            added = any(isinstance(node, Aggregate) and node.op == "sum" for node in above)
            split = any(isinstance(node, Aggregate) and node.by and "reporter" in node.by for node in above)
            ratio = any(isinstance(node, Binary) and node.op == "/" for node in above)
            if (
                each.metric.startswith("istio_request")
                and added
                and not split
                and not ratio
                and not each.matcher("reporter")
            ):
                message = "each request is counted twice, by the proxies of its client and of its server"
                yield doubt("PQL312", written, message, 'reporter="destination"')
                break


def rates_of_sums(graph: Graph) -> Iterator[Finding]:
    """PQL314: the rate of a sum of counters: the restart of one is a fall of all."""
    for written in queries(graph):
        for node, _ in written.nodes:
            if isinstance(node, Call) and node.function in _RATES and node.args and isinstance(node.args[0], Subquery):
                inner = node.args[0].of
                if isinstance(inner, Aggregate) and inner.op == "sum" and not _rated(inner):
                    message = f"{node.function} of a sum takes the restart of one pod for a fall of all"
                    yield doubt("PQL314", written, message, f"sum({node.function}(…[5m]))")


def _rated(node: Node) -> bool:
    return any(isinstance(each, Call) and each.function in _RATES for each, _ in promql.walk(node))


_WINDOW_NAME = re.compile(r"(\d+[smhdw])$")


def unequal_burns(graph: Graph) -> Iterator[Finding]:
    """PQL315: the two windows of a burn-rate alert are held against different limits."""
    for written in queries(graph):
        if written.role != "alert" or written.tree is None:
            continue
        found: dict[str, Mapping[str, float]] = {}
        for node, above in written.nodes:
            if isinstance(node, Binary) and node.op in {">", ">="} and isinstance(node.left, Select):
                limit, name = promql.constant(node.right), node.left.metric
                joined = all(isinstance(up, Binary) and up.op == "and" for up in above)
                if limit is not None and joined and _WINDOW_NAME.search(name):
                    base = _WINDOW_NAME.sub("", name)
                    found[base] = {**found.get(base, {}), name: limit}
        for limits in found.values():
            if len(limits) == 2 and len({round(limit, 9) for limit in limits.values()}) > 1:
                parts = " and ".join(f"{name} > {limit:g}" for name, limit in limits.items())
                message = f"both windows of a burn rate have the same limit, and here they are {parts}"
                yield doubt("PQL315", written, message, "the same factor in both")


def many_series_names(graph: Graph) -> Iterator[Finding]:
    """PQL316: a query over every series whose name matches a pattern."""
    for written in queries(graph):
        for each, _ in written.selects:
            if not each.metric and written.acts:
                message = "it selects by labels or by a pattern of names, and takes whatever there is"
                yield remark("PQL316", written, message, "name the metric")
                break


RULES = (
    raw_counters,
    rates_of_gauges,
    short_windows,
    wrong_boundaries,
    quantiles,
    patterns_as_texts,
    labels_that_never_meet,
    finished_is_not_successful,
    reported_twice,
    rates_of_sums,
    unequal_burns,
    many_series_names,
)
TREE = ()
