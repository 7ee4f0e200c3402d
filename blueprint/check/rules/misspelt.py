"""Names that are nearly those of something else: references, keys, resources of roles and quotas.

Sources: k8s.io/kubernetes@v1.35.4 pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables),
pkg/quota/v1/evaluator/core/pods.go, plugin/pkg/auth/authorizer/rbac/rbac.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from blueprint.check.grants import rules_of, words
from blueprint.check.graph import Graph
from blueprint.check.pods import containers
from blueprint.check.rules.say import one_of, say, warn
from blueprint.check.shapes import Body, known, mapping, maps, placeholder, text
from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest

_NAMED = frozenset(
    {"ConfigMap", "Secret", "PersistentVolumeClaim", "ServiceAccount", "PriorityClass.scheduling.k8s.io"}
)
_NEAR = 0.85
_SHORTEST = 4


def references(graph: Graph) -> Iterator[Finding]:
    """REF105: what is named is not there, and something of nearly that name is, which nobody names."""
    there: dict[tuple[str, str], list[str]] = {}
    for kind in _NAMED:
        for manifest in graph.kind(kind):
            there.setdefault((kind, manifest.ref.namespace), []).append(manifest.ref.name)
    if not there:
        return
    for target, users in graph.named():
        kind = target.kind_name
        names = there.get((kind, target.namespace))
        if not names or graph.get(target) or len(target.name) < _SHORTEST or placeholder(target.name):
            continue
        near = [name for name in get_close_matches(target.name, names, 2, _NEAR) if _letters(name, target.name)]
        unused = [name for name in near if not graph.named_by(Ref(target.group, target.kind, target.namespace, name))]
        if not unused or graph.generated(kind):
            continue
        for manifest, reference in users:
            if not reference.optional and not manifest.unknown:
                message = f"there is no {target.kind} {target.name}, and nobody names {unused[0]}"
                yield warn("REF105", manifest, message, reference.path, f"did you mean {unused[0]}?")


def runtime_classes(graph: Graph) -> Iterator[Finding]:
    """REF105: a pod names a RuntimeClass that is not there, and one of nearly that name is."""
    there = [each.ref.name for each in graph.kind("RuntimeClass.node.k8s.io")]
    for manifest, pod in graph.pods if there and not graph.generated("RuntimeClass.node.k8s.io") else ():
        name = known(pod.spec.get("runtimeClassName"))
        near = get_close_matches(name, there, 1, _NEAR) if name and name not in there else []
        if near and _letters(near[0], name):
            message = f"there is no RuntimeClass {name}: the server refuses the pods"
            yield warn("REF105", manifest, message, f"{pod.spec_path}.runtimeClassName", f"did you mean {near[0]}?")


def _letters(one: str, two: str) -> bool:
    """Whether names differ in letters: those that differ in a number are two of a row."""
    return [each for each in one if each.isdigit()] == [each for each in two if each.isdigit()]


def keys(graph: Graph) -> Iterator[Finding]:
    """REF106: a variable or file of a ConfigMap or Secret under a key that it does not have."""
    for manifest, pod in graph.pods:
        for path, container in containers(pod.spec):
            for index, row in enumerate(maps(container.get("env"))):
                source = mapping(row.get("valueFrom"))
                for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
                    ref = mapping(source.get(field))
                    has = _keys(graph, manifest, kind, ref) if ref and ref.get("optional") is not True else None
                    key = known(ref.get("key"))
                    if has is not None and key and key not in has:
                        message = f"{kind} {ref['name']} has no key {key}: the container never starts"
                        where = f"{pod.spec_path}.{path}.env[{index}].valueFrom.{field}.key"
                        near = get_close_matches(key, has, 1)
                        fix = f"did you mean {near[0]}?" if near else one_of(sorted(has))
                        yield say("REF106", manifest, message, where, fix)


def _keys(graph: Graph, manifest: Manifest, kind: str, ref: Body) -> set[str] | None:
    """The keys of a ConfigMap or Secret, None where they are not all known."""
    there = graph.nearest(Ref("", kind, manifest.ref.namespace, known(ref.get("name"))), manifest)
    if there is None or there.unknown or there.draft or graph.generated(kind):
        return None
    found = {str(key) for part in ("data", "binaryData", "stringData") for key in mapping(there.body.get(part))}
    return found or None


def roles(graph: Graph) -> Iterator[Finding]:
    """RBA112: a rule of a role about the kind or singular of a resource, which no request names."""
    for role in graph.kind("Role.rbac.authorization.k8s.io", "ClusterRole.rbac.authorization.k8s.io"):
        for index, rule in rules_of(role):
            groups = [group for group in words(rule, "apiGroups") if not placeholder(group)]
            known_ = {each.kind.lower(): each.plural for group in groups for each in graph.resources.of_group(group)}
            for name in words(rule, "resources"):
                plain = name.partition("/")[0]
                plural = known_.get(plain.lower())
                if plural and plain not in known_.values():
                    message = f"{name} is no resource, {plural} is: the rule grants nothing of it"
                    yield warn("RBA112", role, message, f"rules[{index}].resources", f"write {plural}")


def quotas(graph: Graph) -> Iterator[Finding]:
    """TEN111: a quota of devices under a name that is never counted: only requests.<resource> is."""
    for quota in graph.kind("ResourceQuota"):
        for key in mapping(mapping(quota.body.get("spec")).get("hard")):
            name = str(key).removeprefix("limits.")
            device = "/" in name and not name.startswith(("requests.", "count/")) and not placeholder(name)
            if device and ".storageclass.storage.k8s.io" not in name and ".deviceclass.resource.k8s.io" not in name:
                message = f"{key} is never counted: of devices a quota counts requests.{name}"
                yield warn("TEN111", quota, message, "spec.hard", f"requests.{text(name)}")


RULES = (references, runtime_classes, keys, roles, quotas)
TREE = ()
