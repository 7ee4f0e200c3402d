"""What the Prometheus Operator scrapes: monitors, the Services and pods they select, and how often.

Source: prometheus-operator v0.93.1 pkg/apis/monitoring/v1 (types), pkg/prometheus/promcfg.go (generated relabelings).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from blueprint.catalog.series import label_name
from blueprint.check.graph import Graph, labels_of, selects
from blueprint.check.pods import PodTemplate
from blueprint.check.shapes import Body, items, known, mapping, maps, placeholder, text
from blueprint.objects import Manifest

SERVICE_MONITOR = "ServiceMonitor.monitoring.coreos.com"
POD_MONITOR = "PodMonitor.monitoring.coreos.com"
PROMETHEUS = ("Prometheus.monitoring.coreos.com", "PrometheusAgent.monitoring.coreos.com")

_T = TypeVar("_T")

_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}


def duration(value: object) -> float | None:
    """A duration of Prometheus (`1m30s`) in seconds, None for anything else."""
    word = text(value)
    parts = _DURATION.findall(word)
    return sum(int(n) * _UNITS[u] for n, u in parts) if parts and not _DURATION.sub("", word) else None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint of a monitor."""

    body: Body
    at: str

    @property
    def interval(self) -> float | None:
        """Seconds between two scrapes where it is given here."""
        return duration(self.body.get("interval"))


class Monitor:
    """A ServiceMonitor or PodMonitor."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.spec = mapping(manifest.body.get("spec"))
        self.of_pods = manifest.kind == "PodMonitor"

    @property
    def endpoints(self) -> list[Endpoint]:
        """What is scraped of each target."""
        name = "podMetricsEndpoints" if self.of_pods else "endpoints"
        return [Endpoint(body, f"spec.{name}[{n}]") for n, body in enumerate(maps(self.spec.get(name)))]

    def covers(self, namespace: str) -> bool:
        """Whether it looks into a namespace."""
        chosen = mapping(self.spec.get("namespaceSelector"))
        if chosen.get("any") is True:
            return True
        names = [text(name) for name in items(chosen.get("matchNames"))]
        return namespace in (names or [self.manifest.ref.namespace])

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether its selector takes these labels."""
        return selects(self.spec.get("selector"), labels)

    @property
    def known(self) -> bool:
        """Whether nothing in its selector is filled in later."""
        return not any(placeholder(v) for v in mapping(mapping(self.spec.get("selector")).get("matchLabels")).values())

    @property
    def added_labels(self) -> frozenset[str]:
        """Labels that it adds to every series, as series have them."""
        found = {
            label_name(text(label))
            for key in ("podTargetLabels", "targetLabels")
            for label in items(self.spec.get(key))
        }
        for endpoint in self.endpoints:
            for key in ("relabelings", "metricRelabelings"):
                for row in maps(endpoint.body.get(key)):
                    found.add(known(row.get("targetLabel")))
                    if row.get("action") == "labelmap":
                        found.add("*")
        return frozenset(found - {""})


def monitors(graph: Graph) -> Sequence[Monitor]:
    """Every monitor of a tree."""
    return graph.derived(_monitors)


def _monitors(graph: Graph) -> list[Monitor]:
    return [Monitor(manifest) for manifest in graph.kind(SERVICE_MONITOR, POD_MONITOR)]


Pods = tuple[Manifest, PodTemplate]


class _Index:
    """Services and pod templates by namespace and by each of their labels, so that a selector need not try them all."""

    def __init__(self, graph: Graph) -> None:
        self.services: dict[tuple[str, str, str], list[Manifest]] = defaultdict(list)
        self.pods: dict[tuple[str, str, str], list[Pods]] = defaultdict(list)
        for service in graph.kind("Service"):
            self._add(self.services, service.ref.namespace, labels_of(service.body), service)
        for manifest, pod in graph.pods:
            self._add(self.pods, manifest.ref.namespace, template_labels(manifest, pod), (manifest, pod))

    @staticmethod
    def _add(to: dict[tuple[str, str, str], list[_T]], namespace: str, labels: Mapping[str, str], what: _T) -> None:
        to[namespace, "", ""].append(what)
        for key, value in labels.items():
            to[namespace, key, value].append(what)
            to["*", key, value].append(what)


def _namespaces(graph: Graph, monitor: Monitor) -> Collection[str]:
    chosen = mapping(monitor.spec.get("namespaceSelector"))
    if chosen.get("any") is True:
        return graph.namespaces()
    return [text(name) for name in items(chosen.get("matchNames"))] or [monitor.manifest.ref.namespace]


def _first(labels: object) -> tuple[str, str]:
    return next(((str(key), text(value)) for key, value in mapping(labels).items()), ("", ""))


def services_of(graph: Graph, monitor: Monitor) -> list[Manifest]:
    """The Services that a ServiceMonitor selects."""
    index, key = graph.derived(_Index), _first(mapping(monitor.spec.get("selector")).get("matchLabels"))
    some = (each for namespace in _namespaces(graph, monitor) for each in index.services.get((namespace, *key), ()))
    return [each for each in some if monitor.takes(labels_of(each.body))]


def elsewhere(graph: Graph, monitor: Monitor) -> list[str]:
    """Other namespaces with Services, or pods, that it would select there; none where not all namespaces are known."""
    own, key = monitor.manifest.ref.namespace, _first(mapping(monitor.spec.get("selector")).get("matchLabels"))
    if not own or key == ("", ""):
        return []
    index = graph.derived(_Index)
    if monitor.of_pods:
        found = {
            m.ref.namespace for m, pod in index.pods.get(("*", *key), ()) if monitor.takes(template_labels(m, pod))
        }
    else:
        services = index.services.get(("*", *key), ())
        found = {each.ref.namespace for each in services if monitor.takes(labels_of(each.body))}
    return [] if "" in found else sorted(found - {own})


def pods_of_service(graph: Graph, service: Manifest) -> Iterator[Pods]:
    """The pod templates that a Service selects."""
    selector = mapping(mapping(service.body.get("spec")).get("selector"))
    if not selector:
        return
    for manifest, pod in graph.derived(_Index).pods.get((service.ref.namespace, *_first(selector)), ()):
        labels = template_labels(manifest, pod)
        if all(labels.get(str(key)) == value for key, value in selector.items()):
            yield manifest, pod


def pods_in(graph: Graph, namespace: str) -> Sequence[Pods]:
    """The pod templates in a namespace."""
    return graph.derived(_Index).pods.get((namespace, "", ""), ())


def pods_selected(graph: Graph, namespace: str, selector: object) -> Iterator[Pods]:
    """The pod templates in a namespace that a label selector takes."""
    key = _first(mapping(selector).get("matchLabels"))
    for manifest, pod in graph.derived(_Index).pods.get((namespace, *key), ()):
        if selects(selector, template_labels(manifest, pod)):
            yield manifest, pod


POLICY = "NetworkPolicy.networking.k8s.io"


def _policies(graph: Graph) -> Mapping[tuple[str, str, str], list[Manifest]]:
    """Network policies by namespace and by the first label that they ask pods for."""
    found: dict[tuple[str, str, str], list[Manifest]] = defaultdict(list)
    for manifest in graph.kind(POLICY):
        selector = mapping(mapping(manifest.body.get("spec")).get("podSelector"))
        found[manifest.ref.namespace, *_first(selector.get("matchLabels"))].append(manifest)
    return found


def policies_for(graph: Graph, namespace: str, labels: Mapping[str, str]) -> list[Manifest]:
    """The network policies of a namespace that select pods with these labels."""
    known_ones = graph.derived(_policies)
    asked = [("", ""), *labels.items()]
    some = [each for label in asked for each in known_ones.get((namespace, *label), ())]
    return [each for each in some if selects(mapping(each.body.get("spec")).get("podSelector"), labels)]


def template_labels(manifest: Manifest, pod: PodTemplate) -> Mapping[str, str]:
    """The labels of the pods of a template, with those that a controller adds by itself."""
    found = dict(labels_of({"metadata": pod.metadata}))
    if manifest.kind == "Pod":
        found |= labels_of(manifest.body)
    if manifest.kind == "LeaderWorkerSet":
        found["leaderworkerset.sigs.k8s.io/name"] = manifest.ref.name
    if manifest.kind == "StatefulSet":
        found.setdefault("apps.kubernetes.io/pod-index", "0")
    return found


def pods_of(graph: Graph, monitor: Monitor) -> Iterator[Pods]:
    """The pod templates whose series a monitor brings."""
    if monitor.of_pods:
        index, key = graph.derived(_Index), _first(mapping(monitor.spec.get("selector")).get("matchLabels"))
        for namespace in _namespaces(graph, monitor):
            for manifest, pod in index.pods.get((namespace, *key), ()):
                if monitor.takes(template_labels(manifest, pod)):
                    yield manifest, pod
        return
    for service in services_of(graph, monitor):
        yield from pods_of_service(graph, service)


def monitors_of(graph: Graph, manifest: Manifest) -> list[Monitor]:
    """The monitors that bring series of the pods of an object."""
    return graph.derived(_by_owner).get(id(manifest), [])


def _by_owner(graph: Graph) -> Mapping[int, list[Monitor]]:
    found: dict[int, list[Monitor]] = {}
    for monitor in monitors(graph):
        for manifest, _ in pods_of(graph, monitor):
            known_ones = found.setdefault(id(manifest), [])
            if monitor not in known_ones:
                known_ones.append(monitor)
    return found
