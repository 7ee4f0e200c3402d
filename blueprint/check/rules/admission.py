"""Admission in the API server itself: policies that are never asked, and webhooks that can stop the cluster.

Sources: k8s.io/apiserver v0.35.4 pkg/admission/plugin/policy, pkg/admission/plugin/webhook; kubernetes.io
docs/reference/access-authn-authz/extensible-admission-controllers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from blueprint.check.graph import Graph, labels_of
from blueprint.check.matching import SYSTEM, asks_about, problems, reaches, rules_of
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import Body, items, known, mapping, maps, placeholder, text
from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.objects import Manifest

_GROUP = "admissionregistration.k8s.io"
_PAIRS = (
    (f"ValidatingAdmissionPolicy.{_GROUP}", f"ValidatingAdmissionPolicyBinding.{_GROUP}"),
    (f"MutatingAdmissionPolicy.{_GROUP}", f"MutatingAdmissionPolicyBinding.{_GROUP}"),
)
_HOOKS = (f"ValidatingWebhookConfiguration.{_GROUP}", f"MutatingWebhookConfiguration.{_GROUP}")
_CEL = tuple(
    f"{prefix}{kind}.policies.kyverno.io"
    for prefix in ("", "Namespaced")
    for kind in ("ValidatingPolicy", "MutatingPolicy", "GeneratingPolicy", "DeletingPolicy", "ImageValidatingPolicy")
)
_VITAL = ("system-node-critical", "system-cluster-critical")


def unbound(graph: Graph) -> Iterator[Finding]:
    """POL201: a policy that no binding names is never asked."""
    for policy_kind, binding_kind in _PAIRS:
        bound = {text(mapping(m.body.get("spec")).get("policyName")) for m in graph.kind(binding_kind)}
        if any(placeholder(name) for name in bound) or graph.generated(binding_kind):
            continue
        for policy in graph.kind(policy_kind):
            if policy.ref.name not in bound and not placeholder(policy.ref.name):
                closed = graph.closed(binding_kind)
                message = f"no {binding_kind.partition('.')[0]} names this policy: it is never asked"
                severity = Severity.ERROR if closed else Severity.WARNING
                sureness = None if closed else Confidence.LIKELY
                yield say("POL201", policy, message, "", "add a binding", severity, sureness)


def bound_to_nothing(graph: Graph) -> Iterator[Finding]:
    """POL202: a binding to a policy that the tree does not hold."""
    for policy_kind, binding_kind in _PAIRS:
        names = [manifest.ref.name for manifest in graph.kind(policy_kind)]
        for binding in graph.kind(binding_kind) if graph.closed(policy_kind) else ():
            name = known(mapping(binding.body.get("spec")).get("policyName"))
            if name and name not in names:
                close = get_close_matches(name, names, 1)
                fix = f"did you mean {close[0]}?" if close else "add the policy"
                message = f"there is no {policy_kind.partition('.')[0]} {name}: the binding does nothing"
                yield say("POL202", binding, message, "spec.policyName", fix)


def without_parameters(graph: Graph) -> Iterator[Finding]:
    """POL203: a policy that reads parameters, bound without any: its expressions fail, and with them every request."""
    for policy_kind, binding_kind in _PAIRS:
        policies = {manifest.ref.name: mapping(manifest.body.get("spec")) for manifest in graph.kind(policy_kind)}
        for binding in graph.kind(binding_kind):
            spec = mapping(binding.body.get("spec"))
            policy = policies.get(text(spec.get("policyName")), {})
            if not policy.get("paramKind") or spec.get("paramRef"):
                continue
            written = [
                text(row.get("expression")) for row in maps(policy.get("validations")) + maps(policy.get("variables"))
            ]
            reads = [
                each
                for each in written
                if "params." in each and "params != null" not in each and "has(params" not in each
            ]
            if reads:
                message = (
                    f"policy {spec['policyName']} reads params, and this binding gives it none: its expressions fail"
                )
                yield warn("POL203", binding, message, "spec", "add paramRef, with parameterNotFoundAction")


def matching_nothing(graph: Graph) -> Iterator[Finding]:
    """POL101: a rule about resources of a name that there is not."""
    for manifest, path, rule in _all_rules(graph):
        for problem, meant in problems(graph, rule):
            fix = f"write {meant}" if meant else "write the plural of the kind"
            severity = Severity.ERROR if meant else Severity.WARNING  # else it may be of another release
            yield say("POL101", manifest, f"{problem}: it never matches", path, fix, severity)


def _all_rules(graph: Graph) -> Iterator[tuple[Manifest, str, Body]]:
    kinds = [kind for pair in _PAIRS for kind in pair]
    for manifest in graph.kind(*kinds, *_CEL):
        spec = mapping(manifest.body.get("spec"))
        for field in ("matchConstraints", "matchResources", "targetMatchConstraints"):
            for index, rule in enumerate(rules_of(spec.get(field))):
                yield manifest, f"spec.{field}.resourceRules[{index}]", rule
    for manifest in graph.kind(*_HOOKS):
        for number, hook in enumerate(maps(manifest.body.get("webhooks"))):
            for index, rule in enumerate(maps(hook.get("rules"))):
                yield manifest, f"webhooks[{number}].rules[{index}]", rule


def no_namespace(graph: Graph) -> Iterator[Finding]:
    """POL204: a selector that takes none of the namespaces of the tree."""
    known_labels = [{**labels_of(m.body), "kubernetes.io/metadata.name": m.ref.name} for m in graph.kind("Namespace")]
    if len(known_labels) < 2 or not graph.closed("Namespace"):
        return
    for manifest in graph.kind(*(kind for pair in _PAIRS for kind in pair), *_CEL):
        spec = mapping(manifest.body.get("spec"))
        for field in ("matchConstraints", "matchResources"):
            selector = mapping(spec.get(field)).get("namespaceSelector")
            if selector and not any(reaches(selector, labels) for labels in known_labels):
                if reaches(selector, SYSTEM):
                    continue
                message = "none of the namespaces of this tree is selected: the policy judges nothing here"
                yield note("POL204", manifest, message, f"spec.{field}.namespaceSelector", "compare the labels")


def vital_namespaces(graph: Graph) -> Mapping[str, Mapping[str, str]]:
    """Namespaces without whose pods nodes or the cluster do not work, with their labels."""
    found = {"kube-system": dict(SYSTEM)}
    for manifest, pod in graph.pods:
        namespace = manifest.ref.namespace
        vital = pod.spec.get("priorityClassName") in _VITAL or (
            manifest.kind == "DaemonSet" and pod.spec.get("hostNetwork") is True
        )
        if vital and namespace and not placeholder(namespace):
            labels = graph.labels_of_namespace(namespace)
            found[namespace] = dict(labels or {"kubernetes.io/metadata.name": namespace})
    return found


_SCAFFOLD = "system"
"""The namespace in files that kubebuilder writes: an overlay always patches them before they are applied."""

_STOPPING = (("", "pods"), ("", "nodes"), ("coordination.k8s.io", "leases"), ("", "serviceaccounts"))


def stopping_webhooks(graph: Graph) -> Iterator[Finding]:
    """POL205: a webhook that refuses everything while its backend is down, also what brings the backend back."""
    for manifest in graph.kind(*_HOOKS):
        vital = vital_namespaces(graph)
        for index, hook in enumerate(maps(manifest.body.get("webhooks"))):
            if hook.get("failurePolicy", "Fail") != "Fail" or items(hook.get("matchConditions")):
                continue
            if mapping(hook.get("objectSelector")) or "clientConfig" not in hook or not _writes(hook):
                continue
            asked = [
                name for group, name in _STOPPING if any(asks_about(r, group, name) for r in maps(hook.get("rules")))
            ]
            reached = [name for name, labels in vital.items() if reaches(hook.get("namespaceSelector"), labels)]
            own = text(mapping(mapping(hook.get("clientConfig")).get("service")).get("namespace"))
            if own == _SCAFFOLD:
                continue
            reached = [name for name in reached if name != own] or [name for name in reached if name == own]
            if asked and reached:
                message = (
                    f"while the webhook {text(hook.get('name'))} does not answer, no {asked[0]} can be written in "
                    f"{', '.join(sorted(reached))}: after a restart of the nodes the cluster cannot come back"
                )
                fix = "exclude these namespaces, or select only those that opt in"
                yield say("POL205", manifest, message, f"webhooks[{index}].namespaceSelector", fix)


def _writes(hook: Body) -> bool:
    operations = {text(each) for rule in maps(hook.get("rules")) for each in items(rule.get("operations"))}
    return bool(operations & {"CREATE", "UPDATE", "*"})


def webhooks_without_service(graph: Graph) -> Iterator[Finding]:
    """POL206: a webhook whose Service is not in the namespace where the tree has others."""
    for manifest in graph.kind(*_HOOKS):
        for index, hook in enumerate(maps(manifest.body.get("webhooks"))):
            service = mapping(mapping(hook.get("clientConfig")).get("service"))
            namespace, name = known(service.get("namespace")), known(service.get("name"))
            others = graph.within(namespace, "Service") if namespace else ()
            if name and others and graph.whole and graph.get(Ref("", "Service", namespace, name)) is None:
                answer = (
                    "every request is refused" if hook.get("failurePolicy", "Fail") == "Fail" else "it judges nothing"
                )
                message = f"there is no Service {namespace}/{name}: {answer}"
                close = get_close_matches(name, [m.ref.name for m in others], 1)
                fix = f"did you mean {close[0]}?" if close else "add the Service"
                yield warn("POL206", manifest, message, f"webhooks[{index}].clientConfig.service", fix)


RULES = (
    unbound,
    bound_to_nothing,
    without_parameters,
    matching_nothing,
    no_namespace,
    stopping_webhooks,
    webhooks_without_service,
)
TREE = ()
