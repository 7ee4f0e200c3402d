"""Kueue's configuration: what ends the manager at start-up, and whom its webhooks reach.

Sources: kueue v0.17.0 cmd/kueue/main.go, pkg/config/{config,validation}.go, pkg/features/kube_features.go,
config/components/webhook/kustomization.yaml.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from blueprint.admission.match import LabelSelector
from blueprint.catalog.tables import table
from blueprint.catalog.versions import version
from blueprint.check.durations import seconds
from blueprint.check.graph import Graph
from blueprint.check.kueue import Configured, Kueue, kueue
from blueprint.check.rules.kueue_paths import closest
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, mapping, maps, number, placeholder, text, texts
from blueprint.finding import Confidence, Finding, Severity

_FINAL, _INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
_STRATEGIES = ([_FINAL], [_INITIAL], [_FINAL, _INITIAL])
_NAME = "kubernetes.io/metadata.name"
_MOST_MAPPINGS, _MOST_CLASSES = 16, 8
_POD_LIKE = frozenset({"pod", "deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"})


def _judged(found: Kueue, section: str) -> bool:
    """Whether the table is of the version that is judged."""
    mine, of = version(found.version), version(table("kueue_rules")[section]["of"])
    return mine is not None and of is not None and mine[:2] == of[:2]


def _known(found: Kueue) -> Iterator[tuple[Configured, Body]]:
    for each in found.configurations:
        if each.body is not None:
            yield each, each.body


def unreadable(graph: Graph) -> Iterator[Finding]:
    """KQ901: a configuration that is no YAML, or that has a field which Kueue's strict decoder does not know."""
    found = kueue(graph)
    moved = {row["path"] for row in table("kueue_rules")["moved"] if row["kind"].startswith("Configuration")}
    for each in found.configurations:
        if each.body is None:
            message = f"the value of {each.key} is no YAML: Kueue does not start"
            yield say("KQ901", each.manifest, message, each.at(""), "correct the text")
            continue
        release = text(each.body.get("apiVersion")).rpartition("/")[2]
        fields = table("kueue_rules")["configuration"]
        if release not in fields or not _judged(found, "configuration"):
            continue
        for path, names in _unknown(each.body, {**fields["common"], **fields[release]}):
            if path not in moved:
                message = f"{path} is no field of the configuration ({release}): Kueue {found.version} does not start"
                yield _unlisted(found, "KQ901", each, path, message, closest(path.rpartition(".")[2], names))


def _unlisted(found: Kueue, code: str, each: Configured, path: str, message: str, near: str) -> Finding:
    """What is not in a table of this version: certain where the version is said, a remark where it may be another."""
    if found.said:
        return say(code, each.manifest, message, each.at(path), near)
    severity = Severity.WARNING if near else Severity.NOTE
    return say(code, each.manifest, message, each.at(path), near, severity, Confidence.LIKELY)


def _unknown(body: Body, fields: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, list[str]]]:
    for key, value in body.items():
        where = f"{path}.{key}" if path else str(key)
        if key not in fields:
            yield where, [*fields]
        elif isinstance(fields[key], dict) and isinstance(value, dict):
            yield from _unknown(value, fields[key], where)


def frameworks(graph: Graph) -> Iterator[Finding]:
    """KQ902: a framework that Kueue does not have, twice, or without the gate that it needs."""
    found = kueue(graph)
    more = {row["name"]: row["gate"] for row in table("kueue_rules")["more_frameworks"]}
    names = {*table("kueue")["frameworks"].values(), *more}
    former = table("kueue_rules")["former_frameworks"]
    for each, body in _known(found):
        written = texts(mapping(body.get("integrations")).get("frameworks"))
        for index, name in enumerate(written):
            path = each.at(f"integrations.frameworks[{index}]")
            if placeholder(name):
                continue
            if name not in names:
                message = f"{name} is no framework of Kueue {found.version}: it does not start"
                near = "" if name in former else _framework(name, names)
                yield _unlisted(found, "KQ902", each, f"integrations.frameworks[{index}]", message, near)
            elif name in written[:index]:
                yield say("KQ902", each.manifest, f"{name} is there twice: Kueue does not start", path, "keep one")
            elif name in more and not found.gate(more[name]):
                message = f"{name} needs the feature gate {more[name]}: Kueue does not start without"
                yield say("KQ902", each.manifest, message, path, f"featureGates: {{{more[name]}: true}}")


def _framework(name: str, names: Collection[str]) -> str:
    """A framework whose last part, or whose nearly whole name, is this one."""
    short = next((each for each in sorted(names) if each.rpartition("/")[2] == name.lower().rpartition("/")[2]), "")
    return f"did you mean {short}?" if short else _slip(name, sorted(names))


def _slip(name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name, names, 1, cutoff=0.9)
    return f"did you mean {near[0]}?" if near else ""


def gates(graph: Graph) -> Iterator[Finding]:
    """KQ903: a feature gate that this version does not know, or that is locked."""
    found = kueue(graph)
    known = table("kueue_rules")["gates"]
    if not _judged(found, "gates"):
        return
    for each, body in _known(found):
        for name, value in mapping(body.get("featureGates")).items():
            path = each.at(f"featureGates.{name}")
            if name not in known["names"] and not placeholder(name):
                message = f"Kueue {found.version} has no feature gate {name}: it does not start"
                near = _slip(str(name), known["names"])
                yield _unlisted(found, "KQ903", each, f"featureGates.{name}", message, near)
            elif name in known["locked"] and value is False:
                yield say("KQ903", each.manifest, f"{name} is locked to true: Kueue does not start", path, "remove it")


def values(graph: Graph) -> Iterator[Finding]:
    """KQ904: a value of the configuration that Kueue refuses at start-up."""
    for each, body in _known(kueue(graph)):
        old = text(body.get("apiVersion")).endswith("/v1beta1")
        checks = (_pods_ready(body, old), _fair(body, old), _resources(body), _selector(body), _sampling(body))
        for path, message, fix in (found for check in checks for found in check):
            yield say("KQ904", each.manifest, f"{message}: Kueue does not start", each.at(path), fix)


_Problem = tuple[str, str, str]


def _pods_ready(body: Body, old: bool) -> Iterator[_Problem]:
    block = body.get("waitForPodsReady")
    if not isinstance(block, dict) or (old and block.get("enable") is not True):
        return
    timeout = block.get("timeout")
    if timeout in (None, "", 0) and not old:
        yield "waitForPodsReady.timeout", "waitForPodsReady needs a timeout", "such as 5m"
    for field in ("timeout", "recoveryTimeout"):
        value = block.get(field)
        if isinstance(value, str) and value and not placeholder(value):
            if seconds(value) is None:
                yield f"waitForPodsReady.{field}", f"{field} {value!r} is no duration", "a number with a unit: 5m"
            elif value.startswith("-"):
                yield f"waitForPodsReady.{field}", f"{field} is below zero", "0s or more"
    strategy = mapping(block.get("requeuingStrategy"))
    if text(strategy.get("timestamp")) not in ("", "Creation", "Eviction"):
        path = "waitForPodsReady.requeuingStrategy.timestamp"
        yield path, f"timestamp {strategy['timestamp']} is neither Creation nor Eviction", "Eviction"
    for field in ("backoffLimitCount", "backoffBaseSeconds", "backoffMaxSeconds"):
        if (number(strategy.get(field), 0) or 0) < 0:
            yield f"waitForPodsReady.requeuingStrategy.{field}", f"{field} is below zero", "0 or more"


def _fair(body: Body, old: bool) -> Iterator[_Problem]:
    block = body.get("fairSharing")
    if not isinstance(block, dict) or (old and block.get("enable") is not True):
        return
    written = texts(block.get("preemptionStrategies"))
    path, fix = "fairSharing.preemptionStrategies", f"[{_FINAL}, {_INITIAL}]"
    if not written and not old:
        yield path, "fairSharing needs preemptionStrategies", fix
    elif written and written not in _STRATEGIES and not any(map(placeholder, written)):
        yield path, f"preemptionStrategies may be one of the two, or both in the order {_FINAL}, {_INITIAL}", fix


def _resources(body: Body) -> Iterator[_Problem]:
    seen: set[str] = set()
    for index, row in enumerate(maps(mapping(body.get("resources")).get("transformations"))):
        path, name = f"resources.transformations[{index}]", text(row.get("input"))
        if text(row.get("strategy")) not in ("", "Retain", "Replace"):
            yield f"{path}.strategy", f"strategy {row['strategy']} is neither Retain nor Replace", "Retain"
        if name in seen:
            yield f"{path}.input", f"{name} is transformed twice", "one row for each input"
        seen.add(name)


def _selector(body: Body) -> Iterator[_Problem]:
    selector = body.get("managedJobsNamespaceSelector")
    if not isinstance(selector, dict):
        return
    reached = LabelSelector.of(selector)
    for name in ("kube-system", text(body.get("namespace")) or "kueue-system"):
        if not placeholder(name) and reached.matches({_NAME: name}):
            message = f"managedJobsNamespaceSelector may not match namespace {name}"
            yield "managedJobsNamespaceSelector", message, f"{_NAME} NotIn [kube-system, kueue-system], or a label"


def _sampling(body: Body) -> Iterator[_Problem]:
    block = mapping(body.get("admissionFairSharing"))
    for field in ("usageHalfLifeTime", "usageSamplingInterval"):
        if text(block.get(field)).startswith("-"):
            yield f"admissionFairSharing.{field}", f"{field} is below zero", "such as 5m"


def mappings(graph: Graph) -> Iterator[Finding]:
    """KQ505: device mappings that Kueue refuses: a class twice, a name twice, none or too many classes."""
    for each, body in _known(kueue(graph)):
        rows = maps(mapping(body.get("resources")).get("deviceClassMappings"))
        names: set[str] = set()
        mapped: dict[str, str] = {}
        path = "resources.deviceClassMappings"
        problems: list[tuple[str, str]] = []
        if len(rows) > _MOST_MAPPINGS:
            problems.append((path, f"{len(rows)} mappings are more than {_MOST_MAPPINGS}"))
        for index, row in enumerate(rows):
            name, classes = text(row.get("name")), texts(row.get("deviceClassNames"))
            where = f"{path}[{index}]"
            if name in names:
                problems.append((f"{where}.name", f"{name} is mapped twice"))
            names.add(name)
            if not 1 <= len(classes) <= _MOST_CLASSES:
                problems.append((f"{where}.deviceClassNames", f"{len(classes)} classes are not 1 to {_MOST_CLASSES}"))
            for device in classes:
                if mapped.setdefault(device, name) != name:
                    message = f"DeviceClass {device} is mapped to {mapped[device]} and to {name}"
                    problems.append((f"{where}.deviceClassNames", message))
        for place, message in problems:
            yield say("KQ505", each.manifest, f"{message}: Kueue does not start", each.at(place), "one row for each")


def excluded(graph: Graph) -> Iterator[Finding]:
    """KQ905: a resource with quota that excludeResourcePrefixes hides: nothing is ever counted for it."""
    found = kueue(graph)
    prefixes = found.world.settings.excluded
    covered = {name for queue in found.world.queues.values() for group in queue.groups for name in group.covered}
    for each, _ in _known(found):
        for prefix in prefixes:
            hidden = sorted(name for name in covered if name.startswith(prefix))
            if hidden and not placeholder(prefix):
                message = f"the prefix {prefix!r} hides {', '.join(hidden)}, which queues cover: no quota of it is used"
                path = each.at("resources.excludeResourcePrefixes")
                yield warn("KQ905", each.manifest, message, path, "write a longer prefix, or cover it no more")


def reach(graph: Graph) -> Iterator[Finding]:
    """KQ108: pods of the cluster's own plumbing are within reach of Kueue's webhooks, which fail closed."""
    found = kueue(graph)
    plumbing = _plumbing(graph)
    for each, body in _known(found):
        if not _POD_LIKE & set(texts(mapping(body.get("integrations")).get("frameworks"))):
            continue
        written = body.get("managedJobsNamespaceSelector")
        own = text(body.get("namespace")) or "kueue-system"
        default = {"matchExpressions": [{"key": _NAME, "operator": "NotIn", "values": ["kube-system", own]}]}
        selector = LabelSelector.of(written if isinstance(written, dict) else default)
        caught = sorted(
            name for name, labels in plumbing.items() if name not in ("kube-system", own) and selector.matches(labels)
        )
        if caught:
            message = (
                f"pods of namespace {', '.join(caught)} run the cluster itself, and managedJobsNamespaceSelector takes "
                "them in: while Kueue is down its webhook refuses them"
            )
            path = each.at("managedJobsNamespaceSelector")
            yield say("KQ108", each.manifest, message, path, "select namespaces by a label that you give to tenants")
    yield from _hooks(graph, plumbing)


def _plumbing(graph: Graph) -> dict[str, Mapping[str, str]]:
    """Namespaces with pods that nodes cannot do without, and their labels."""
    found: dict[str, Mapping[str, str]] = {}
    for manifest, pod in graph.pods:
        vital = text(pod.spec.get("priorityClassName")).startswith("system-")
        plugged = manifest.kind == "DaemonSet" and pod.spec.get("hostNetwork") is True
        if (vital or plugged) and manifest.kind in ("DaemonSet", "Deployment") and manifest.ref.namespace:
            name = manifest.ref.namespace
            found[name] = graph.labels_of_namespace(name) or {_NAME: name}
    return found


def _hooks(graph: Graph, plumbing: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    for manifest in graph.kind(*(f"{kind}.admissionregistration.k8s.io" for kind in kinds)):
        for index, hook in enumerate(maps(manifest.body.get("webhooks"))):
            service = mapping(mapping(hook.get("clientConfig")).get("service"))
            if "kueue" not in text(service.get("name")) or hook.get("failurePolicy", "Fail") != "Fail":
                continue
            if not any("pods" in texts(rule.get("resources")) for rule in maps(hook.get("rules"))):
                continue
            selector = LabelSelector.of(mapping(hook.get("namespaceSelector")))
            caught = ["kube-system"] if selector.matches({_NAME: "kube-system"}) else []
            caught += sorted(
                name for name, labels in plumbing.items() if selector.matches(labels) and name not in caught
            )
            if caught:
                message = f"webhook {hook.get('name')} takes pods of {', '.join(caught)} and fails closed"
                path = f"webhooks[{index}].namespaceSelector"
                yield say("KQ108", manifest, message, path, "select the namespaces of tenants only")


RULES = (unreadable, frameworks, gates, values, mappings, excluded, reach)
TREE = ()
