"""Services, Ingresses and NetworkPolicies.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/core/validation/validation.go (validateService),
pkg/apis/networking/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
import re

from blueprint.check import forms
from blueprint.check.native.containers import PROTOCOLS
from blueprint.check.native.problems import Problems, label_selector, labels, port_number, port_or_name
from blueprint.check.shapes import Body, items, mapping, maps, number, text
from blueprint.finding import Confidence

_TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
_NODE_PORTS = range(30000, 32768)
"""What a server allocates from unless it is told otherwise (--service-node-port-range)."""
_OUTSIDE = ("NodePort", "LoadBalancer")
_PEER_KINDS = ("podSelector", "namespaceSelector", "ipBlock")
_BAD_PATH = re.compile(r"//|/\./|/\.\./|%2f|%2F")
_BAD_END = ("/..", "/.")


def service(problems: Problems, body: Body) -> None:
    """NAT301, NAT302 for a Service."""
    spec = mapping(body.get("spec"))
    kind, ports = spec.get("type") or "ClusterIP", maps(spec.get("ports"))
    headless = spec.get("clusterIP") == "None"
    problems.choice("NAT302", "spec.type", kind, _TYPES)
    if not ports and not headless and kind != "ExternalName":
        problems.add("NAT301", "spec.ports" if "ports" in spec else "spec", "a Service needs at least one port")
    if headless and kind in _OUTSIDE:
        problems.add("NAT302", "spec.clusterIP", f"a Service of type {kind} cannot be headless")
    if kind == "ExternalName":
        _external_name(problems, spec)
    _service_ports(problems, kind, ports)
    labels(problems, "NAT302", "spec.selector", spec.get("selector"))
    _affinity(problems, spec)
    _service_choices(problems, spec, kind)
    for name in ("externalIPs", "loadBalancerSourceRanges"):
        for index, value in enumerate(items(spec.get(name))):
            well = _ip(value) if name == "externalIPs" else _network(text(value).strip())
            if isinstance(value, str) and not well:
                problems.add("NAT302", f"spec.{name}[{index}]", f"{value!r} is no IP address or range")


def _external_name(problems: Problems, spec: Body) -> None:
    name = text(spec.get("externalName")).removesuffix(".")
    if problem := forms.subdomain(name):
        problems.add("NAT302", "spec.externalName" if name else "spec", f"externalName {name!r} {problem}")
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            problems.add("NAT302", f"spec.{field}", f"a Service of type ExternalName has no {field}")


def _service_ports(problems: Problems, kind: str, ports: list[Body]) -> None:
    names: set[str] = set()
    numbers: set[tuple[str, int]] = set()
    nodes: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        here, name = f"spec.ports[{index}]", text(port.get("name"))
        if not name and len(ports) > 1:
            problems.add("NAT301", here, "with several ports each needs a name")
        elif name:
            if problem := forms.label_1123(name):
                problems.add("NAT301", f"{here}.name", f"port name {name!r} {problem}")
            if name in names:
                problems.add("NAT301", f"{here}.name", f"port name {name!r} is given twice")
            names.add(name)
        if problem := port_number(port.get("port")):
            problems.add("NAT301", f"{here}.port", problem)
        target = port.get("targetPort")
        if target not in (None, 0, "") and (problem := port_or_name(target)):
            problems.add("NAT301", f"{here}.targetPort", problem)
        protocol = port.get("protocol") or "TCP"
        problems.choice("NAT301", f"{here}.protocol", protocol, PROTOCOLS)
        application = port.get("appProtocol")
        if isinstance(application, str) and (problem := forms.qualified_name(application)):
            problems.add("NAT301", f"{here}.appProtocol", f"appProtocol {application!r}: {problem}")
        for field, seen in (("port", numbers), ("nodePort", nodes)):
            value = number(port.get(field))
            if value:
                if (str(protocol), value) in seen:
                    problems.add("NAT301", f"{here}.{field}", f"{field} {value}/{protocol} is given twice")
                seen.add((str(protocol), value))
        if port.get("nodePort") and kind == "ClusterIP":
            problems.add("NAT301", f"{here}.nodePort", "a Service of type ClusterIP has no nodePort")
        elif (asked := number(port.get("nodePort"))) and asked not in _NODE_PORTS:
            message = f"nodePort {asked} is not between {_NODE_PORTS.start} and {_NODE_PORTS.stop - 1}"
            fix = "leave it out: the server chooses one"
            problems.add("NAT301", f"{here}.nodePort", message, fix, Confidence.LIKELY)


def _affinity(problems: Problems, spec: Body) -> None:
    how, config = spec.get("sessionAffinity") or "None", spec.get("sessionAffinityConfig")
    problems.choice("NAT302", "spec.sessionAffinity", how, ("None", "ClientIP"))
    seconds = number(mapping(mapping(config).get("clientIP")).get("timeoutSeconds"))
    if how == "ClientIP" and seconds is not None and not 1 <= seconds <= 86_400:
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        problems.add("NAT302", path, f"{seconds} s is not between 1 and 86,400")


def _service_choices(problems: Problems, spec: Body, kind: str) -> None:
    external = kind in _OUTSIDE or (kind == "ClusterIP" and bool(items(spec.get("externalIPs"))))
    policy = spec.get("externalTrafficPolicy")
    if policy:
        if not external:
            problems.add("NAT302", "spec.externalTrafficPolicy", "only Services seen from outside have one")
        else:
            problems.choice("NAT302", "spec.externalTrafficPolicy", policy, ("Cluster", "Local"))
    if spec.get("healthCheckNodePort") and not (kind == "LoadBalancer" and policy == "Local"):
        message = "healthCheckNodePort needs type LoadBalancer and externalTrafficPolicy: Local"
        problems.add("NAT302", "spec.healthCheckNodePort", message)
    if spec.get("internalTrafficPolicy") is not None:
        allowed = ("Cluster", "Local")
        problems.choice("NAT302", "spec.internalTrafficPolicy", spec["internalTrafficPolicy"], allowed, True)
    if spec.get("trafficDistribution") is not None:
        known = ("PreferClose", "PreferSameZone", "PreferSameNode")
        problems.choice("NAT302", "spec.trafficDistribution", spec["trafficDistribution"], known, True)
    if kind != "LoadBalancer":
        for name in ("loadBalancerSourceRanges", "allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(name) not in (None, []):
                problems.add("NAT302", f"spec.{name}", f"{name} needs type: LoadBalancer")
    if spec.get("ipFamilyPolicy") is not None:
        known = ("SingleStack", "PreferDualStack", "RequireDualStack")
        problems.choice("NAT302", "spec.ipFamilyPolicy", spec["ipFamilyPolicy"], known, True)
    address = text(spec.get("clusterIP"))
    if address and address != "None" and not _ip(address):
        problems.add("NAT302", "spec.clusterIP", f"{address!r} is no IP address")


def _ip(value: object) -> bool:
    try:
        ipaddress.ip_address(text(value))
    except ValueError:
        return False
    return True


def _network(value: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    if "/" not in value:
        return None
    try:
        return ipaddress.ip_network(value, strict=False)
    except ValueError:
        return None


def network_policy(problems: Problems, body: Body) -> None:
    """NAT304 for a NetworkPolicy."""
    spec = mapping(body.get("spec"))
    label_selector(problems, "NAT304", "spec.podSelector", spec.get("podSelector"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(maps(spec.get(direction))):
            here = f"spec.{direction}[{index}]"
            for position, port in enumerate(maps(rule.get("ports"))):
                _policy_port(problems, f"{here}.ports[{position}]", port)
            for position, peer in enumerate(maps(rule.get(peers))):
                _peer(problems, f"{here}.{peers}[{position}]", peer)
    types = items(spec.get("policyTypes"))
    if len(types) > 2:
        problems.add("NAT304", "spec.policyTypes", "no more than two policy types")
    for index, each in enumerate(types):
        problems.choice("NAT304", f"spec.policyTypes[{index}]", each, ("Ingress", "Egress"), True)


def _policy_port(problems: Problems, at: str, port: Body) -> None:
    if port.get("protocol") is not None:
        problems.choice("NAT304", f"{at}.protocol", port["protocol"], PROTOCOLS, True)
    start, end = port.get("port"), number(port.get("endPort"))
    if start is not None and (problem := port_or_name(start)):
        problems.add("NAT304", f"{at}.port", problem)
    if end is not None:
        first = number(start)
        if first is None:
            problems.add("NAT304", f"{at}.endPort", "endPort needs a port that is a number")
        elif not first <= end <= 65535:
            problems.add("NAT304", f"{at}.endPort", f"endPort {end} is not between port ({first}) and 65535")


def _peer(problems: Problems, at: str, peer: Body) -> None:
    given = [kind for kind in _PEER_KINDS if peer.get(kind) is not None]
    if not given:
        problems.add("NAT304", at, f"none of {', '.join(_PEER_KINDS)} is given")
    elif "ipBlock" in given and len(given) > 1:
        problems.add("NAT304", at, "ipBlock excludes the selectors", "write two peers")
    for kind in ("podSelector", "namespaceSelector"):
        label_selector(problems, "NAT304", f"{at}.{kind}", peer.get(kind))
    if "ipBlock" not in given:
        return
    block = mapping(peer["ipBlock"])
    whole = _network(text(block.get("cidr")))
    if isinstance(block.get("cidr"), str) and whole is None:
        problems.add("NAT304", f"{at}.ipBlock.cidr", f"{block['cidr']!r} is no range of addresses")
    for index, value in enumerate(items(block.get("except"))):
        part = _network(text(value))
        inside = (
            part is not None
            and whole is not None
            and part.version == whole.version
            and part.prefixlen > whole.prefixlen
            and part.network_address in whole
        )
        if isinstance(value, str) and (part is None or (whole is not None and not inside)):
            problems.add("NAT304", f"{at}.ipBlock.except[{index}]", f"{value!r} is no range within {block.get('cidr')}")


def ingress(problems: Problems, body: Body) -> None:
    """NAT303 for an Ingress."""
    spec = mapping(body.get("spec"))
    rules = maps(spec.get("rules"))
    if not rules and spec.get("defaultBackend") is None:
        problems.add("NAT303", "spec", "rules or a defaultBackend must be given")
    if spec.get("defaultBackend") is not None:
        _backend(problems, "spec.defaultBackend", mapping(spec["defaultBackend"]))
    for index, rule in enumerate(rules):
        here, host = f"spec.rules[{index}]", text(rule.get("host"))
        _host(problems, f"{here}.host", host)
        if rule.get("http") is not None:
            paths = mapping(rule["http"]).get("paths")
            if isinstance(paths, list) and not paths:
                problems.add("NAT303", f"{here}.http.paths", "at least one path must be given")
            for position, path in enumerate(maps(paths)):
                _path(problems, f"{here}.http.paths[{position}]", path)
    for index, each in enumerate(maps(spec.get("tls"))):
        for host in items(each.get("hosts")):
            if host == "":
                problems.add("NAT303", f"spec.tls[{index}].hosts", "a host is empty")
            _host(problems, f"spec.tls[{index}].hosts", text(host))
        secret = text(each.get("secretName"))
        if secret and (problem := forms.subdomain(secret)):
            problems.add("NAT303", f"spec.tls[{index}].secretName", f"secretName {secret!r} {problem}")
    name = spec.get("ingressClassName")
    if isinstance(name, str) and (problem := forms.subdomain(name)):
        problems.add("NAT303", "spec.ingressClassName", f"ingressClassName {name!r} {problem}")


def _host(problems: Problems, at: str, host: str) -> None:
    if not host:
        return
    plain = host.removeprefix("*.") if "*" in host else host
    if _ip(host):
        problems.add("NAT303", at, f"host {host} is an IP address; it must be a DNS name")
    elif problem := forms.subdomain(plain):
        problems.add("NAT303", at, f"host {host!r} {problem}")


def _path(problems: Problems, at: str, path: Body) -> None:
    kind, value = path.get("pathType"), text(path.get("path"))
    if kind is not None:
        problems.choice("NAT303", f"{at}.pathType", kind, ("Exact", "Prefix", "ImplementationSpecific"), True)
    strict = kind in ("Exact", "Prefix")
    if (strict or value) and not value.startswith("/"):
        problems.add("NAT303", f"{at}.path" if value else at, f"path {value!r} is not absolute")
    elif strict and (_BAD_PATH.search(value) or value.endswith(_BAD_END)):
        problems.add("NAT303", f"{at}.path", f"path {value!r} holds '//', '/./', '/../' or an escaped slash")
    _backend(problems, f"{at}.backend", mapping(path.get("backend")))


def _backend(problems: Problems, at: str, backend: Body) -> None:
    target, resource = backend.get("service"), backend.get("resource")
    if (target is None) == (resource is None):
        problems.add("NAT303", at, "exactly one of service and resource must be given")
        return
    if target is None:
        _resource(problems, f"{at}.resource", mapping(resource))
        return
    name, port = text(mapping(target).get("name")), mapping(mapping(target).get("port"))
    if problem := forms.label_1035(name):
        problems.add("NAT303", f"{at}.service.name", f"service name {name!r} {problem}")
    called, numbered = text(port.get("name")), port.get("number")
    if bool(called) == bool(numbered):
        problems.add("NAT303", f"{at}.service", "exactly one of port.name and port.number must be given")
    elif problem := port_or_name(called or numbered):
        problems.add("NAT303", f"{at}.service.port", problem)


def _resource(problems: Problems, at: str, resource: Body) -> None:
    group = resource.get("apiGroup")
    if isinstance(group, str) and (problem := forms.subdomain(group)):
        problems.add("NAT303", f"{at}.apiGroup", f"apiGroup {group!r} {problem}")
    for name in ("kind", "name"):
        value = resource.get(name)
        if isinstance(value, str) and (not value or forms.path_segment(value)):
            problems.add("NAT303", f"{at}.{name}", f"{name} {value!r} {forms.path_segment(value) or 'is empty'}")
