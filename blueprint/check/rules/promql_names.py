"""Queries whose names, labels or values no series has: they give nothing, and an alert on nothing never fires.

Sources: vllm v1/metrics of each version (vllm_metrics.yaml); the metrics of the components (metrics.yaml);
prometheus v0.316.0 promql (empty vectors); prometheus-operator v0.93.1 (labels of targets).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from blueprint import promql
from blueprint.catalog.facts import family_of, platform_metric
from blueprint.catalog.metrics import slip
from blueprint.catalog.series import NATIVE, SCRAPED, VLLM, absent, label_name, series
from blueprint.catalog.slips import meant
from blueprint.check.engines import engines
from blueprint.check.graph import Graph
from blueprint.check.monitored import monitors
from blueprint.check.queries import Written, measured, queries
from blueprint.check.rules.of_query import doubt, fault
from blueprint.check.shapes import items, known, mapping, maps, text
from blueprint.finding import Confidence, Finding, Severity

_CONFUSED = {"model": "model_name", "model_id": "model_name", "pod_name": "pod", "container_name": "container"}
"""Labels that series of vLLM do not have and are often asked for, with those they have."""

_DCGM = ("pod", "namespace", "container")
_OBJECT_LABELS = re.compile(r"kube_(\w+?)_labels")


def _severity(written: Written) -> Severity:
    return Severity.ERROR if written.role != "dashboard" else Severity.WARNING


def unreadable(graph: Graph) -> Iterator[Finding]:
    """PQL101: the text is no PromQL."""
    for written in queries(graph):
        if written.query.error:
            message = f"the query cannot be parsed: {written.query.error}"
            yield fault("PQL101", written, message, "compare with promtool check rules", _severity(written))


def unknown_metrics(graph: Graph) -> Iterator[Finding]:
    """PQL201, PQL202, PQL203: a metric that the pinned vLLM does not have, hides, or has under other names."""
    for written in queries(graph):
        if written.tree is None:
            continue
        of = measured(graph, written)
        chosen = list(dict.fromkeys(each.metric for each, _ in written.selects))
        for metric in chosen:
            gone = absent(metric, of.versions) if of.known else None
            if gone is not None and not _has_fallback(written.tree, metric):
                versions = " and ".join(gone.versions)
                what = "hides" if gone.hidden else "does not have"
                instead = f"; it is {gone.instead} now" if gone.instead else ""
                message = f"vLLM {versions} {what} {metric}{instead}"
                code = "PQL202" if gone.hidden else "PQL201"
                fix = gone.instead or "use a metric of this version"
                yield fault(code, written, message, fix, _severity(written))
                continue
            found = series(metric, of.versions)
            if found is not None and found.type == "histogram":
                # A native histogram has its bare name, and functions of its own; vLLM's client makes none.
                if metric.startswith(VLLM) or "histogram_" not in written.text:
                    message = f"{metric} is a histogram: its series are {metric}_bucket, _sum and _count"
                    sure = Confidence.CERTAIN if metric.startswith(VLLM) else Confidence.LIKELY
                    yield fault("PQL203", written, message, f"{metric}_count, or _bucket", _severity(written), sure)
            elif metric.startswith(VLLM) and found is None and not gone:
                near = meant(metric, _Vllm())
                if not near and not _only_servers(graph):
                    continue
                message = f"no version of vLLM has {metric}"
                sure = Confidence.LIKELY
                yield fault(
                    "PQL201",
                    written,
                    message,
                    f"did you mean {near}?" if near else "see /metrics of the server",
                    Severity.WARNING,
                    sure,
                )


class _Vllm:
    """The series of vLLM as names that can be asked for."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.startswith(VLLM) and series(name) is not None


def _only_servers(graph: Graph) -> bool:
    """Whether there are servers here and no router, which has metrics of the same prefix."""
    return bool(engines(graph)) and not any("router" in str(m.body.get("spec")) for m in graph.kind("Deployment.apps"))


def _has_fallback(tree: promql.Node, metric: str) -> bool:
    """Whether the metric stands in an `or`, beside what takes its place in other versions."""
    return any(
        each.metric == metric and any(isinstance(node, promql.Binary) and node.op == "or" for node in above)
        for each, above in promql.selects(tree)
    )


def unknown_in_family(graph: Graph) -> Iterator[Finding]:
    """PQL204: a name that looks like a component's metric and is none of them."""
    recorded = {written.name for written in queries(graph) if written.role == "record"}
    for written in queries(graph):
        for each, _ in written.selects:
            family = family_of(each.metric)
            if family is None or series(each.metric) or platform_metric(each.metric) or each.metric in recorded:
                continue
            near = slip(each.metric)
            if family.complete or near:
                message = f"{family.name} has no metric {each.metric}"
                if not family.complete:
                    message = f"{each.metric} is not known, and differs from {near} by one slip of the pen"
                fix = f"did you mean {near}?" if near else f"see {family.source}"
                yield fault("PQL204", written, message, fix, Severity.WARNING)


def unknown_labels(graph: Graph) -> Iterator[Finding]:
    """PQL205: a label that these series do not have."""
    added = graph.derived(_added)
    if "*" in added:
        return
    for written in queries(graph):
        for each, _ in written.selects:
            found = series(each.metric, measured(graph, written).versions) if each.metric.startswith(VLLM) else None
            if found is None or found.labels is None:
                continue
            for matcher in each.matchers:
                wrong = matcher.op in {"=", "=~"} and matcher.value not in {"", ".*"}
                if wrong and matcher.label in _CONFUSED and matcher.label not in found.labels | added:
                    message = f"{each.metric} has no label {matcher.label}, so nothing is selected"
                    fix = f"{_CONFUSED[matcher.label]}{matcher.op}…"
                    yield fault("PQL205", written, message, fix, _severity(written))
                elif wrong and added and matcher.label not in found.labels | added | SCRAPED | NATIVE:
                    message = f"nothing here gives {each.metric} a label {matcher.label}"
                    fix = "podTargetLabels of its monitor bring labels of pods"
                    yield fault("PQL205", written, message, fix, Severity.WARNING)


def _added(graph: Graph) -> frozenset[str]:
    """Every label that monitors of the tree, and external labels, add to series."""
    found: set[str] = set()
    for monitor in monitors(graph):
        found |= monitor.added_labels
    for manifest in graph.kind("Prometheus.monitoring.coreos.com"):
        found.update(str(key) for key in mapping(mapping(manifest.body.get("spec")).get("externalLabels")))
    return frozenset(found)


_MOST_NAMES = 6


def unserved_models(graph: Graph) -> Iterator[Finding]:
    """PQL206: a model name that no server has: the label holds the first --served-model-name."""
    for written in queries(graph):
        if written.tree is None or "model_name" not in written.text:
            continue
        served = measured(graph, written).served
        if not served:
            continue
        for each, _ in written.selects:
            matcher = each.matcher("model_name")
            if not each.metric.startswith(VLLM) or matcher is None or matcher.filled or matcher.op not in {"=", "=~"}:
                continue
            if matcher.value and not _takes(matcher, served):
                names = list(served)
                here = ", ".join(names[:_MOST_NAMES]) + ", …" * (len(names) > _MOST_NAMES)
                message = f'no server calls its model "{matcher.value}": series carry {here}'
                fix = f'model_name="{names[0]}"'
                yield fault("PQL206", written, message, fix, _severity(written))
                break


def _takes(matcher: promql.Matcher, values: Collection[str]) -> bool:
    """Whether a matcher takes one of some values."""
    if matcher.op == "=":
        return matcher.value in values
    try:
        return any(map(re.compile(matcher.value).fullmatch, values))
    except re.error:
        return True


def recorded_names(graph: Graph) -> Iterator[Finding]:
    """PQL320: a recorded series has a name that Prometheus refuses, or that a query must put in quotes.

    Source: prometheus v0.316.0 model/rulefmt/rulefmt.go: braces are refused, other UTF-8 is taken since version 3.
    """
    for written in queries(graph):
        name = known(written.name) if written.role == "record" else ""
        if "{" in name or "}" in name:
            message = "the name of a recorded series has braces: Prometheus refuses the whole file"
            yield fault("PQL320", written, message, "a plain name; labels go to `labels`")
        elif name and not _PLAIN.fullmatch(name):
            message = f'Prometheus 2 refuses this name, and since 3 a query must write it as {{"{name}"}}'
            yield doubt("PQL320", written, message, re.sub(r"[^a-zA-Z0-9_:]", "_", name))


_PLAIN = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
"""A name that every version takes, and that a query can write as it is."""


def unrecorded(graph: Graph) -> Iterator[Finding]:
    """PQL207: a recorded series that no rule records, while its siblings are recorded here."""
    recorded = {written.name for written in queries(graph) if written.role == "record"}
    families = {name.rpartition(":")[0] for name in recorded if ":" in name}
    for written in queries(graph):
        for each, _ in written.selects:
            name = each.metric
            if ":" not in name or name.startswith(VLLM) or name in recorded or promql.FILLED in name:
                continue
            if name.rpartition(":")[0] in families:
                message = f"no rule here records {name}"
                siblings = sorted(n for n in recorded if n.rpartition(":")[0] == name.rpartition(":")[0])
                yield fault("PQL207", written, message, f"recorded are {', '.join(siblings[:4])}")


def exporter_labels(graph: Graph) -> Iterator[Finding]:
    """PQL208: labels of GPU metrics that name the exporter's pod and not the one that has the GPU."""
    honoring = _dcgm_honors(graph)
    if honoring is None:
        return
    for written in queries(graph):
        for each, above in written.selects:
            if not each.metric.startswith(("DCGM_FI_", "DCGM_EXP_")):
                continue
            for label in _DCGM:
                wrong = f"exported_{label}" if honoring else label
                if wrong not in _used(each, above) or (not honoring and label == "namespace"):
                    continue
                right = label if honoring else f"exported_{label}"
                who = "the label does not exist" if honoring else "it is the exporter's own"
                how = "true" if honoring else "false"
                message = f"with honorLabels {how} {wrong} of {each.metric} is not the workload's: {who}"
                yield fault("PQL208", written, message, right, _severity(written))
                break


def _used(select: promql.Select, above: tuple[promql.Node, ...]) -> Collection[str]:
    found = {m.label for m in select.matchers if not (m.label == "pod" and "exporter" in m.value)}
    for node in above:
        if isinstance(node, promql.Aggregate) and node.by:
            found |= set(node.by)
    return found


def _dcgm_honors(graph: Graph) -> bool | None:
    """Whether the monitor of the DCGM exporter keeps the exporter's labels; None where the tree has none."""
    for monitor in monitors(graph):
        if "dcgm" in monitor.manifest.ref.name or "dcgm" in str(monitor.spec.get("selector")):
            return any(endpoint.body.get("honorLabels") is True for endpoint in monitor.endpoints)
    return None


def object_labels(graph: Graph) -> Iterator[Finding]:
    """PQL209: a label of objects that kube-state-metrics is not told to show."""
    allowed = graph.derived(_allowed)
    if allowed is None:
        return
    for written in queries(graph):
        for each, above in written.selects:
            match = _OBJECT_LABELS.fullmatch(each.metric)
            if match is None:
                continue
            shown = allowed.get(_plural(match[1]), frozenset())
            wanted = {m.label for m in each.matchers} | {
                label for node in above if isinstance(node, promql.Aggregate) for label in node.by or ()
            }
            for label in sorted(wanted):
                if label.startswith("label_") and "*" not in shown and label not in shown:
                    message = f"kube-state-metrics does not show {label} of {_plural(match[1])}"
                    fix = f"--metric-labels-allowlist={_plural(match[1])}=[…]"
                    yield fault("PQL209", written, message, fix, _severity(written))


def _plural(kind: str) -> str:
    return kind if kind.endswith("s") else f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def _allowed(graph: Graph) -> Mapping[str, frozenset[str]] | None:
    """The labels that kube-state-metrics shows, by resource; None where the tree does not hold it."""
    found: dict[str, frozenset[str]] | None = None
    for _, pod in graph.pods:
        for container in maps(pod.spec.get("containers")):
            if "kube-state-metrics" not in text(container.get("image")):
                continue
            found = found or {}
            for word in items(container.get("args")):
                name, _, value = text(word).partition("=")
                if name == "--metric-labels-allowlist":
                    for resource, labels in re.findall(r"([\w*]+)=\[([^\]]*)\]", value):
                        shown = {
                            "*" if part.strip() == "*" else f"label_{label_name(part.strip())}"
                            for part in labels.split(",")
                        }
                        found[resource] = frozenset(shown)
                if name in {"--config", "--custom-resource-state-config"}:
                    return None
    return found


RULES = (
    unreadable,
    unknown_metrics,
    unknown_in_family,
    unknown_labels,
    unserved_models,
    recorded_names,
    unrecorded,
    exporter_labels,
    object_labels,
)
TREE = ()
