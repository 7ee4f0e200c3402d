"""Roles, bindings, disruption budgets, autoscalers, priority classes and other classes.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/{rbac,policy,autoscaling,scheduling,storage,node}/validation/validation.go.
"""

from __future__ import annotations

from blueprint.check import forms
from blueprint.check.native import resources
from blueprint.check.native.placement import tolerations
from blueprint.check.native.problems import Problems, label_selector, labels
from blueprint.check.native.workloads import int_or_percent
from blueprint.check.shapes import Body, items, mapping, maps, number, text

_RBAC = "rbac.authorization.k8s.io"
_TOP_PRIORITY = 1_000_000_000
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def role(problems: Problems, body: Body) -> None:
    """NAT501 for a Role."""
    _rules(problems, body, namespaced=True)


def cluster_role(problems: Problems, body: Body) -> None:
    """NAT501 for a ClusterRole."""
    _rules(problems, body, namespaced=False)
    if body.get("aggregationRule") is not None:
        selectors = maps(mapping(body["aggregationRule"]).get("clusterRoleSelectors"))
        if not selectors:
            problems.add("NAT501", "aggregationRule", "at least one of clusterRoleSelectors must be given")
        for index, selector in enumerate(selectors):
            label_selector(problems, "NAT501", f"aggregationRule.clusterRoleSelectors[{index}]", selector)


def _rules(problems: Problems, body: Body, namespaced: bool) -> None:
    for index, rule in enumerate(maps(body.get("rules"))):
        here = f"rules[{index}]"
        if isinstance(rule.get("verbs"), list) and not rule["verbs"]:
            problems.add("NAT501", f"{here}.verbs", "a rule needs at least one verb")
        if items(rule.get("nonResourceURLs")):
            if namespaced:
                problems.add("NAT501", f"{here}.nonResourceURLs", "a Role cannot hold URLs that are no resources")
            if any(items(rule.get(name)) for name in ("apiGroups", "resources", "resourceNames")):
                problems.add("NAT501", here, "a rule is about resources or about URLs, not both")
            continue
        for name in ("apiGroups", "resources"):
            if not items(rule.get(name)) and isinstance(rule.get(name, []), list):
                problems.add("NAT501", f"{here}.{name}" if name in rule else here, f"{name} must be given")


def role_binding(problems: Problems, body: Body) -> None:
    """NAT502 for a RoleBinding."""
    _binding(problems, body, ("Role", "ClusterRole"))


def cluster_role_binding(problems: Problems, body: Body) -> None:
    """NAT502 for a ClusterRoleBinding."""
    _binding(problems, body, ("ClusterRole",))


def _binding(problems: Problems, body: Body, kinds: tuple[str, ...]) -> None:
    reference = mapping(body.get("roleRef"))
    group, kind, name = reference.get("apiGroup"), reference.get("kind"), reference.get("name")
    if isinstance(group, str) and group not in (_RBAC, ""):
        problems.add("NAT502", "roleRef.apiGroup", f"{group!r} is not {_RBAC}")
    if kind is not None:
        problems.choice("NAT502", "roleRef.kind", kind, kinds, True)
    if isinstance(name, str) and (not name or forms.path_segment(name)):
        problems.add("NAT502", "roleRef.name", f"role name {name!r} {forms.path_segment(name) or 'is empty'}")
    for index, subject in enumerate(maps(body.get("subjects"))):
        _subject(problems, f"subjects[{index}]", subject, namespaced=len(kinds) > 1)


def _subject(problems: Problems, at: str, subject: Body, namespaced: bool) -> None:
    kind, name, group = subject.get("kind"), subject.get("name"), text(subject.get("apiGroup"))
    if kind is not None:
        problems.choice("NAT502", f"{at}.kind", kind, ("ServiceAccount", "User", "Group"), True)
    if name == "":
        problems.add("NAT502", f"{at}.name", "the name is empty")
    if kind == "ServiceAccount":
        if isinstance(name, str) and name and (problem := forms.subdomain(name)):
            problems.add("NAT502", f"{at}.name", f"service account {name!r} {problem}")
        if group:
            problems.add("NAT502", f"{at}.apiGroup", "a ServiceAccount has no apiGroup")
        if not namespaced and not subject.get("namespace"):
            problems.add("NAT502", at, "a ServiceAccount in a ClusterRoleBinding needs its namespace")
    elif kind in ("User", "Group") and group and group != _RBAC:
        problems.add("NAT502", f"{at}.apiGroup", f"{group!r} is not {_RBAC}")


def disruption_budget(problems: Problems, body: Body) -> None:
    """NAT503 for a PodDisruptionBudget."""
    spec = mapping(body.get("spec"))
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        problems.add("NAT503", "spec", "minAvailable and maxUnavailable exclude each other", "keep one of the two")
    for name in ("minAvailable", "maxUnavailable"):
        int_or_percent(problems, "NAT503", f"spec.{name}", spec.get(name))
    label_selector(problems, "NAT503", "spec.selector", spec.get("selector"))
    if spec.get("unhealthyPodEvictionPolicy") is not None:
        known = ("IfHealthyBudget", "AlwaysAllow")
        problems.choice("NAT503", "spec.unhealthyPodEvictionPolicy", spec["unhealthyPodEvictionPolicy"], known, True)


def priority_class(problems: Problems, body: Body) -> None:
    """NAT505 for a PriorityClass."""
    name, value = text(mapping(body.get("metadata")).get("name")), number(body.get("value"), 0) or 0
    if name.startswith("system-"):
        if _SYSTEM.get(name) != value or body.get("globalDefault") is True:
            problems.add("NAT505", "metadata.name", "names that start with system- are the server's own")
    elif value > _TOP_PRIORITY:
        problems.add("NAT505", "value", f"value {value:,} is above {_TOP_PRIORITY:,}")
    if body.get("preemptionPolicy") is not None:
        allowed = ("PreemptLowerPriority", "Never")
        problems.choice("NAT505", "preemptionPolicy", body["preemptionPolicy"], allowed, True)


def storage_class(problems: Problems, body: Body) -> None:
    """NAT506 for a StorageClass."""
    provisioner = body.get("provisioner")
    if isinstance(provisioner, str) and (not provisioner or forms.qualified_name(provisioner.lower())):
        problems.add("NAT506", "provisioner", f"provisioner {provisioner!r} is no qualified name")
    if body.get("reclaimPolicy"):
        problems.choice("NAT506", "reclaimPolicy", body["reclaimPolicy"], ("Delete", "Retain"))
    if body.get("volumeBindingMode") is not None:
        allowed = ("Immediate", "WaitForFirstConsumer")
        problems.choice("NAT506", "volumeBindingMode", body["volumeBindingMode"], allowed, True)
    if "" in mapping(body.get("parameters")):
        problems.add("NAT506", "parameters", "a parameter's name is empty")


def runtime_class(problems: Problems, body: Body) -> None:
    """NAT506 for a RuntimeClass."""
    handler = body.get("handler")
    if isinstance(handler, str) and (problem := forms.label_1123(handler)):
        problems.add("NAT506", "handler", f"handler {handler!r} {problem}")
    fixed = mapping(mapping(body.get("overhead")).get("podFixed"))
    resources.requirements(problems, "overhead.podFixed", {"limits": fixed})
    scheduling = mapping(body.get("scheduling"))
    labels(problems, "NAT506", "scheduling.nodeSelector", scheduling.get("nodeSelector"))
    tolerations(problems, "NAT506", "scheduling.tolerations", scheduling.get("tolerations"))
    given = items(scheduling.get("tolerations"))
    if any(given.index(toleration) != index for index, toleration in enumerate(given)):
        problems.add("NAT506", "scheduling.tolerations", "a toleration is given twice")
