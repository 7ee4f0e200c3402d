"""Monitors that scrape nothing, too much, or what another scrapes already; Prometheus that does not see them.

Sources: prometheus-operator v0.93.1 pkg/prometheus/promcfg.go and pkg/operator (which monitors are taken, which scrape
settings are refused); kube-state-metrics v2.20.0 docs/developer/cli-arguments.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from blueprint.catalog.series import label_name
from blueprint.check.engines import engines
from blueprint.check.graph import Graph, labels_of, selects
from blueprint.check.monitored import (
    PROMETHEUS,
    Endpoint,
    Monitor,
    duration,
    elsewhere,
    monitors,
    pods_in,
    pods_of,
    policies_for,
    services_of,
    template_labels,
)
from blueprint.check.references import folder
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import items, known, mapping, maps, number, placeholder, text
from blueprint.finding import Finding
from blueprint.objects import Manifest

_ENGINE_SERIES = 350
"""Series of one vLLM engine with its default buckets (vllm 0.33.0 v1/metrics/loggers.py, counted)."""
_CHURNING = frozenset({"trace_id", "request_id", "session_id", "user_id", "user", "prompt", "uid"})


def without_services(graph: Graph) -> Iterator[Finding]:
    """MON101: a ServiceMonitor selects no Service, often since the label stands in the Service's selector only."""
    for monitor in monitors(graph):
        if monitor.of_pods or not monitor.known or services_of(graph, monitor):
            continue
        here = [each for each in graph.kind("Service") if monitor.covers(each.ref.namespace)]
        if not monitor.manifest.ref.namespace:  # which of the others without a namespace are its own, folders tell
            here = [each for each in here if folder(each) == folder(monitor.manifest)]
        if not graph.closed("Service"):
            continue
        if _own_kind(monitor) and (others := elsewhere(graph, monitor)):
            message = f"Services with these labels are in {others[0]}, and it looks into its own namespace only"
            fix = f"namespaceSelector: {{matchNames: [{', '.join(others[:3])}]}}"
            yield say("MON101", monitor.manifest, message, "spec.namespaceSelector", fix)
            continue
        if meant := _meant(graph, monitor, here):
            yield warn("MON101", monitor.manifest, *meant)
            continue
        if not here:
            continue
        by_selector = [each for each in here if selects(monitor.spec.get("selector"), _selector(each))]
        if by_selector:
            message = f"Service {by_selector[0].ref.name} has these labels in its selector only: there is no target"
            yield say("MON101", monitor.manifest, message, "spec.selector", "add the labels to metadata of the Service")
        elif _own_kind(monitor):
            message = "it selects no Service of the namespaces it looks into: there is no target"
            yield warn("MON101", monitor.manifest, message, "spec.selector", "compare with labels of the Services")


def _meant(graph: Graph, monitor: Monitor, here: Sequence[Manifest]) -> tuple[str, str, str] | None:
    """What is nearly selected: Services of a namespace of nearly that name, or with one label under another key."""
    asked = [known(name) for name in items(mapping(monitor.spec.get("namespaceSelector")).get("matchNames"))]
    for name in asked:
        near = get_close_matches(name, [each for each in graph.namespaces() if each], 1, 0.8) if name else []
        if not near or name in graph.namespaces():
            continue
        if any(monitor.takes(labels_of(each.body)) for each in graph.within(near[0], "Service")):
            message = f"there is no namespace {name} here, and the Services with these labels are in {near[0]}"
            return message, "spec.namespaceSelector", f"did you mean {near[0]}?"
    wanted = mapping(mapping(monitor.spec.get("selector")).get("matchLabels"))
    if len(wanted) != 1:
        return None
    (key, value), *_ = wanted.items()
    for service in here:
        other = next((each for each, of in labels_of(service.body).items() if of == value and each != key), "")
        if other and key not in labels_of(service.body) and not placeholder(value):
            message = f"no Service has the label {key}={value}, and {service.ref.name} has {other}={value}"
            return message, "spec.selector", f"matchLabels: {{{other}: {value}}}"
    return None


def _selector(service: Manifest) -> dict[str, str]:
    found = mapping(mapping(service.body.get("spec")).get("selector"))
    return {str(key): text(value) for key, value in found.items()}


def _own_kind(monitor: Monitor) -> bool:
    """Whether it looks only into its own namespace: what it monitors elsewhere may be installed by others."""
    chosen = mapping(monitor.spec.get("namespaceSelector"))
    return not chosen.get("any") and not chosen.get("matchNames")


def without_pods(graph: Graph) -> Iterator[Finding]:
    """MON102: a PodMonitor selects no pod of the tree."""
    for monitor in monitors(graph):
        if not monitor.of_pods or not monitor.known or not _own_kind(monitor) or any(pods_of(graph, monitor)):
            continue
        namespace = monitor.manifest.ref.namespace
        if namespace and (others := elsewhere(graph, monitor)):
            message = f"pods with these labels are in {others[0]}, and it looks into its own namespace only"
            fix = f"namespaceSelector: {{matchNames: [{', '.join(others[:3])}]}}"
            yield say("MON102", monitor.manifest, message, "spec.namespaceSelector", fix)
        elif namespace and pods_in(graph, namespace):
            message = "it selects no pod of its namespace: there is no target"
            yield say("MON102", monitor.manifest, message, "spec.selector", "compare with labels of the pod templates")


def ports(graph: Graph) -> Iterator[Finding]:
    """MON103: an endpoint names a port that its Services or pods do not have, or gives a number for a name."""
    for monitor in monitors(graph):
        names = _port_names(graph, monitor)
        if names is None:
            continue
        for endpoint in monitor.endpoints:
            port = known(endpoint.body.get("port"))
            if not port or port in names:
                continue
            what = "container ports" if monitor.of_pods else "ports of the Service"
            number_given = f": {port} is a number, and a name is wanted" if port.isdigit() else ""
            message = f"none of the {what} is called {port}{number_given}; there is no target"
            fix = f"port: {sorted(names)[0]}" if names else "give the port a name"
            yield say("MON103", monitor.manifest, message, f"{endpoint.at}.port", fix)


def _port_names(graph: Graph, monitor: Monitor) -> set[str] | None:
    """Names of the ports that can be scraped, None where nothing is selected or something is not known."""
    names: set[str] = set()
    if monitor.of_pods:
        pods = list(pods_of(graph, monitor))
        for _, pod in pods:
            for part in ("containers", "initContainers"):
                for container in maps(pod.spec.get(part)):
                    names |= {text(row.get("name")) for row in maps(container.get("ports"))}
            if any("inject" in key for key in template_labels(*next(iter([(_, pod)])))):
                names.add("http-envoy-prom")
        return names - {""} if pods else None
    services = services_of(graph, monitor)
    if not services and any(text(each.body.get("port")).isdigit() for each in monitor.endpoints):
        # A number is wrong whatever is selected; its name is that of the Service whose pods are meant.
        services = [each for each in graph.kind("Service") if monitor.covers(each.ref.namespace)]
        services = [each for each in services if selects(monitor.spec.get("selector"), _selector(each))]
    for service in services:
        names |= {text(row.get("name")) for row in maps(mapping(service.body.get("spec")).get("ports"))}
    return names - {""} if services else None


def unseen(graph: Graph) -> Iterator[Finding]:
    """MON104: no Prometheus of the tree takes a monitor or a rule, by its labels."""
    fields = {"ServiceMonitor": "serviceMonitor", "PodMonitor": "podMonitor", "PrometheusRule": "rule"}
    for kind, field in fields.items():
        owners = [each for each in graph.kind(*PROMETHEUS) if f"{field}Selector" in mapping(each.body.get("spec"))]
        for manifest in graph.kind(f"{kind}.monitoring.coreos.com"):
            takers = [each for each in owners if _looks_into(graph, each, field, manifest.ref.namespace)]
            selectors = [mapping(each.body.get("spec")).get(f"{field}Selector") for each in takers]
            if takers and not any(selects(selector, labels_of(manifest.body)) for selector in selectors):
                wanted = mapping(mapping(selectors[0]).get("matchLabels"))
                fix = ", ".join(f"{key}: {value}" for key, value in wanted.items())
                message = f"Prometheus {takers[0].ref.name} takes no {kind} with these labels"
                yield warn("MON104", manifest, message, "metadata.labels", fix or "see its selector")


def _looks_into(graph: Graph, owner: Manifest, field: str, namespace: str) -> bool:
    """Whether a Prometheus looks for such objects in a namespace; without a selector only in its own."""
    chosen = mapping(owner.body.get("spec")).get(f"{field}NamespaceSelector")
    if chosen is None:
        return owner.ref.namespace == namespace
    return chosen == {} or selects(chosen, graph.labels_of_namespace(namespace) or {})


def timings(graph: Graph) -> Iterator[Finding]:
    """MON105: a scrape may take longer than the time between two scrapes; the operator leaves the monitor out."""
    for monitor in monitors(graph):
        for endpoint in monitor.endpoints:
            wait, interval = duration(endpoint.body.get("scrapeTimeout")), endpoint.interval
            if wait and interval and wait > interval:
                message = f"scrapeTimeout {wait:g} s is more than the interval, {interval:g} s: the monitor is rejected"
                yield say("MON105", monitor.manifest, message, f"{endpoint.at}.scrapeTimeout", f"at most {interval:g}s")


def limits(graph: Graph) -> Iterator[Finding]:
    """MON106: sampleLimit is below what a target has: the whole target fails."""
    serving = {id(engine.manifest): engine for engine in engines(graph)}
    for monitor in monitors(graph):
        limit = number(monitor.spec.get("sampleLimit"))
        if not limit:
            continue
        for manifest, _ in pods_of(graph, monitor):
            engine = serving.get(id(manifest))
            if engine is None or any(_drops(endpoint) for endpoint in monitor.endpoints):
                continue
            needed = _ENGINE_SERIES * (engine.size("--data-parallel-size") or 1)
            if limit < needed:
                message = f"a vLLM target has some {needed} series: above sampleLimit {limit} all of it fails"
                yield say(
                    "MON106", monitor.manifest, message, "spec.sampleLimit", f"{needed * 2} or more, or drop series"
                )
            break


def _drops(endpoint: Endpoint) -> bool:
    return any(row.get("action") in {"keep", "drop"} for row in maps(endpoint.body.get("metricRelabelings")))


def twice(graph: Graph) -> Iterator[Finding]:
    """MON107: two monitors scrape the same port of the same pods: every sum is twice as large."""
    seen: dict[tuple[int, str, str], Monitor] = {}
    told: set[tuple[int, int]] = set()
    for monitor in monitors(graph):
        for manifest, pod in pods_of(graph, monitor):
            for endpoint in monitor.endpoints:
                if endpoint.body.get("relabelings"):
                    continue  # it may keep one of the targets only
                port, path = (
                    _target_port(graph, monitor, pod.spec, endpoint),
                    text(endpoint.body.get("path")) or "/metrics",
                )
                other = seen.setdefault((id(manifest), port, path), monitor)
                pair = (id(other), id(monitor))
                if other is not monitor and port and pair not in told:
                    told.add(pair)
                    message = f"{other.manifest.ref} scrapes {manifest.ref} at the same port, too: series come twice"
                    yield warn("MON107", monitor.manifest, message, "spec.selector", "leave one of the two")


def _target_port(graph: Graph, monitor: Monitor, spec: dict[str, object], endpoint: Endpoint) -> str:
    """The number of the container port behind an endpoint, "" where it is not known."""
    name = known(endpoint.body.get("port"))
    if not monitor.of_pods:
        for service in services_of(graph, monitor):
            for row in maps(mapping(service.body.get("spec")).get("ports")):
                if row.get("name") == name:
                    target = row.get("targetPort", row.get("port"))
                    return str(target) if isinstance(target, int) else _by_name(spec, text(target))
        return ""
    return _by_name(spec, name)


def _by_name(spec: dict[str, object], name: str) -> str:
    for container in maps(spec.get("containers")):
        for row in maps(container.get("ports")):
            if name and row.get("name") == name:
                return str(row.get("containerPort"))
    return ""


def churning_labels(graph: Graph) -> Iterator[Finding]:
    """MON108: a label that is different for each request becomes a label of series."""
    adapted = {id(engine.manifest) for engine in engines(graph) if engine.switched_on("--enable-lora")}
    for monitor in monitors(graph):
        for label in sorted(monitor.added_labels & _CHURNING):
            message = f"{label} is another for each request or pod: each of its values is a series of its own"
            yield warn("MON108", monitor.manifest, message, "spec", "leave it to traces and logs")
        if not adapted or any(map(_drops, monitor.endpoints)):
            continue
        if any(id(manifest) in adapted for manifest, _ in pods_of(graph, monitor)):
            message = "vllm:lora_requests_info has a series for each set of adapters at work; nothing drops it"
            yield note("MON108", monitor.manifest, message, "spec", "drop it in metricRelabelings")


def paths(graph: Graph) -> Iterator[Finding]:
    """MON109: vLLM gives its metrics at /metrics only."""
    serving = {id(engine.manifest) for engine in engines(graph)}
    for monitor in monitors(graph):
        for manifest, pod in pods_of(graph, monitor):
            meshed = any("inject" in key for key in template_labels(manifest, pod))
            if id(manifest) in serving and not meshed and len(maps(pod.spec.get("containers"))) == 1:
                for endpoint in monitor.endpoints:
                    path = text(endpoint.body.get("path")) or "/metrics"
                    if path.rstrip("/") != "/metrics" and not placeholder(path):
                        message = f"vLLM has no {path}: its metrics are at /metrics"
                        yield say("MON109", monitor.manifest, message, f"{endpoint.at}.path", "/metrics")
            break


def blocked(graph: Graph) -> Iterator[Finding]:
    """MON110: network policies of the pods let nobody in at the port that is scraped."""
    for monitor in monitors(graph):
        for manifest, pod in pods_of(graph, monitor):
            labels = template_labels(manifest, pod)
            rules = [
                each
                for each in policies_for(graph, manifest.ref.namespace, labels)
                if "Ingress" in (items(mapping(each.body.get("spec")).get("policyTypes")) or ["Ingress"])
            ]
            if rules and not any(maps(mapping(rule.body.get("spec")).get("ingress")) for rule in rules):
                message = f"{rules[0].ref} lets nobody in to the pods of {manifest.ref.name}, Prometheus neither"
                yield warn("MON110", rules[0], message, "spec.ingress", "let the namespace of Prometheus in")
            break


def allowlists(graph: Graph) -> Iterator[Finding]:
    """MON111: kube-state-metrics is given a label where a resource is wanted."""
    plurals = {each.plural for group in graph.resources.groups for each in graph.resources.of_group(group)}
    for manifest, pod in graph.pods:
        for n, container in enumerate(maps(pod.spec.get("containers"))):
            if "kube-state-metrics" not in text(container.get("image")):
                continue
            for index, word in enumerate(items(container.get("args"))):
                name, _, value = text(word).partition("=")
                if name not in {"--metric-labels-allowlist", "--metric-annotations-allowlist"}:
                    continue
                path = f"{pod.spec_path}.containers[{n}].args[{index}]"
                for left in re.findall(r"([^,=\[\]]+)=\[", value):
                    if left.strip() not in plurals and left.strip() != "*" and not placeholder(left):
                        message = f"{left} is no resource: the left side says which objects, the brackets which labels"
                        yield say("MON111", manifest, message, path, f"{name}=pods=[{left}]")


def silent_services(graph: Graph) -> Iterator[Finding]:
    """MON112: a label of pods that a monitor copies to series, and that its pods do not have."""
    for monitor in monitors(graph):
        pods = list(pods_of(graph, monitor))
        for label in items(monitor.spec.get("podTargetLabels")):
            name = known(label)
            if (
                name
                and pods
                and name not in _BY_CONTROLLERS
                and all(name not in template_labels(*each) for each in pods)
            ):
                message = f"none of its pods has the label {name}: series get no {label_name(name)}"
                yield note(
                    "MON112",
                    monitor.manifest,
                    message,
                    "spec.podTargetLabels",
                    "add it to the pod template, or leave it out",
                )


_BY_CONTROLLERS = frozenset(
    {
        "rollouts-pod-template-hash",
        "pod-template-hash",
        "controller-revision-hash",
        "pod-name",
        "pod-index",
        "worker-index",
        "group-index",
        "job-name",
    }
)
"""Labels, without their domain, that controllers put on pods."""

RULES = (
    without_services,
    without_pods,
    ports,
    unseen,
    timings,
    limits,
    twice,
    churning_labels,
    paths,
    blocked,
    allowlists,
    silent_services,
)
TREE = ()
