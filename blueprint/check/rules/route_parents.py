"""Routes of the Gateway API and Ingresses: whether a gateway takes them, and a backend may be reached.

Sources: gateway-api v1.6.0 apis/v1 (shared_types.go ParentReference, gateway_types.go AllowedRoutes),
apis/v1beta1/referencegrant_types.go; k8s.io/api v0.35.4 networking/v1.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from blueprint.check.graph import Graph, selects
from blueprint.check.rules.say import one_of, say, warn
from blueprint.check.shapes import Body, items, known, mapping, maps, number, text
from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest

_API = "gateway.networking.k8s.io"
_ROUTES = tuple(f"{kind}.{_API}" for kind in ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute"))
_GRANT = f"ReferenceGrant.{_API}"
_INGRESS = "Ingress.networking.k8s.io"
_NEAR = 0.8
_BY_ANNOTATION = "use-annotation"
"""The port by which the AWS load balancer controller reads an annotation (its docs/guide/ingress/annotations)."""


def parents(graph: Graph) -> Iterator[Finding]:
    """TRF111: no listener of the gateway takes a route, so that it has no traffic."""
    for route in graph.kind(*_ROUTES):
        for index, parent in enumerate(maps(mapping(route.body.get("spec")).get("parentRefs"))):
            namespace = text(parent.get("namespace")) or route.ref.namespace
            gateway = graph.meant(Ref(_API, "Gateway", namespace, known(parent.get("name"))), route)
            if text(parent.get("kind")) not in ("", "Gateway"):
                continue
            if gateway is None:
                yield from _unknown_parent(graph, route, known(parent.get("name")), namespace, index)
                continue
            problem = _refused(graph, route, gateway, parent)
            if problem:
                message = f"{gateway.ref} does not take this route: {problem[0]}"
                yield say("TRF111", route, message, f"spec.parentRefs[{index}]", problem[1])


def _unknown_parent(graph: Graph, route: Manifest, name: str, namespace: str, index: int) -> Iterator[Finding]:
    """A gateway that is not there, where one of nearly that name is, or one of that very name in another namespace."""
    full = f"Gateway.{_API}"
    if not name or route.unknown or graph.generated(full) or graph.get(Ref(_API, "Gateway", namespace, name)):
        return
    near = get_close_matches(name, [each.ref.name for each in graph.within(namespace, full)], 1, _NEAR)
    there = [each.ref.namespace for each in graph.kind(full) if each.ref.name == name and each.ref.namespace]
    if near:
        message, fix = f"there is no Gateway {namespace}/{name}: nobody takes this route", f"did you mean {near[0]}?"
    elif there and graph.closed(full) and namespace == route.ref.namespace and namespace not in there:
        message = f"there is no Gateway {name} in {namespace}, where a parent without a namespace is looked for"
        fix = f"namespace: {there[0]}"
    else:
        return
    yield warn("TRF111", route, message, f"spec.parentRefs[{index}]", fix)


def _refused(graph: Graph, route: Manifest, gateway: Manifest, parent: Body) -> tuple[str, str] | None:
    """Why no listener takes a route, and what to do; None where one does, or that is not known."""
    listeners = maps(mapping(gateway.body.get("spec")).get("listeners"))
    section, port = known(parent.get("sectionName")), number(parent.get("port"))
    named = [row for row in listeners if not section or row.get("name") == section]
    if section and not named:
        return f"it has no listener {section}", one_of(text(row.get("name")) for row in listeners)
    asked = [row for row in named if port is None or row.get("port") == port]
    if not asked:
        return (f"no listener is on port {port}", "name a port of the gateway") if listeners else None
    if all(not _speaks(route.kind, row) for row in asked):
        protocols = " and ".join(sorted({text(row.get("protocol")) for row in asked}))
        return f"its listeners are of protocol {protocols}, which takes no {route.kind}", _PROTOCOLS_OF[route.kind]
    if all(_closed_to(graph, route, gateway, row) for row in asked):
        return (
            f"its listeners take no routes of namespace {route.ref.namespace}",
            "allowedRoutes: {namespaces: {from: All}}, or a Selector that takes the namespace",
        )
    wanted = [known(name) for name in items(mapping(route.body.get("spec")).get("hostnames"))]
    if wanted and all(wanted):
        own = [text(row.get("hostname")) for row in asked]
        if all(own) and not any(_meet(mine, theirs) for mine in wanted for theirs in own):
            return f"no host name of {', '.join(wanted)} is one of {', '.join(own)}", "take a host name of the listener"
    return None


_SPOKEN = {
    "HTTP": ("HTTPRoute", "GRPCRoute"),
    "HTTPS": ("HTTPRoute", "GRPCRoute"),
    "TLS": ("TLSRoute", "TCPRoute"),
    "TCP": ("TCPRoute",),
    "UDP": ("UDPRoute",),
}
"""The kinds of routes of a protocol: gateway-api v1.6.0 apis/v1/gateway_types.go (AllowedRoutes.Kinds)."""
_PROTOCOLS_OF = {
    kind: "a listener of protocol " + " or ".join(name for name, kinds in _SPOKEN.items() if kind in kinds)
    for kind in ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute")
}


def _speaks(kind: str, listener: Body) -> bool:
    """Whether a listener takes routes of a kind, as far as its protocol and its list of kinds tell."""
    listed = [text(row.get("kind")) for row in maps(mapping(listener.get("allowedRoutes")).get("kinds"))]
    spoken = _SPOKEN.get(known(listener.get("protocol")))
    return (not listed or kind in listed) and (spoken is None or kind in spoken)


def _closed_to(graph: Graph, route: Manifest, gateway: Manifest, listener: Body) -> bool:
    namespaces = mapping(mapping(listener.get("allowedRoutes")).get("namespaces"))
    taken = text(namespaces.get("from")) or "Same"
    if not route.ref.namespace or not gateway.ref.namespace:
        return False
    if taken == "Same":
        return route.ref.namespace != gateway.ref.namespace
    if taken == "Selector":
        labels = graph.labels_of_namespace(route.ref.namespace)
        return labels is not None and not selects(namespaces.get("selector"), labels)
    return taken == "None"


def _meet(one: str, two: str) -> bool:
    """Whether two host names, either of which may start with `*.`, have one in common."""
    for wide, narrow in ((one, two), (two, one)):
        if wide.startswith("*.") and narrow.removeprefix("*").endswith(wide[1:]):
            return True
    return one == two


def foreign_references(graph: Graph) -> Iterator[Finding]:
    """TRF112: a backend or certificate of another namespace that no ReferenceGrant there gives away."""
    if graph.generated(_GRANT):
        return
    for owner, path, ref, kind in (*_backends(graph), *_certificates(graph)):
        namespace = known(ref.get("namespace"))
        if not namespace or namespace == owner.ref.namespace or not owner.ref.namespace:
            continue
        group = text(ref.get("group"))
        there = graph.meant(Ref(group, kind, namespace, known(ref.get("name"))), owner)
        if there is not None and not any(_grants(grant, owner, there) for grant in _grants_of(graph, namespace)):
            message = f"{there.ref} is of another namespace, and no ReferenceGrant there lets a {owner.kind} name it"
            yield say("TRF112", owner, message, path, f"a ReferenceGrant in {namespace}, or keep both together")


def _grants_of(graph: Graph, namespace: str) -> list[Manifest]:
    return [grant for grant in graph.kind(_GRANT) if grant.ref.namespace == namespace]


def _grants(grant: Manifest, owner: Manifest, there: Manifest) -> bool:
    spec = mapping(grant.body.get("spec"))
    comes = any(
        row.get("group", "") == owner.ref.group
        and row.get("kind") == owner.kind
        and row.get("namespace") == owner.ref.namespace
        for row in maps(spec.get("from"))
    )
    return comes and any(
        row.get("group", "") == there.ref.group
        and row.get("kind") == there.kind
        and row.get("name") in (None, there.ref.name)
        for row in maps(spec.get("to"))
    )


def _backends(graph: Graph) -> Iterator[tuple[Manifest, str, Body, str]]:
    for route in graph.kind(*_ROUTES):
        for r, rule in enumerate(maps(mapping(route.body.get("spec")).get("rules"))):
            for b, ref in enumerate(maps(rule.get("backendRefs"))):
                yield route, f"spec.rules[{r}].backendRefs[{b}]", ref, text(ref.get("kind")) or "Service"


def _certificates(graph: Graph) -> Iterator[tuple[Manifest, str, Body, str]]:
    for gateway in graph.kind(f"Gateway.{_API}"):
        for n, listener in enumerate(maps(mapping(gateway.body.get("spec")).get("listeners"))):
            for c, ref in enumerate(maps(mapping(listener.get("tls")).get("certificateRefs"))):
                yield gateway, f"spec.listeners[{n}].tls.certificateRefs[{c}]", ref, text(ref.get("kind")) or "Secret"


def ports(graph: Graph) -> Iterator[Finding]:
    """TRF113: a route or Ingress sends to a port that the Service does not have."""
    for owner, path, ref, kind in _backends(graph):
        port = number(ref.get("port"))
        if kind == "Service" and not ref.get("group") and port is not None:
            namespace = text(ref.get("namespace")) or owner.ref.namespace
            yield from _port(graph, owner, f"{path}.port", Ref("", "Service", namespace, known(ref.get("name"))), port)
    for ingress in graph.kind(_INGRESS):
        for path, service in _services(ingress):
            port_ = mapping(service.get("port"))
            asked = number(port_.get("number")) if "number" in port_ else known(port_.get("name"))
            there = Ref("", "Service", ingress.ref.namespace, known(service.get("name")))
            if asked and asked != _BY_ANNOTATION:
                yield from _port(graph, ingress, f"{path}.port", there, asked)


def _services(ingress: Manifest) -> Iterator[tuple[str, Body]]:
    spec = mapping(ingress.body.get("spec"))
    if service := mapping(mapping(spec.get("defaultBackend")).get("service")):
        yield "spec.defaultBackend.service", service
    for r, rule in enumerate(maps(spec.get("rules"))):
        for p, path in enumerate(maps(mapping(rule.get("http")).get("paths"))):
            if service := mapping(mapping(path.get("backend")).get("service")):
                yield f"spec.rules[{r}].http.paths[{p}].backend.service", service


def _port(graph: Graph, owner: Manifest, path: str, ref: Ref, port: int | str) -> Iterator[Finding]:
    service = graph.meant(ref, owner)
    rows = maps(mapping(service.body.get("spec")).get("ports")) if service else []
    field = "port" if isinstance(port, int) else "name"
    values = [row.get(field) for row in rows]
    if rows and port not in values and not any(isinstance(value, str) and "$" in value for value in values):
        has = ", ".join(f"{row.get('port')}{' ' + text(row.get('name')) if row.get('name') else ''}" for row in rows)
        yield warn(
            "TRF113", owner, f"Service {ref.name} has no port {port}; it has {has}", path, one_of(has.split(", "))
        )


RULES = (parents, foreign_references, ports)
TREE = ()
