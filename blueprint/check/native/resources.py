"""Requests and limits: names, amounts and how the two relate.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/core/validation/validation.go (validateResourceRequirements,
validateResourceName), pkg/apis/core/helper/helpers.go.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from blueprint.check import forms
from blueprint.check.native.problems import Problems
from blueprint.check.shapes import Body, mapping, maps
from blueprint.quantity import QuantityError, parse_quantity

_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE = "hugepages-"
_INTEGER = frozenset(
    {"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"}
    | {"services.nodeports", "services.loadbalancers"}
)
_STANDARD = (
    _CONTAINER
    | _INTEGER
    | {
        "storage",
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _CONTAINER),
        "requests.storage",
    }
)


def amount(value: object) -> Fraction | None:
    """The amount of a quantity; None where it is none (the schema check says so)."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    try:
        return parse_quantity(value)
    except QuantityError:
        return None


@lru_cache(maxsize=1 << 10)
def native(name: str) -> bool:
    """Whether Kubernetes itself accounts for a resource."""
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=1 << 10)
def extended(name: str) -> bool:
    """Whether a resource is one of devices, such as nvidia.com/gpu."""
    return not native(name) and not name.startswith("requests.") and not forms.qualified_name(f"requests.{name}")


@lru_cache(maxsize=1 << 10)
def overcommits(name: str) -> bool:
    """Whether requests may be below limits."""
    return native(name) and not name.startswith(_HUGE)


@lru_cache(maxsize=1 << 10)
def whole(name: str) -> bool:
    """Whether amounts of a resource must be whole numbers."""
    return name in _INTEGER or extended(name)


@lru_cache(maxsize=1 << 10)
def container_name(name: str) -> str:
    """What is wrong with the name of a container's resource."""
    if problem := forms.qualified_name(name):
        return problem
    if "/" not in name:
        known = name in _CONTAINER or name.startswith(_HUGE)
        return (
            "" if known else "is no resource of containers: cpu, memory, ephemeral-storage, hugepages-* or domain/name"
        )
    return "" if native(name) or extended(name) else "is no name of an extended resource"


@lru_cache(maxsize=1 << 10)
def pod_name(name: str) -> str:
    """What is wrong with the name of a resource given for the pod as a whole."""
    known = name in ("cpu", "memory") or name.startswith(_HUGE)
    return "" if known else "is not supported for the pod as a whole: only cpu, memory and hugepages-*"


@lru_cache(maxsize=1 << 10)
def quota_name(name: str) -> str:
    """What is wrong with the name of a resource in a quota."""
    if problem := forms.qualified_name(name):
        return problem
    standard = name in _STANDARD - {"storage"} or name.startswith((_HUGE, f"requests.{_HUGE}"))
    return "" if "/" in name or standard else "is no resource that a quota counts"


@lru_cache(maxsize=1 << 14)
def _judged(name: str, value: str | int | float) -> tuple[Fraction | None, str]:
    """The amount of a resource and what is wrong with it: it must not be negative, nor a part of a device."""
    given = amount(value)
    if given is None:
        return None, ""
    if given < 0:
        return given, f"{name} {value} is negative"
    if given.denominator != 1 and whole(name):
        return given, f"{name} {value} is not a whole number"
    if name.startswith(_HUGE) and (page := amount(name.removeprefix(_HUGE))) and given % page:
        return given, f"{name} {value} is not a multiple of the page size"
    return given, ""


def quantity(problems: Problems, code: str, at: str, name: str, value: object) -> Fraction | None:
    """The amount of a resource; `at` is the path of the map that holds it."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    given, problem = _judged(name, value)
    if problem:
        problems.add(code, f"{at}.{name}" if "/" not in name else f'{at}["{name}"]', problem)
    return given


def requirements(
    problems: Problems, at: str, resources: Body, name_problem: Callable[[str], str] = container_name
) -> None:
    """NAT108, NAT109: requests and limits of a container (or, with another naming, of a pod)."""
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    bounds: dict[str, Fraction | None] = {}
    for name, value in limits.items():
        if problem := name_problem(name):
            problems.add("NAT108", f"{at}.limits", f"resource {name!r} {problem}")
        bounds[name] = quantity(problems, "NAT108", f"{at}.limits", name, value)
    for name, value in requests.items():
        if problem := name_problem(name):
            problems.add("NAT108", f"{at}.requests", f"resource {name!r} {problem}")
        asked = quantity(problems, "NAT108", f"{at}.requests", name, value)
        if asked is not None and value != limits.get(name):
            _compare(problems, at, name, value, asked, limits, bounds)
    names = limits.keys() | requests.keys()
    if names and not names & {"cpu", "memory"} and any(name.startswith(_HUGE) for name in names):
        problems.add("NAT108", at, "huge pages need cpu or memory beside them", "add a memory request")


def _compare(
    problems: Problems,
    at: str,
    name: str,
    value: object,
    asked: Fraction,
    limits: Body,
    bounds: dict[str, Fraction | None],
) -> None:
    if name not in limits:
        if not overcommits(name):
            problems.add(
                "NAT109", f"{at}.limits", f"{name} is requested without a limit", f"limit {name} to {value}, too"
            )
        return
    bound = bounds[name]
    if bound is None or asked == bound:
        return
    if not overcommits(name):
        message = f"{name}: the request {value} and the limit {limits[name]} must be equal"
        problems.add("NAT109", f"{at}.requests", message, "give both the same amount")
    elif asked > bound:
        problems.add("NAT109", f"{at}.requests", f"{name}: the request {value} is above the limit {limits[name]}")


def claims(problems: Problems, at: str, resources: Body, known: set[str]) -> None:
    """NAT110: device claims of a container must be claims of its pod, each named once."""
    seen: set[str] = set()
    for index, claim in enumerate(maps(resources.get("claims"))):
        name, request = claim.get("name"), claim.get("request")
        path = f"{at}.claims[{index}]"
        if not isinstance(name, str):
            continue
        if not name:
            problems.add("NAT110", path, "the name of a claim is empty")
            continue
        key = f"{name}/{request}" if request else name
        if isinstance(request, str) and request and (problem := forms.label_1123(request)):
            problems.add("NAT110", f"{path}.request", f"request {request!r} {problem}")
        if name in seen or key in seen or (not request and any(other.startswith(f"{name}/") for other in seen)):
            problems.add("NAT110", path, f"claim {key} is given twice")
        seen.add(key)
        if name not in known:
            problems.add("NAT110", path, f"the pod has no resource claim {name}", "add it to the pod's resourceClaims")
