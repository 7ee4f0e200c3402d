"""Inference pools and Gateway API routes: shapes by version, pods behind them, canaries that they cannot tell apart.

Sources: gateway-api-inference-extension v1.6.0 api/v1/inferencepool_types.go; argo-rollouts gatewayAPI plugin v0.15.0
(backends are found by name, selectors of Services are changed).
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.engines import engines
from blueprint.check.graph import Graph
from blueprint.check.monitored import pods_in, template_labels
from blueprint.check.rollouts import hosts, rollouts
from blueprint.check.rules.say import note, say, warn
from blueprint.check.rules.traffic import POOLS, ROUTE
from blueprint.check.shapes import Body, known, mapping, maps, number, text
from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest

_NEW, _OLD = "inference.networking.k8s.io", "inference.networking.x-k8s.io"
_PLUGIN = "argoproj-labs/gatewayAPI"
_FIELDS = {
    "targetPortNumber": "targetPorts: [{number: …}]",
    "extensionRef": "endpointPickerRef: {name: …, port: {number: …}}",
}


def shapes(graph: Graph) -> Iterator[Finding]:
    """TRF201: a pool in the shape of one version under the name of another."""
    for pool in graph.kind(*POOLS):
        spec = mapping(pool.body.get("spec"))
        if pool.ref.group == _NEW:
            for name, fix in _FIELDS.items():
                if name in spec:
                    message = f"{name} is of the group {_OLD}; {pool.api_version} does not know it"
                    yield say("TRF201", pool, message, f"spec.{name}", fix)
            selector = mapping(spec.get("selector"))
            if selector and "matchLabels" not in selector:
                message = "the selector is a flat map, as before v1; now the labels stand below matchLabels"
                yield say("TRF201", pool, message, "spec.selector", "selector: {matchLabels: …}")
        elif pool.api_version.endswith("/v1alpha2"):
            message = f"the pool is of the group {_OLD}, from before v1"
            yield note("TRF201", pool, message, "apiVersion", f"{_NEW}/v1, with targetPorts and endpointPickerRef")
        if pool.ref.group == _OLD and ("targetPorts" in spec or "endpointPickerRef" in spec):
            message = f"targetPorts and endpointPickerRef are of {_NEW}/v1"
            yield say("TRF201", pool, message, "apiVersion", f"apiVersion: {_NEW}/v1")


def _labels(pool: Manifest) -> Body:
    selector = mapping(mapping(pool.body.get("spec")).get("selector"))
    return mapping(selector.get("matchLabels")) if "matchLabels" in selector else selector


def members(graph: Graph) -> Iterator[Finding]:
    """TRF202: a pool that selects no pods, or sends to a port at which its servers do not listen."""
    by_owner = {id(engine.manifest): engine for engine in engines(graph)}
    for pool in graph.kind(*POOLS):
        labels, here = _labels(pool), pods_in(graph, pool.ref.namespace)
        chosen = [
            m for m, pod in here if labels and all(template_labels(m, pod).get(str(k)) == v for k, v in labels.items())
        ]
        if labels and here and not chosen and by_owner:
            message = "it selects no pods of its namespace: requests end in 503"
            yield say("TRF202", pool, message, "spec.selector", "labels of the pod template")
        spec = mapping(pool.body.get("spec"))
        wanted = {number(row.get("number")) for row in maps(spec.get("targetPorts"))} | {
            number(spec.get("targetPortNumber"))
        }
        wanted.discard(None)
        listening = {by_owner[id(m)].port for m in chosen if id(m) in by_owner and not by_owner[id(m)].headless}
        if wanted and listening and None not in listening and not wanted & listening:
            ports = ", ".join(str(port) for port in sorted(filter(None, listening)))
            asked = ", ".join(str(port) for port in sorted(filter(None, wanted)))
            message = f"it sends to port {asked}, and its servers listen on {ports}"
            yield say("TRF202", pool, message, "spec.targetPorts", f"targetPorts: [{{number: {ports.split(',')[0]}}}]")


def pickers(graph: Graph) -> Iterator[Finding]:
    """TRF203: the endpoint picker of a pool is not there; by default nothing is served without it."""
    for pool in graph.kind(*POOLS):
        spec = mapping(pool.body.get("spec"))
        picker = mapping(spec.get("endpointPickerRef") or spec.get("extensionRef"))
        name = known(picker.get("name"))
        others = graph.within(pool.ref.namespace, "Service")
        if (
            name
            and others
            and graph.closed("Service")
            and graph.get(Ref("", "Service", pool.ref.namespace, name)) is None
        ):
            closed = text(picker.get("failureMode")) != "FailOpen"
            message = f"there is no Service {name}: " + ("every request fails" if closed else "requests go to any pod")
            yield say("TRF203", pool, message, "spec.endpointPickerRef.name", "add the endpoint picker")


def canaries_over_pools(graph: Graph) -> Iterator[Finding]:
    """TRF204: a Rollout shifts weights between pools, whose selectors it does not change."""
    for rollout in rollouts(graph):
        plugin = mapping(mapping(rollout.routing.get("plugins")).get(_PLUGIN))
        for route in _routes(graph, plugin, rollout.manifest):
            for n, rule in enumerate(maps(mapping(route.body.get("spec")).get("rules"))):
                pools = [
                    text(row.get("name")) for row in maps(rule.get("backendRefs")) if row.get("kind") == "InferencePool"
                ]
                if len(pools) > 1 or any(name in pools for name in hosts(rollout) if name):
                    message = (
                        f"Argo Rollouts changes selectors of Services, not of pools: {' and '.join(pools)} "
                        "both hold pods of both versions"
                    )
                    fix = "a workload and a pool for each version, and weights that a person or a pipeline sets"
                    yield say("TRF204", route, message, f"spec.rules[{n}].backendRefs", fix)
            yield from _both_backends(rollout.manifest, hosts(rollout), route)


def _routes(graph: Graph, plugin: Body, rollout: Manifest) -> Iterator[Manifest]:
    names = [known(plugin.get("httpRoute"))] + [known(row.get("name")) for row in maps(plugin.get("httpRoutes"))]
    namespace = known(plugin.get("namespace")) or rollout.ref.namespace
    for name in names:
        route = graph.nearest(Ref("gateway.networking.k8s.io", "HTTPRoute", namespace, name), rollout) if name else None
        if route is not None:
            yield route


def _both_backends(rollout: Manifest, services: tuple[str, str], route: Manifest) -> Iterator[Finding]:
    """TRF205: a route between which a Rollout shifts that does not hold both Services in one rule."""
    rules = maps(mapping(route.body.get("spec")).get("rules"))
    wanted = {name for name in services if name}
    together = any(wanted <= {text(row.get("name")) for row in maps(rule.get("backendRefs"))} for rule in rules)
    if len(wanted) == 2 and rules and not together:
        message = f"no rule of HTTPRoute {route.ref.name} has both {' and '.join(sorted(wanted))} as backends"
        yield say("TRF205", rollout, message, "spec.strategy.canary.trafficRouting.plugins", "list both in one rule")


def missing_backends(graph: Graph) -> Iterator[Finding]:
    """TRF206: a route leads to a Service or pool that is not there."""
    for route in graph.kind(ROUTE):
        for n, rule in enumerate(maps(mapping(route.body.get("spec")).get("rules"))):
            for m, row in enumerate(maps(rule.get("backendRefs"))):
                kind, group = text(row.get("kind")) or "Service", text(row.get("group"))
                name, namespace = known(row.get("name")), known(row.get("namespace")) or route.ref.namespace
                full = f"{kind}.{group}" if group else kind
                if kind not in {"Service", "InferencePool"} or not name or not graph.closed(full):
                    continue
                if graph.within(namespace, full) and graph.get(Ref(group, kind, namespace, name)) is None:
                    message = f"there is no {kind} {name} in {namespace or 'its namespace'}: requests end in 500"
                    yield say(
                        "TRF206", route, message, f"spec.rules[{n}].backendRefs[{m}].name", "name one that is there"
                    )


def weighted_pools(graph: Graph) -> Iterator[Finding]:
    """TRF207: weights between pools, which not every gateway heeds."""
    for route in graph.kind(ROUTE):
        for n, rule in enumerate(maps(mapping(route.body.get("spec")).get("rules"))):
            pools = [
                row for row in maps(rule.get("backendRefs")) if row.get("kind") == "InferencePool" and "weight" in row
            ]
            if len(pools) > 1:
                message = "some gateways heed weights between inference pools, others ignore them or answer 503"
                yield note("TRF207", route, message, f"spec.rules[{n}].backendRefs", "try it with the gateway you have")


def unregistered_plugins(graph: Graph) -> Iterator[Finding]:
    """TRF208: a Rollout uses a traffic router plugin that the controller's configuration does not name."""
    configured = [m for m in graph.kind("ConfigMap") if m.ref.name == "argo-rollouts-config"]
    for rollout in rollouts(graph) if configured else ():
        for name in mapping(rollout.routing.get("plugins")):
            written = "".join(text(mapping(m.body.get("data")).get("trafficRouterPlugins")) for m in configured)
            if str(name) not in written:
                message = f"argo-rollouts-config does not name the plugin {name}: no traffic is shifted"
                path = "spec.strategy.canary.trafficRouting.plugins"
                yield warn("TRF208", rollout.manifest, message, path, "name it in trafficRouterPlugins")


RULES = (
    shapes,
    members,
    pickers,
    canaries_over_pools,
    missing_backends,
    weighted_pools,
    unregistered_plugins,
)
TREE = ()
