"""HorizontalPodAutoscalers.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/autoscaling/validation/validation.go.
"""

from __future__ import annotations

from blueprint.check import forms
from blueprint.check.native import resources
from blueprint.check.native.problems import Problems
from blueprint.check.shapes import Body, mapping, maps, number, text

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_VALUES = {"Utilization": "averageUtilization", "Value": "value", "AverageValue": "averageValue"}


def autoscaler(problems: Problems, body: Body) -> None:
    """NAT504 for a HorizontalPodAutoscaler of v1 or v2."""
    spec = mapping(body.get("spec"))
    least, most = number(spec.get("minReplicas")), number(spec.get("maxReplicas"))
    if least is not None and least < 1:
        problems.add("NAT504", "spec.minReplicas", f"minReplicas {least} is below 1")
    if most is not None and most < 1:
        problems.add("NAT504", "spec.maxReplicas", f"maxReplicas {most} is below 1")
    elif most is not None and (least or 1) > most:
        problems.add("NAT504", "spec.maxReplicas", f"maxReplicas {most} is below minReplicas {least}")
    target = mapping(spec.get("scaleTargetRef"))
    reference(problems, "spec.scaleTargetRef", target)
    if target and not all(text(target.get("apiVersion")).partition("/")[:2]):
        problems.add("NAT504", "spec.scaleTargetRef", "apiVersion must name an API group, as apps/v1 does")
    share = number(spec.get("targetCPUUtilizationPercentage"))
    if share is not None and share < 1:
        problems.add("NAT504", "spec.targetCPUUtilizationPercentage", f"{share} must be more than 0")
    for index, metric in enumerate(maps(spec.get("metrics"))):
        _metric(problems, f"spec.metrics[{index}]", metric)
    behaviour = mapping(spec.get("behavior"))
    for name in ("scaleUp", "scaleDown"):
        if behaviour.get(name) is not None:
            _rules(problems, f"spec.behavior.{name}", mapping(behaviour[name]))


def reference(problems: Problems, at: str, target: Body) -> None:
    """The object that is scaled or measured."""
    for name in ("kind", "name"):
        value = target.get(name)
        if isinstance(value, str) and (not value or forms.path_segment(value)):
            problems.add("NAT504", f"{at}.{name}", f"{name} {value!r} {forms.path_segment(value) or 'is empty'}")
    if text(target.get("apiVersion")).count("/") > 1:
        problems.add("NAT504", f"{at}.apiVersion", f"{target['apiVersion']!r} is no group/version")


def _metric(problems: Problems, at: str, metric: Body) -> None:
    kind = metric.get("type")
    given = [name for name in _SOURCES.values() if metric.get(name) is not None]
    if not isinstance(kind, str):
        return
    if kind not in _SOURCES:
        problems.add("NAT504", f"{at}.type", f"{kind!r} is not one of {', '.join(_SOURCES)}")
        return
    if given != [_SOURCES[kind]]:
        problems.add("NAT504", at, f"a metric of type {kind} needs {_SOURCES[kind]} and nothing else")
        return
    source, here = mapping(metric[_SOURCES[kind]]), f"{at}.{_SOURCES[kind]}"
    target = mapping(source.get("target"))
    if kind in ("Object", "Pods", "External"):
        measured = mapping(source.get("metric"))
        name = measured.get("name")
        if isinstance(name, str) and (not name or forms.path_segment(name)):
            problems.add(
                "NAT504", f"{here}.metric.name", f"metric name {name!r} {forms.path_segment(name) or 'is empty'}"
            )
    if kind == "Object":
        reference(problems, f"{here}.describedObject", mapping(source.get("describedObject")))
    if kind == "Resource" and source.get("name") == "":
        problems.add("NAT504", f"{here}.name", "the name of the resource is empty")
    if kind == "ContainerResource":
        name, container = text(source.get("name")), text(source.get("container"))
        if problem := resources.container_name(name):
            problems.add("NAT504", f"{here}.name", f"resource {name!r} {problem}")
        if problem := forms.label_1123(container):
            problems.add("NAT504", f"{here}.container", f"container {container!r} {problem}")
    if target:
        _target(problems, f"{here}.target", kind, target)


def _target(problems: Problems, at: str, kind: str, target: Body) -> None:
    how = target.get("type")
    if isinstance(how, str) and how not in _VALUES:
        problems.add("NAT504", f"{at}.type", f"{how!r} is not one of {', '.join(_VALUES)}")
    share = number(target.get("averageUtilization"))
    if share is not None and share < 1:
        problems.add("NAT504", f"{at}.averageUtilization", "averageUtilization must be more than 0")
    for name in ("value", "averageValue"):
        if (amount := resources.amount(target.get(name))) is not None and amount <= 0:
            problems.add("NAT504", f"{at}.{name}", f"{name} must be more than 0")
    given = {name for name in _VALUES.values() if target.get(name) is not None}
    if kind == "Pods":
        if "averageValue" not in given:
            problems.add("NAT504", at, "a metric of pods needs averageValue")
    elif kind in ("Resource", "ContainerResource"):
        if not given & {"averageUtilization", "averageValue"}:
            problems.add("NAT504", at, "a metric of resources needs averageUtilization or averageValue")
        elif len(given & {"averageUtilization", "averageValue"}) > 1:
            problems.add("NAT504", at, "averageUtilization and averageValue exclude each other")
    elif not given & {"value", "averageValue"}:
        problems.add("NAT504", at, "the metric needs value or averageValue")
    elif kind == "External" and len(given & {"value", "averageValue"}) > 1:
        problems.add("NAT504", at, "value and averageValue exclude each other")


def _rules(problems: Problems, at: str, rules: Body) -> None:
    window = number(rules.get("stabilizationWindowSeconds"))
    if window is not None and not 0 <= window <= 3600:
        problems.add("NAT504", f"{at}.stabilizationWindowSeconds", f"{window} s is not between 0 and 3,600")
    if rules.get("selectPolicy") is not None:
        problems.choice("NAT504", f"{at}.selectPolicy", rules["selectPolicy"], ("Max", "Min", "Disabled"), True)
    if isinstance(rules.get("policies"), list) and not rules["policies"]:
        problems.add("NAT504", f"{at}.policies", "at least one policy must be given")
    for index, policy in enumerate(maps(rules.get("policies"))):
        here = f"{at}.policies[{index}]"
        if policy.get("type") is not None:
            problems.choice("NAT504", f"{here}.type", policy["type"], ("Pods", "Percent"), True)
        value, period = number(policy.get("value")), number(policy.get("periodSeconds"))
        if value is not None and value < 1:
            problems.add("NAT504", f"{here}.value", f"value {value} must be more than 0")
        if period is not None and not 1 <= period <= 1800:
            problems.add("NAT504", f"{here}.periodSeconds", f"{period} s is not between 1 and 1,800")
    tolerance = resources.amount(rules.get("tolerance"))
    if tolerance is not None and tolerance < 0:
        problems.add("NAT504", f"{at}.tolerance", "tolerance is negative")
