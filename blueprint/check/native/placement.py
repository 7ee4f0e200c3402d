"""Where pods go: node selectors, tolerations, affinity and spreading.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/core/validation/validation.go (ValidateTolerations, validateAffinity,
validateTopologySpreadConstraints).
"""

from __future__ import annotations

from blueprint.check import forms
from blueprint.check.native.problems import Problems, expression, label_selector, labels
from blueprint.check.shapes import Body, items, mapping, maps, number, text

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_INCLUSION = ("Honor", "Ignore")


def placement(problems: Problems, at: str, spec: Body) -> None:
    """NAT111, NAT112, NAT113 for a pod; `at` is the path of its spec."""
    if "nodeSelector" in spec:
        labels(problems, "NAT112", f"{at}.nodeSelector", spec["nodeSelector"])
    if "tolerations" in spec:
        tolerations(problems, "NAT111", f"{at}.tolerations", spec["tolerations"])
    if "affinity" in spec:
        _affinity(problems, f"{at}.affinity", mapping(spec["affinity"]))
    if "topologySpreadConstraints" in spec:
        _spread(problems, f"{at}.topologySpreadConstraints", spec["topologySpreadConstraints"])


def tolerations(problems: Problems, code: str, at: str, value: object) -> None:
    """Tolerations of a pod or a device claim."""
    for index, toleration in enumerate(maps(value)):
        here = f"{at}[{index}]"
        key, operator = text(toleration.get("key")), toleration.get("operator") or "Equal"
        if key and (problem := forms.qualified_name(key)):
            problems.add(code, f"{here}.key", f"key {key!r}: {problem}")
        if not key and operator != "Exists":
            problems.add(code, here, "a toleration without key tolerates everything and needs operator: Exists")
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            problems.add(code, here, "tolerationSeconds needs effect: NoExecute")
        given = text(toleration.get("value"))
        if operator == "Equal":
            if problem := forms.label_value(given):
                problems.add(code, f"{here}.value", f"value {given!r} {problem}")
        elif operator == "Exists":
            if given:
                problems.add(code, f"{here}.value", "operator Exists takes no value")
        elif isinstance(operator, str):
            problems.add(code, f"{here}.operator", f"{operator!r} is not one of Equal, Exists")
        if toleration.get("effect"):
            problems.choice(code, f"{here}.effect", toleration["effect"], _EFFECTS)


def node_term(problems: Problems, code: str, at: str, term: Body, in_values: bool = True) -> None:
    """One term of a node selector."""
    for index, each in enumerate(maps(term.get("matchExpressions"))):
        expression(problems, code, f"{at}.matchExpressions[{index}]", each, in_values, numeric=True)
    for index, each in enumerate(maps(term.get("matchFields"))):
        here = f"{at}.matchFields[{index}]"
        if each.get("key") not in ("metadata.name", None):
            problems.add(code, f"{here}.key", f"{each['key']!r} is no field to select nodes by: only metadata.name")
        if each.get("operator") not in ("In", "NotIn"):
            problems.add(code, f"{here}.operator", f"{each.get('operator')!r} is not one of In, NotIn")
        elif len(items(each.get("values"))) != 1:
            problems.add(code, f"{here}.values", "exactly one value must be given")
        for value in items(each.get("values")):
            if isinstance(value, str) and (problem := forms.subdomain(value)):
                problems.add(code, f"{here}.values", f"node {value!r} {problem}")


def node_selector(problems: Problems, code: str, at: str, selector: Body) -> None:
    """A node selector that must hold."""
    terms = selector.get("nodeSelectorTerms")
    if terms is not None and not items(terms):
        problems.add(code, f"{at}.nodeSelectorTerms", "at least one term must be given")
    for index, term in enumerate(maps(terms)):
        node_term(problems, code, f"{at}.nodeSelectorTerms[{index}]", term)


def _weight(problems: Problems, at: str, term: Body) -> None:
    weight = number(term.get("weight"))
    if weight is not None and not 1 <= weight <= 100:
        problems.add("NAT112", f"{at}.weight", f"weight {weight} is not between 1 and 100")


def _affinity(problems: Problems, at: str, affinity: Body) -> None:
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    nodes = mapping(affinity.get("nodeAffinity"))
    if nodes.get(required) is not None:
        node_selector(problems, "NAT112", f"{at}.nodeAffinity.{required}", mapping(nodes[required]))
    for index, term in enumerate(maps(nodes.get(preferred))):
        here = f"{at}.nodeAffinity.{preferred}[{index}]"
        _weight(problems, here, term)
        node_term(problems, "NAT112", f"{here}.preference", mapping(term.get("preference")), in_values=False)
    for name in ("podAffinity", "podAntiAffinity"):
        pods = mapping(affinity.get(name))
        for index, term in enumerate(maps(pods.get(required))):
            _pod_term(problems, f"{at}.{name}.{required}[{index}]", term)
        for index, term in enumerate(maps(pods.get(preferred))):
            here = f"{at}.{name}.{preferred}[{index}]"
            _weight(problems, here, term)
            _pod_term(problems, f"{here}.podAffinityTerm", mapping(term.get("podAffinityTerm")))


def _pod_term(problems: Problems, at: str, term: Body) -> None:
    label_selector(problems, "NAT112", f"{at}.labelSelector", term.get("labelSelector"))
    label_selector(problems, "NAT112", f"{at}.namespaceSelector", term.get("namespaceSelector"))
    for index, name in enumerate(items(term.get("namespaces"))):
        if isinstance(name, str) and (problem := forms.label_1123(name)):
            problems.add("NAT112", f"{at}.namespaces[{index}]", f"namespace {name!r} {problem}")
    topology = term.get("topologyKey")
    if isinstance(topology, str) and (problem := forms.qualified_name(topology)):
        problems.add("NAT112", f"{at}.topologyKey", f"topologyKey {topology!r}: {problem}")
    _label_keys(problems, "NAT112", at, term)


def _label_keys(problems: Problems, code: str, at: str, term: Body) -> None:
    """Keys whose values are those of the pod itself."""
    match, mismatch = items(term.get("matchLabelKeys")), items(term.get("mismatchLabelKeys"))
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and term.get("labelSelector") is None:
            problems.add(code, f"{at}.{name}", f"{name} needs a labelSelector")
        for index, key in enumerate(keys):
            if isinstance(key, str) and (problem := forms.qualified_name(key)):
                problems.add(code, f"{at}.{name}[{index}]", f"key {key!r}: {problem}")
    for key in match:
        if key in mismatch:
            problems.add(code, f"{at}.matchLabelKeys", f"{key} is in matchLabelKeys and mismatchLabelKeys")


def _spread(problems: Problems, at: str, value: object) -> None:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(maps(value)):
        here = f"{at}[{index}]"
        problems.at_least("NAT113", here, constraint, "maxSkew", "minDomains", least=1)
        topology, policy = constraint.get("topologyKey"), constraint.get("whenUnsatisfiable")
        if topology == "":
            problems.add("NAT113", f"{here}.topologyKey", "topologyKey is empty")
        if policy is not None:
            problems.choice("NAT113", f"{here}.whenUnsatisfiable", policy, ("DoNotSchedule", "ScheduleAnyway"), True)
        if (pair := (text(topology), text(policy))) in seen:
            problems.add("NAT113", here, f"{topology} with {policy} is given twice")
        seen.add(pair)
        if constraint.get("minDomains") is not None and policy != "DoNotSchedule":
            problems.add("NAT113", f"{here}.minDomains", "minDomains needs whenUnsatisfiable: DoNotSchedule")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None:
                problems.choice("NAT113", f"{here}.{name}", constraint[name], _INCLUSION, True)
        label_selector(problems, "NAT113", f"{here}.labelSelector", constraint.get("labelSelector"))
        _label_keys(problems, "NAT113", here, constraint)
