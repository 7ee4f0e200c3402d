"""Traffic to servers: subsets, hosts, weights, ports, retries and timeouts of Istio and of the Gateway API.

Sources: istio.io docs/reference/config/networking (VirtualService, DestinationRule); gateway-api v1.5.0 apis/v1;
vllm 0.33.0 entrypoints (503 under load).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from blueprint import promql
from blueprint.check.engines import Engine, engines
from blueprint.check.graph import Graph
from blueprint.check.monitored import pods_in, pods_of_service
from blueprint.check.pods import PodTemplate
from blueprint.check.probes import resolve_port
from blueprint.check.queries import queries
from blueprint.check.rollouts import seconds
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import Body, items, known, mapping, maps, number, text
from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest

VIRTUAL = "VirtualService.networking.istio.io"
RULE = "DestinationRule.networking.istio.io"
ROUTE = "HTTPRoute.gateway.networking.k8s.io"
POOLS = ("InferencePool.inference.networking.k8s.io", "InferencePool.inference.networking.x-k8s.io")
_SHORT = 120
"""Seconds in which a long answer may not have come."""


@dataclass(frozen=True, slots=True)
class Host:
    """A Service by its name in a mesh."""

    namespace: str
    name: str


def host(value: object, namespace: str) -> Host | None:
    """The Service that an Istio host means, None for one outside of the cluster or not known."""
    word = known(value)
    if not word or word == "*":
        return None
    parts = word.removesuffix(".").split(".")
    if len(parts) == 1:
        return Host(namespace, parts[0])
    if len(parts) >= 3 and parts[2] == "svc" and parts[0] != "*":
        return Host(parts[1], parts[0])
    return None


@dataclass(frozen=True, slots=True)
class Destination:
    """One destination of a route, with its path in the object."""

    host: Host
    subset: str
    port: int | None
    at: str


def destinations(service: Manifest) -> Iterator[Destination]:
    """Every destination of a VirtualService, those of mirrors among them."""
    spec = mapping(service.body.get("spec"))
    for kind in ("http", "tcp", "tls"):
        for n, route in enumerate(maps(spec.get(kind))):
            rows = [
                (f"route[{m}].destination", row.get("destination")) for m, row in enumerate(maps(route.get("route")))
            ]
            rows += [("mirror", route.get("mirror"))] if route.get("mirror") else []
            for at, row in rows:
                body = mapping(row)
                found = host(body.get("host"), service.ref.namespace)
                if found:
                    port = number(mapping(body.get("port")).get("number"))
                    yield Destination(found, known(body.get("subset")), port, f"spec.{kind}[{n}].{at}")


def _rules_by_host(graph: Graph) -> Mapping[Host, list[Manifest]]:
    found: dict[Host, list[Manifest]] = {}
    for manifest in graph.kind(RULE):
        target = host(mapping(manifest.body.get("spec")).get("host"), manifest.ref.namespace)
        if target:
            found.setdefault(target, []).append(manifest)
    return found


def subsets(graph: Graph) -> Iterator[Finding]:
    """TRF101: a route leads to a subset that no DestinationRule of the host defines."""
    by_host = graph.derived(_rules_by_host)
    wild = any("*" in text(mapping(m.body.get("spec")).get("host")) for m in graph.kind(RULE))
    for service in graph.kind(VIRTUAL):
        for destination in destinations(service):
            rules = by_host.get(destination.host, [])
            beside = any(each.namespace == destination.host.namespace for each in by_host)
            if not destination.subset or wild or not (rules or (beside and graph.closed(RULE))):
                continue
            there = {
                text(row.get("name")) for rule in rules for row in maps(mapping(rule.body.get("spec")).get("subsets"))
            }
            if destination.subset not in there:
                have = ", ".join(sorted(there)) or "none"
                of = f"in DestinationRule {rules[0].ref.name}, which has {have}" if rules else "in any DestinationRule"
                message = f"the subset {destination.subset} is not defined {of}: requests end in 503"
                yield say(
                    "TRF101", service, message, f"{destination.at}.subset", "define it, or name one that is there"
                )


def rollout_subsets(graph: Graph) -> Iterator[Finding]:
    """TRF102: a Rollout shifts between subsets that its DestinationRule does not define."""
    for rollout in graph.kind("Rollout.argoproj.io"):
        canary = mapping(mapping(mapping(rollout.body.get("spec")).get("strategy")).get("canary"))
        rule = mapping(mapping(mapping(canary.get("trafficRouting")).get("istio")).get("destinationRule"))
        name = known(rule.get("name"))
        found = (
            graph.nearest(Ref("networking.istio.io", "DestinationRule", rollout.ref.namespace, name), rollout)
            if name
            else None
        )
        path = "spec.strategy.canary.trafficRouting.istio.destinationRule"
        if found is None:
            if name and graph.closed(RULE):
                yield say("TRF102", rollout, f"there is no DestinationRule {name}", path, "add it")
            continue
        there = {text(row.get("name")) for row in maps(mapping(found.body.get("spec")).get("subsets"))}
        for key in ("canarySubsetName", "stableSubsetName"):
            subset = known(rule.get(key))
            if subset and subset not in there:
                message = f"DestinationRule {name} has no subset {subset}; it has {', '.join(sorted(there)) or 'none'}"
                yield say("TRF102", rollout, message, f"{path}.{key}", "define it, or name one that is there")


def weights(graph: Graph) -> Iterator[Finding]:
    """TRF103: weights of a route that are not parts of a hundred."""
    for service in graph.kind(VIRTUAL):
        for n, route in enumerate(maps(mapping(service.body.get("spec")).get("http"))):
            given = [number(row.get("weight")) for row in maps(route.get("route"))]
            whole = [weight for weight in given if weight is not None]
            if len(given) > 1 and len(whole) == len(given) and sum(whole) != 100:
                message = f"the weights {' + '.join(map(str, whole))} are {sum(whole)}, not 100"
                yield warn("TRF103", service, message, f"spec.http[{n}].route", "weights that add up to 100")


def hosts(graph: Graph) -> Iterator[Finding]:
    """TRF104: a route or rule for a Service that is not there."""
    services = {(each.ref.namespace, each.ref.name) for each in graph.kind("Service")}
    populated = {namespace for namespace, _ in services}
    if not graph.closed("Service") or graph.kind("ServiceEntry.networking.istio.io"):
        return
    for service in graph.kind(VIRTUAL):
        for destination in destinations(service):
            target = destination.host
            if target.namespace in populated and (target.namespace, target.name) not in services:
                message = (
                    f"there is no Service {target.name} in {target.namespace or 'its namespace'}: requests end in 503"
                )
                yield say("TRF104", service, message, f"{destination.at}.host", "name a Service")
    for rule in graph.kind(RULE):
        found = host(mapping(rule.body.get("spec")).get("host"), rule.ref.namespace)
        if found and found.namespace in populated and (found.namespace, found.name) not in services:
            message = f"it is for the Service {found.name}, which is not there: it changes nothing"
            yield warn("TRF104", rule, message, "spec.host", "name a Service")


def _served(graph: Graph) -> Mapping[tuple[str, str], list[Engine]]:
    """The vLLM servers behind each Service, by namespace and name."""
    by_owner: dict[int, list[Engine]] = {}
    for engine in engines(graph):
        by_owner.setdefault(id(engine.manifest), []).append(engine)
    found: dict[tuple[str, str], list[Engine]] = {}
    for service in graph.kind("Service") if by_owner else ():
        for manifest, _ in pods_of_service(graph, service):
            for engine in by_owner.get(id(manifest), ()):
                if engine not in found.setdefault((service.ref.namespace, service.ref.name), []):
                    found[service.ref.namespace, service.ref.name].append(engine)
    return found


def backends(graph: Graph) -> Iterator[Finding]:
    """TRF105, TRF106: a Service without pods, or with a port at which its pods do not listen."""
    served = graph.derived(_served)
    for service in graph.kind("Service"):
        spec = mapping(service.body.get("spec"))
        selector = mapping(spec.get("selector"))
        if not selector or spec.get("type") == "ExternalName" or not service.ref.namespace:
            continue
        pods = list(pods_of_service(graph, service))
        if not pods:
            if pods_in(graph, service.ref.namespace) and _near_miss(graph, service, selector):
                message = "it selects no pods; those of its name have other labels"
                yield say("TRF105", service, message, "spec.selector", "labels of the pod template")
            continue
        for n, row in enumerate(maps(spec.get("ports"))):
            target = row.get("targetPort", row.get("port"))
            path = f"spec.ports[{n}].targetPort"
            if isinstance(target, str) and not target.isdigit() and known(target):
                if all(resolve_port(target, {"ports": _ports(pod.spec)}) is None for _, pod in pods) and not _injected(
                    pods
                ):
                    message = f"none of its pods has a port called {target}: nothing answers"
                    yield say("TRF106", service, message, path, "a name of a container port, or a number")
                continue
            port = resolve_port(target, {})
            listening = {engine.port for engine in served.get((service.ref.namespace, service.ref.name), ())}
            declared = {number(each.get("containerPort")) for _, pod in pods for each in _ports(pod.spec)}
            if (
                port
                and listening
                and None not in listening
                and port not in listening | declared
                and not _injected(pods)
            ):
                answers = min(filter(None, listening))
                message = f"it sends to port {port}, and vLLM listens on {answers}"
                yield say("TRF106", service, message, path, f"targetPort: {answers}")


def _ports(spec: Body) -> list[Body]:
    found = [row for container in maps(spec.get("containers")) for row in maps(container.get("ports"))]
    return found + [row for container in maps(spec.get("initContainers")) for row in maps(container.get("ports"))]


def _injected(pods: Sequence[tuple[Manifest, PodTemplate]]) -> bool:
    return any("sidecar" in str(mapping(manifest.body.get("metadata"))) for manifest, _ in pods)


def _near_miss(graph: Graph, service: Manifest, selector: Body) -> bool:
    """Whether a workload of this name, or with some of these labels, is there and not selected."""
    for manifest, pod in pods_in(graph, service.ref.namespace):
        labels = mapping(pod.metadata.get("labels"))
        same = sum(labels.get(key) == value for key, value in selector.items())
        if manifest.ref.name == service.ref.name and not same:
            return True
        if same and len(selector) > 1 and all(key in labels for key in selector):
            return manifest.ref.name == service.ref.name
    return False


_UNSAFE = re.compile(r"\b(5xx|gateway-error|retriable-status-codes|retriable-4xx|reset)\b(?!-before)")


def retries(graph: Graph) -> Iterator[Finding]:
    """TRF107: requests to a model are sent again after they have reached a server."""
    served = graph.derived(_served)
    for service in graph.kind(VIRTUAL):
        to_model = any((d.host.namespace, d.host.name) in served for d in destinations(service))
        for n, route in enumerate(maps(mapping(service.body.get("spec")).get("http"))):
            policy = mapping(route.get("retries"))
            match = _UNSAFE.search(text(policy.get("retryOn")))
            if to_model and match and (number(policy.get("attempts")) or 0) > 0:
                message = f"a request is sent again on {match[1]}: an overloaded server has the same work twice"
                fix = "retryOn: connect-failure,refused-stream,reset-before-request"
                yield warn("TRF107", service, message, f"spec.http[{n}].retries.retryOn", fix)


def timeouts(graph: Graph) -> Iterator[Finding]:
    """TRF108: a route ends requests before an answer of the promised or usual length has come."""
    promised = graph.derived(_longest_promise)
    for manifest, at, seconds_given, to_model in _timeouts(graph):
        limit = promised.get(manifest.ref.namespace) or promised.get("")
        if limit and seconds_given < limit:
            message = (
                f"requests are cut off after {seconds_given:g} s, and answers may take {limit:g} s by the rules here"
            )
            yield warn("TRF108", manifest, message, at, f"{limit:g}s or more")
        elif to_model and seconds_given < _SHORT:
            message = f"requests to a model are cut off after {seconds_given:g} s: long answers end in the middle"
            yield warn("TRF108", manifest, message, at, "600s, or a timeout for idle streams only")


def _timeouts(graph: Graph) -> Iterator[tuple[Manifest, str, float, bool]]:
    served = graph.derived(_served)
    for service in graph.kind(VIRTUAL):
        to_model = any((d.host.namespace, d.host.name) in served for d in destinations(service))
        for n, route in enumerate(maps(mapping(service.body.get("spec")).get("http"))):
            given = seconds(route.get("timeout"))
            if given:
                yield service, f"spec.http[{n}].timeout", given, to_model
    for manifest in graph.kind(ROUTE):
        for n, rule in enumerate(maps(mapping(manifest.body.get("spec")).get("rules"))):
            given = seconds(mapping(rule.get("timeouts")).get("request"))
            rows = maps(rule.get("backendRefs"))
            names = [(text(row.get("namespace")) or manifest.ref.namespace, text(row.get("name"))) for row in rows]
            to_model = any(row.get("kind") == "InferencePool" for row in rows) or any(name in served for name in names)
            if given:
                yield manifest, f"spec.rules[{n}].timeouts.request", given, to_model


_WHOLE = "vllm:e2e_request_latency_seconds"


def _longest_promise(graph: Graph) -> Mapping[str, float]:
    """The longest time that rules and analyses of a namespace allow a whole answer to take."""
    found: dict[str, float] = {}
    for written in queries(graph):
        if written.tree is None or _WHOLE not in written.text or written.role == "dashboard":
            continue
        values = [float(value) for value in _allowed(written.tree) if value]
        namespace = written.manifest.ref.namespace
        found[namespace] = max([found.get(namespace, 0.0), *values])
    return found


def _allowed(tree: promql.Node) -> Iterator[str | float | None]:
    """Limits on quantiles of the whole time, and buckets of it that are counted."""
    for node, _ in promql.walk(tree):
        match node:
            case promql.Select(metric) if metric == f"{_WHOLE}_bucket" and _NUMBER.fullmatch(node.value("le") or ""):
                yield node.value("le")
            case promql.Binary(">" | ">=", promql.Call("histogram_quantile", args), right):
                if any(select.metric.startswith(_WHOLE) for select, _ in promql.selects(args[-1])):
                    yield promql.constant(right)


_NUMBER = re.compile(r"\d+(\.\d+)?")


def ejections(graph: Graph) -> Iterator[Finding]:
    """TRF109: a replica that says 503 under load is left out, and the others get its load."""
    served = graph.derived(_served)
    for rule in graph.kind(RULE):
        spec = mapping(rule.body.get("spec"))
        target = host(spec.get("host"), rule.ref.namespace)
        outlier = mapping(mapping(spec.get("trafficPolicy")).get("outlierDetection"))
        counted = number(outlier.get("consecutive5xxErrors"), 5) or number(outlier.get("consecutiveGatewayErrors"))
        local = outlier.get("splitExternalLocalOriginErrors") is True
        if target and (target.namespace, target.name) in served and outlier and counted and not local:
            message = "under load all replicas say 503; each that is left out sends its load to the others"
            fix = "consecutive5xxErrors: 0 and splitExternalLocalOriginErrors: true"
            yield warn("TRF109", rule, message, "spec.trafficPolicy.outlierDetection", fix)


def same_hosts(graph: Graph) -> Iterator[Finding]:
    """TRF110: two VirtualServices for one host and gateway, of which one route list or the other wins."""
    seen: dict[tuple[str, str, str], Manifest] = {}
    for service in graph.kind(VIRTUAL):
        spec = mapping(service.body.get("spec"))
        gateways = [text(each) for each in items(spec.get("gateways"))] or ["mesh"]
        for name in items(spec.get("hosts")):
            short = host(name, service.ref.namespace)
            where = f"{short.namespace}/{short.name}" if short and "." not in known(name) else known(name)
            for gateway in gateways if where else ():
                other = seen.setdefault((where, gateway, service.ref.namespace if gateway == "mesh" else ""), service)
                if other is not service and other.ref != service.ref:
                    message = f"VirtualService {other.ref.name} has routes for {known(name)}, too: in no fixed order"
                    yield note("TRF110", service, message, "spec.hosts", "one VirtualService for a host")
                    break


RULES = (
    subsets,
    rollout_subsets,
    weights,
    hosts,
    backends,
    retries,
    timeouts,
    ejections,
    same_hosts,
)
TREE = ()
