"""Every PromQL query of a tree: in rules, analyses, scalers, service levels and dashboards, each with its place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import orjson

from blueprint import promql
from blueprint.check.engines import Engine, engines
from blueprint.check.graph import Graph
from blueprint.check.monitored import Monitor, monitors, monitors_of
from blueprint.check.rollouts import TEMPLATES, metrics
from blueprint.check.shapes import Body, mapping, maps, text
from blueprint.objects import Manifest

RULES = "PrometheusRule.monitoring.coreos.com"
SCALERS = ("ScaledObject.keda.sh", "ScaledJob.keda.sh")
_DEFAULT_INTERVAL = 30.0
"""Seconds: the default of prometheus-operator v0.93.1 (Prometheus.spec.scrapeInterval)."""


class Written:
    """One query. `role` is alert, record, analysis, scaler, level or dashboard; `name` is what it is called there."""

    def __init__(
        self, manifest: Manifest, at: str, text: str, role: str, name: str = "", body: Body | None = None
    ) -> None:
        self.manifest, self.at, self.text, self.role, self.name = manifest, at, text, role, name
        self.body: Body = body or {}

    @cached_property
    def query(self) -> promql.Query:
        """The query, parsed."""
        return promql.read(self.text)

    @property
    def tree(self) -> promql.Node | None:
        """Its tree, None where it cannot be read."""
        return self.query.tree

    @cached_property
    def nodes(self) -> Sequence[tuple[promql.Node, tuple[promql.Node, ...]]]:
        """Every node of its tree with those above it, the nearest last; most rules look at them."""
        return tuple(promql.walk(self.tree)) if self.tree else ()

    @cached_property
    def selects(self) -> Sequence[tuple[promql.Select, tuple[promql.Node, ...]]]:
        """Every selector with the nodes above it, the nearest last."""
        return tuple((node, above) for node, above in self.nodes if isinstance(node, promql.Select))

    @property
    def acts(self) -> bool:
        """Whether something is done by it, and not only shown."""
        return self.role in {"alert", "analysis", "scaler", "level"}


def queries(graph: Graph) -> Sequence[Written]:
    """Every query of a tree, read once for each graph."""
    return graph.derived(_queries)


def _queries(graph: Graph) -> list[Written]:
    return [*_rules(graph), *_analyses(graph), *_scalers(graph), *_levels(graph), *_dashboards(graph)]


def _rules(graph: Graph) -> Iterator[Written]:
    for manifest in graph.kind(RULES):
        for g, group in enumerate(maps(mapping(manifest.body.get("spec")).get("groups"))):
            for r, rule in enumerate(maps(group.get("rules"))):
                role = "record" if rule.get("record") else "alert"
                expression = rule.get("expr")
                if isinstance(expression, str) and expression.strip():
                    name = text(rule.get("record")) or text(rule.get("alert"))
                    yield Written(manifest, f"spec.groups[{g}].rules[{r}].expr", expression, role, name, rule)


def _analyses(graph: Graph) -> Iterator[Written]:
    for manifest in graph.kind(*TEMPLATES, "AnalysisRun.argoproj.io"):
        for metric in metrics(manifest):
            if metric.query.strip():
                at = f"{metric.at}.provider.prometheus.query"
                yield Written(manifest, at, metric.query, "analysis", metric.name, metric.body)


def _scalers(graph: Graph) -> Iterator[Written]:
    for manifest in graph.kind(*SCALERS):
        for n, trigger in enumerate(maps(mapping(manifest.body.get("spec")).get("triggers"))):
            query = mapping(trigger.get("metadata")).get("query")
            if trigger.get("type") == "prometheus" and isinstance(query, str) and query.strip():
                at = f"spec.triggers[{n}].metadata.query"
                yield Written(manifest, at, query, "scaler", text(trigger.get("name")), trigger)


def _levels(graph: Graph) -> Iterator[Written]:
    for manifest in graph.kind("PrometheusServiceLevel.sloth.slok.dev"):
        for n, slo in enumerate(maps(mapping(manifest.body.get("spec")).get("slos"))):
            sli = mapping(slo.get("sli"))
            for part, keys in (("events", ("errorQuery", "totalQuery")), ("raw", ("errorRatioQuery",))):
                for key in keys:
                    if query := text(mapping(sli.get(part)).get(key)):
                        at = f"spec.slos[{n}].sli.{part}.{key}"
                        yield Written(manifest, at, query, "level", text(slo.get("name")), slo)


def _dashboards(graph: Graph) -> Iterator[Written]:
    for manifest in graph.kind("ConfigMap", "GrafanaDashboard.grafana.integreatly.org"):
        spec = mapping(manifest.body.get("spec"))
        pages = mapping(manifest.body.get("data")) if manifest.kind == "ConfigMap" else {"json": spec.get("json")}
        for key, page in pages.items():
            if not isinstance(page, str) or '"panels"' not in page or '"expr"' not in page:
                continue
            try:
                board = orjson.loads(page)
            except orjson.JSONDecodeError:
                continue
            at = f"data.{key}" if manifest.kind == "ConfigMap" else "spec.json"
            for title, expression in _targets(board, "", 0):
                yield Written(manifest, at, expression, "dashboard", title)


def recorded(graph: Graph) -> Mapping[str, promql.Node]:
    """The queries of recording rules that can be read, by the name that they record."""
    return {each.name: each.tree for each in queries(graph) if each.role == "record" and each.tree is not None}


_DEEPEST = 40


def _targets(node: object, title: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _DEEPEST:
        return
    if isinstance(node, dict):
        title = text(node.get("title")) or title
        expression = node.get("expr")
        if isinstance(expression, str) and expression.strip():
            yield title, expression
        for value in node.values():
            if isinstance(value, dict | list):
                yield from _targets(value, title, depth + 1)
    elif isinstance(node, list):
        for value in node:
            yield from _targets(value, title, depth + 1)


@dataclass(frozen=True)
class Measured:
    """The servers whose series a query reads, and what is known of them: read once, for thousands of queries."""

    engines: tuple[Engine, ...]
    versions: tuple[str, ...]

    @cached_property
    def known(self) -> bool:
        """Whether the version of each is known, and there is one."""
        return bool(self.versions) and all(engine.version for engine in self.engines)

    @cached_property
    def served(self) -> Mapping[str, None]:
        """What the label `model_name` can be, in order; nothing where that of one server is not known."""
        names = [engine.served_names for engine in self.engines]
        return dict.fromkeys(sorted(name[0] for name in names)) if all(names) else {}


class _Servers:
    """The servers of a tree by namespace, so that a query need not look at all of them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._intervals: dict[int, float | None] = {}
        by_namespace: dict[str, list[Engine]] = defaultdict(list)
        for engine in engines(graph):
            by_namespace[engine.manifest.ref.namespace].append(engine)
        self.everywhere = self._measured(engines(graph))
        self.of = {namespace: self._measured(here) for namespace, here in by_namespace.items()}

    def _measured(self, found: Sequence[Engine]) -> Measured:
        versions = tuple(dict.fromkeys(engine.version for engine in found if engine.version))
        said = self._graph.versions.get("vllm", "")
        return Measured(tuple(found), versions or ((said,) if said else ()))

    def interval(self, of: Measured) -> float | None:
        if id(of) not in self._intervals:
            self._intervals[id(of)] = _interval(self._graph, of.engines)
        return self._intervals[id(of)]


def measured(graph: Graph, written: Written) -> Measured:
    """The vLLM servers that a query can mean: those of its namespace, or all where it has none of its own."""
    servers = graph.derived(_Servers)
    if written.role in {"analysis", "scaler"}:
        return servers.of.get(written.manifest.ref.namespace, servers.everywhere)
    return servers.everywhere


def scrape_interval(graph: Graph, written: Written) -> float | None:
    """The shortest time between two scrapes of the servers of a query, in seconds; None where nothing says it."""
    return graph.derived(_Servers).interval(measured(graph, written))


def _interval(graph: Graph, of: Sequence[Engine]) -> float | None:
    chosen: list[Monitor] = [monitor for engine in of for monitor in monitors_of(graph, engine.manifest)]
    if not chosen and len(monitors(graph)) == 1:
        chosen = list(monitors(graph))
    if not chosen:
        return None
    given = [endpoint.interval for monitor in chosen for endpoint in monitor.endpoints]
    return min((each or _DEFAULT_INTERVAL for each in given), default=None)
