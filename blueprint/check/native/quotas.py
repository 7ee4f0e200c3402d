"""ResourceQuotas and LimitRanges.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/core/validation/validation.go (ValidateResourceQuotaSpec,
ValidateLimitRange).
"""

from __future__ import annotations

from fractions import Fraction

from blueprint.check import forms
from blueprint.check.native import resources
from blueprint.check.native.problems import Problems
from blueprint.check.shapes import Body, items, mapping, maps

_PODS = frozenset({"pods"})
_COMPUTE = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
    | {"ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"}
)
_CLAIMS = frozenset({"persistentvolumeclaims", "requests.storage"})
_OF_SCOPE = {
    "Terminating": _PODS | _COMPUTE,
    "NotTerminating": _PODS | _COMPUTE,
    "NotBestEffort": _PODS | _COMPUTE,
    "PriorityClass": _PODS | _COMPUTE,
    "CrossNamespacePodAffinity": _PODS | _COMPUTE,
    "BestEffort": _PODS,
    "VolumeAttributesClass": _CLAIMS,
}
_WITH_VALUES = ("PriorityClass", "VolumeAttributesClass")
_EXCLUDE = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_SETS = ("max", "min", "default", "defaultRequest")


def resource_quota(problems: Problems, body: Body) -> None:
    """NAT404 for a ResourceQuota."""
    spec = mapping(body.get("spec"))
    hard = mapping(spec.get("hard"))
    for name, value in hard.items():
        if problem := resources.quota_name(name):
            problems.add("NAT404", "spec.hard", f"{name!r} {problem}")
        resources.quantity(problems, "NAT404", "spec.hard", name, value)
    scopes = [str(scope) for scope in items(spec.get("scopes"))]
    for scope in scopes:
        _scope(problems, "spec.scopes", scope, hard)
    terms = maps(mapping(spec.get("scopeSelector")).get("matchExpressions"))
    for index, term in enumerate(terms):
        here = f"spec.scopeSelector.matchExpressions[{index}]"
        scope, operator = str(term.get("scopeName")), term.get("operator")
        values = items(term.get("values"))
        _scope(problems, here, scope, hard)
        if operator in ("In", "NotIn"):
            if scope not in _WITH_VALUES:
                problems.add("NAT404", f"{here}.operator", f"scope {scope} takes operator Exists only")
            if not values:
                problems.add("NAT404", f"{here}.values", f"{operator} needs at least one value")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                problems.add("NAT404", f"{here}.values", f"{operator} takes no values")
            if operator == "DoesNotExist" and scope not in _WITH_VALUES:
                problems.add("NAT404", f"{here}.operator", f"scope {scope} takes operator Exists only")
        elif isinstance(operator, str):
            problems.add("NAT404", f"{here}.operator", f"{operator!r} is not one of In, NotIn, Exists, DoesNotExist")
    for given in (scopes, [str(term.get("scopeName")) for term in terms]):
        for pair in _EXCLUDE:
            if set(pair) <= set(given):
                problems.add("NAT404", "spec", f"scopes {' and '.join(pair)} exclude each other")


def _scope(problems: Problems, at: str, scope: str, hard: Body) -> None:
    if scope not in _OF_SCOPE:
        problems.add("NAT404", at, f"{scope!r} is not one of {', '.join(sorted(_OF_SCOPE))}")
        return
    for name in hard:
        standard = "/" not in name and not resources.quota_name(name)
        if standard and name not in _OF_SCOPE[scope]:
            problems.add("NAT404", at, f"scope {scope} does not go with {name}")


def limit_range(problems: Problems, body: Body) -> None:
    """NAT405 for a LimitRange."""
    seen: set[str] = set()
    for index, limit in enumerate(maps(mapping(body.get("spec")).get("limits"))):
        here, kind = f"spec.limits[{index}]", limit.get("type")
        if not isinstance(kind, str):
            continue
        if kind not in ("Pod", "Container", "PersistentVolumeClaim") and (
            not kind or forms.qualified_name(kind) or "/" not in kind
        ):
            problems.add("NAT405", f"{here}.type", f"{kind!r} is not one of Container, PersistentVolumeClaim, Pod")
        if kind in seen:
            problems.add("NAT405", f"{here}.type", f"limits for {kind} are given twice")
        seen.add(kind)
        if kind == "Pod":
            for name in ("default", "defaultRequest"):
                if limit.get(name):
                    problems.add("NAT405", f"{here}.{name}", f"limits for pods have no {name}")
        if kind == "PersistentVolumeClaim" and not any(
            "storage" in mapping(limit.get(name)) for name in ("min", "max")
        ):
            problems.add("NAT405", here, "limits for claims need min.storage or max.storage")
        _names(problems, here, kind, limit)
        _relations(problems, here, limit)


def _names(problems: Problems, at: str, kind: str, limit: Body) -> None:
    for part in (*_SETS, "maxLimitRequestRatio"):
        for name in mapping(limit.get(part)):
            if kind in ("Pod", "Container"):
                problem = resources.container_name(name)
            else:
                problem = "" if "/" in name or name in ("cpu", "memory", "storage") else resources.quota_name(name)
            if problem:
                problems.add("NAT405", f"{at}.{part}", f"{name!r} {problem}")


def _relations(problems: Problems, at: str, limit: Body) -> None:
    """min ≤ defaultRequest ≤ default ≤ max, resource by resource."""
    amounts: dict[str, dict[str, Fraction]] = {}
    for part in (*_SETS, "maxLimitRequestRatio"):
        for name, value in mapping(limit.get(part)).items():
            if (given := resources.amount(value)) is not None:
                amounts.setdefault(name, {})[part] = given
    order = ("min", "defaultRequest", "default", "max")
    for name, here in amounts.items():
        for low, lower in enumerate(order):
            for upper in order[low + 1 :]:
                if lower in here and upper in here and here[lower] > here[upper]:
                    problems.add("NAT405", f"{at}.{lower}", f"{name}: {lower} is above {upper}")
        ratio = here.get("maxLimitRequestRatio")
        if ratio is not None and ratio < 1:
            problems.add("NAT405", f"{at}.maxLimitRequestRatio", f"{name}: the ratio is below 1")
        if ratio is not None and here.get("min") and "max" in here and ratio > here["max"] / here["min"]:
            problems.add("NAT405", f"{at}.maxLimitRequestRatio", f"{name}: the ratio is above max/min")
        both = "default" in here and "defaultRequest" in here
        if both and not resources.overcommits(name) and here["default"] != here["defaultRequest"]:
            problems.add("NAT405", f"{at}.defaultRequest", f"{name}: default and defaultRequest must be equal")
