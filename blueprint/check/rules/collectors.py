"""OpenTelemetry collectors: pipelines whose parts exist, are in the image, stand in the right order and may read pods.

Sources: opentelemetry-operator v0.158.0 apis/v1beta1 (config is a mapping), opentelemetry-collector docs (pipelines),
opentelemetry-collector-contrib processor/tailsamplingprocessor and k8sattributesprocessor README.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from blueprint.check.graph import Graph
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, items, known, mapping, maps, number, placeholder, text
from blueprint.finding import Confidence, Finding
from blueprint.objects import Manifest

KIND = "OpenTelemetryCollector.opentelemetry.io"
_PARTS = {"receivers": "receivers", "processors": "processors", "exporters": "exporters"}
_ONLY_CONTRIB = (
    "k8sattributes",
    "tail_sampling",
    "loadbalancing",
    "groupbytrace",
    "transform",
    "routing",
    "spanmetrics",
    "servicegraph",
)
_CORE = ("opentelemetry-collector:", "/otelcol:", "opentelemetry-collector-releases/opentelemetry-collector:")
_ORDER = (("k8sattributes", "tail_sampling"), ("k8sattributes", "batch"), ("tail_sampling", "batch"))
_NEEDED = frozenset({"pods", "namespaces"})


@dataclass(frozen=True, slots=True)
class Collector:
    """One collector whose configuration is a mapping."""

    manifest: Manifest
    spec: Body
    config: Body

    @property
    def pipelines(self) -> Mapping[str, Body]:
        """The pipelines by name."""
        found = mapping(mapping(self.config.get("service")).get("pipelines"))
        return {str(name): mapping(pipeline) for name, pipeline in found.items()}

    def kinds(self, part: str) -> set[str]:
        """The types of the components that pipelines use."""
        return {kind_of(text(each)) for p in self.pipelines.values() for each in items(p.get(part))}

    def defined(self, part: str) -> set[str]:
        """The components of a kind that are configured; connectors are receivers and exporters."""
        more = mapping(self.config.get("connectors")) if part != "processors" else {}
        return {str(name) for name in {**mapping(self.config.get(part)), **more}}


def _collectors(graph: Graph) -> list[Collector]:
    found = []
    for manifest in graph.kind(KIND):
        spec = mapping(manifest.body.get("spec"))
        if isinstance(spec.get("config"), dict):
            found.append(Collector(manifest, spec, spec["config"]))
    return found


def kind_of(name: str) -> str:
    """The type of a component: `otlp` of `otlp/tempo`."""
    return name.partition("/")[0]


def text_configs(graph: Graph) -> Iterator[Finding]:
    """MON201: the configuration is a text, which v1beta1 does not take."""
    for manifest in graph.kind(KIND):
        config = mapping(manifest.body.get("spec")).get("config")
        if manifest.api_version.endswith("/v1beta1") and isinstance(config, str) and not placeholder(config):
            message = "v1beta1 wants config as a mapping, and this is a text"
            yield say("MON201", manifest, message, "spec.config", "leave out the `|`")


def undefined_parts(graph: Graph) -> Iterator[Finding]:
    """MON202: a pipeline names a component that is not configured, or has no receiver or exporter."""
    for collector in graph.derived(_collectors):
        for name, pipeline in collector.pipelines.items():
            path = f"spec.config.service.pipelines.{name}"
            for part in _PARTS:
                named = [known(each) for each in items(pipeline.get(part))]
                for each in named:
                    if each and each not in collector.defined(part):
                        message = (
                            f"the pipeline {name} uses {each}, which is not among {part}: the collector does not start"
                        )
                        yield say("MON202", collector.manifest, message, f"{path}.{part}", f"{part}: {{{each}: {{}}}}")
                if not named and part != "processors":
                    message = f"the pipeline {name} has no {part}: the collector does not start"
                    yield say("MON202", collector.manifest, message, path, f"name one of its {part}")
        used = {text(each) for p in collector.pipelines.values() for part in _PARTS for each in items(p.get(part))}
        for part in ("receivers", "processors", "exporters", "connectors"):
            for name in mapping(collector.config.get(part)):
                if collector.pipelines and name not in used:
                    message, path = f"{name} is configured and no pipeline uses it", f"spec.config.{part}.{name}"
                    yield warn("MON203", collector.manifest, message, path, "use it, or leave it out")


def split_traces(graph: Graph) -> Iterator[Finding]:
    """MON204: several collectors sample by whole traces, and nothing brings the spans of a trace to one of them."""
    everywhere = graph.derived(_collectors)
    exporters = [item for each in everywhere for item in mapping(each.config.get("exporters")).items()]
    balanced = [str(body) for name, body in exporters if kind_of(str(name)) == "loadbalancing"]
    for collector in everywhere:
        replicas = number(collector.spec.get("replicas"), 1) or 1
        most = number(mapping(collector.spec.get("autoscaler")).get("maxReplicas"), 1) or 1
        mode = text(collector.spec.get("mode")) or "deployment"
        sampling = collector.kinds("processors") & {"tail_sampling", "groupbytrace"}
        if not sampling or (max(replicas, most) < 2 and mode != "daemonset"):
            continue
        if any(collector.manifest.ref.name in target for target in balanced):
            continue
        several = "many" if mode == "daemonset" else str(max(replicas, most))
        message = f"{several} collectors decide on traces of which each sees some spans"
        fix = "a first layer with the loadbalancing exporter (routing_key: traceID), or one replica"
        yield say("MON204", collector.manifest, message, "spec.replicas", fix)


def order(graph: Graph) -> Iterator[Finding]:
    """MON205: processors in an order in which one undoes or misses another."""
    for collector in graph.derived(_collectors):
        for name, pipeline in collector.pipelines.items():
            kinds = [kind_of(text(each)) for each in items(pipeline.get("processors"))]
            path = f"spec.config.service.pipelines.{name}.processors"
            if "memory_limiter" in kinds and kinds[0] != "memory_limiter":
                yield warn("MON205", collector.manifest, "memory_limiter does not stand first", path, "put it first")
            if "tail_sampling" in kinds and "memory_limiter" not in kinds:
                message = "tail_sampling holds whole traces in memory, and no memory_limiter stands before it"
                yield warn("MON205", collector.manifest, message, path, "memory_limiter first")
            for first, second in _ORDER:
                if first in kinds and second in kinds and kinds.index(second) < kinds.index(first):
                    message = f"{first} stands behind {second}, which does its work without it"
                    yield warn("MON205", collector.manifest, message, path, f"{first} before {second}")


def missing_in_image(graph: Graph) -> Iterator[Finding]:
    """MON206: the core distribution does not hold a component that is configured."""
    for collector in graph.derived(_collectors):
        image = known(collector.spec.get("image"))
        if not any(name in image for name in _CORE) or "contrib" in image or "k8s" in image:
            continue
        for part in ("receivers", "processors", "exporters", "connectors"):
            for name in mapping(collector.config.get(part)):
                if kind_of(str(name)) in _ONLY_CONTRIB:
                    message = f"the core distribution has no {kind_of(str(name))}: the collector does not start"
                    yield say("MON206", collector.manifest, message, "spec.image", "the contrib or k8s distribution")


def may_not_read(graph: Graph) -> Iterator[Finding]:
    """MON207: k8sattributes asks the API server for pods, and no role lets the collector."""
    for collector in graph.derived(_collectors):
        if "k8sattributes" not in collector.kinds("processors") or not _asks_for_pods(collector):
            continue
        account = text(collector.spec.get("serviceAccount")) or f"{collector.manifest.ref.name}-collector"
        allowed = _readable(graph, account, collector.manifest.ref.namespace)
        if not allowed >= _NEEDED and "*" not in allowed:
            lacking = ", ".join(sorted(_NEEDED - allowed))
            message = f"k8sattributes reads {lacking}, and no ClusterRole here lets the account {account}"
            sure = None if graph.closed("ClusterRoleBinding.rbac.authorization.k8s.io") else Confidence.LIKELY
            fix, path = (
                "get, watch and list on pods, namespaces and replicasets",
                "spec.config.processors.k8sattributes",
            )
            yield say("MON207", collector.manifest, message, path, fix, confidence=sure)


def _asks_for_pods(collector: Collector) -> bool:
    """Whether k8sattributes asks the API server; with passthrough it only notes the address of the pod."""
    processors = mapping(collector.config.get("processors")).items()
    bodies = [mapping(body) for name, body in processors if kind_of(str(name)) == "k8sattributes"]
    return not bodies or any(body.get("passthrough") is not True for body in bodies)


def _readable(graph: Graph, account: str, namespace: str) -> set[str]:
    found: set[str] = set()
    roles = {role.ref.name: role for role in graph.kind("ClusterRole.rbac.authorization.k8s.io")}
    for binding in graph.kind("ClusterRoleBinding.rbac.authorization.k8s.io"):
        subjects = maps(binding.body.get("subjects"))
        mine = any(s.get("name") == account and s.get("namespace", namespace) == namespace for s in subjects)
        role = roles.get(text(mapping(binding.body.get("roleRef")).get("name")))
        for rule in maps(role.body.get("rules")) if role and mine else ():
            if {"list", "*"} & set(map(text, items(rule.get("verbs")))):
                found |= {text(each) for each in items(rule.get("resources"))}
        if mine and role is None:
            return {"*"}
    return found


def sampled_twice(graph: Graph) -> Iterator[Finding]:
    """MON208: traces are sampled at random where they begin and once more in the collector."""
    heads = []
    for _, pod in graph.pods:
        for container in maps(pod.spec.get("containers")):
            env = {text(row.get("name")): text(row.get("value")) for row in maps(container.get("env"))}
            if "ratio" in env.get("OTEL_TRACES_SAMPLER", "") and env.get("OTEL_TRACES_SAMPLER_ARG", "1") not in {
                "1",
                "1.0",
            }:
                heads.append(env["OTEL_TRACES_SAMPLER_ARG"])
    for collector in graph.derived(_collectors) if heads else ():
        used = collector.kinds("processors")
        if used & {"probabilistic_sampler", "tail_sampling"}:
            message = f"programs keep a share of {heads[0]} of their traces: the rest, errors too, never comes here"
            yield warn("MON208", collector.manifest, message, "spec.config.processors", "sample in one place")


RULES = (
    text_configs,
    undefined_parts,
    split_traces,
    order,
    missing_in_image,
    may_not_read,
    sampled_twice,
)
TREE = ()
