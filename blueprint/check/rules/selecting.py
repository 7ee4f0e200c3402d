"""Selectors of pods that take none: budgets, network policies, and spreading by labels that the pods do not have.

Sources: k8s.io/kubernetes v1.35.4 pkg/controller/disruption/disruption.go, pkg/scheduler/framework/plugins/
podtopologyspread/common.go (pods are counted by the selector, whether or not it takes the pod itself).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from blueprint.check.graph import Graph, selects
from blueprint.check.monitored import pods_selected, template_labels
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, known, mapping, maps, placeholder
from blueprint.finding import Finding
from blueprint.objects import Manifest

_SELECTING = {
    "PodDisruptionBudget.policy": ("selector", "it protects nothing"),
    "NetworkPolicy.networking.k8s.io": ("podSelector", "it allows and denies nothing"),
}
_NEAR = 0.8
_PLAIN = frozenset({"Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Rollout"})
_BY_CONTROLLER = frozenset({"job-name", "controller-uid", "pod-template-hash", "controller-revision-hash"})


def of_nothing(graph: Graph) -> Iterator[Finding]:
    """REF107: a budget or network policy selects no pod of its namespace, and nearly one."""
    for kind, (field, effect) in _SELECTING.items():
        for manifest in graph.kind(kind):
            selector = mapping(mapping(manifest.body.get("spec")).get(field))
            wanted = {str(key): known(value) for key, value in mapping(selector.get("matchLabels")).items()}
            namespace = manifest.ref.namespace
            if not wanted or not all(wanted.values()) or manifest.unknown or not namespace:
                continue
            if next(pods_selected(graph, namespace, selector), None) is not None:
                continue
            labels = graph.derived(_labels).get(namespace, ())
            for key, value in wanted.items():
                meant = _meant(wanted, key, labels)
                if meant:
                    message = f"no pod of {namespace} has {key}={value}: {effect}"
                    path = f"spec.{field}.matchLabels.{key}"
                    yield say("REF107", manifest, message, path, f"did you mean {key}: {meant}?")
                    break


def _labels(graph: Graph) -> Mapping[str, list[Mapping[str, str]]]:
    """The labels of the pod templates of each namespace."""
    found: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for manifest, pod in graph.pods:
        found[manifest.ref.namespace].append(template_labels(manifest, pod))
    return found


def _meant(wanted: Mapping[str, str], key: str, labels: Sequence[Mapping[str, str]]) -> str:
    """The value of a key with which some pod would be selected, if it is nearly the one that is written."""
    fitting = {
        each[key]: None
        for each in labels
        if key in each and all(each.get(other) == value for other, value in wanted.items() if other != key)
    }
    return next(iter(get_close_matches(wanted[key], fitting, 1, _NEAR)), "")


def spread(graph: Graph) -> Iterator[Finding]:
    """NAT120: pods are spread by the number of others, whose labels they do not have themselves."""
    for manifest, pod in graph.pods:
        if "topologySpreadConstraints" not in pod.spec or manifest.unknown:
            continue
        labels = template_labels(manifest, pod)
        for index, row in enumerate(maps(pod.spec["topologySpreadConstraints"])):
            selector = row.get("labelSelector")
            path = f"{pod.spec_path}.topologySpreadConstraints[{index}].labelSelector"
            if problem := _apart(manifest, selector, labels):
                yield warn("NAT120", manifest, problem, path, "select labels of the pods themselves")


def _apart(manifest: Manifest, selector: object, labels: Mapping[str, str]) -> str:
    if not isinstance(selector, dict):
        return "without a labelSelector no pod is counted: the constraint spreads nothing"
    wanted: Body = mapping(selector.get("matchLabels"))
    if not wanted or any(placeholder(value) for value in wanted.values()) or selects(selector, labels):
        return ""
    added = manifest.kind not in _PLAIN and any("/" in str(key) for key in wanted)
    if added or not _BY_CONTROLLER.isdisjoint(wanted):
        return ""  # labels that a controller adds
    shown = ", ".join(f"{key}={value}" for key, value in wanted.items())
    return f"the pods do not have {shown} themselves: they are spread by the number of other pods"


RULES = (of_nothing, spread)
TREE = ()
