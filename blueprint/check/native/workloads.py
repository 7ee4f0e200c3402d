"""Deployments, ReplicaSets, StatefulSets and DaemonSets.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

from blueprint.check import forms
from blueprint.check.native.pods import pod_template
from blueprint.check.native.problems import Problems, label_selector, selects
from blueprint.check.native.volumes import claim_spec
from blueprint.check.shapes import Body, mapping, maps, number, text


def _selector(problems: Problems, at: str, spec: Body, template: Body) -> None:
    """NAT201: a workload's selector must be given and match the labels of its own pods."""
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        return
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        problems.add("NAT201", f"{at}.selector", "the selector is empty", "select by the labels of the template")
        return
    label_selector(problems, "NAT201", f"{at}.selector", selector)
    given = mapping(mapping(template.get("metadata")).get("labels"))
    if not selects(selector, given):
        message = "the selector does not match the labels of the template"
        problems.add("NAT201", f"{at}.template.metadata.labels", message, "give the template the selector's labels")


def _always(problems: Problems, at: str, kind: str, template: Body) -> None:
    """NAT202: pods of a workload run for ever."""
    pod = mapping(template.get("spec"))
    policy = pod.get("restartPolicy")
    if policy and policy != "Always":
        problems.add("NAT202", f"{at}.template.spec.restartPolicy", f"pods of a {kind} restart Always, not {policy}")
    if pod.get("activeDeadlineSeconds") is not None:
        problems.add("NAT202", f"{at}.template.spec.activeDeadlineSeconds", f"pods of a {kind} have no deadline")


def int_or_percent(problems: Problems, code: str, path: str, value: object, top: bool = True) -> None:
    """A number that is not negative, or a percentage (of at most 100 where `top`)."""
    whole = number(value)
    if whole is not None and whole < 0:
        problems.add(code, path, f"{whole} is negative")
    if isinstance(value, str):
        if not forms.percent(value):
            problems.add(code, path, f"{value!r} is no percentage", 'write a number without quotes, or "25%"')
        elif top and int(value[:-1]) > 100:
            problems.add(code, path, f"{value} is more than 100%")


def amount_of(value: object, default: int) -> int:
    """The number of a number or percentage; the default where there is none."""
    if isinstance(value, str):
        return int(value[:-1]) if forms.percent(value) else default
    return number(value, default) or 0


def deployment(problems: Problems, body: Body) -> None:
    """NAT201 to NAT204 for a Deployment."""
    spec = mapping(body.get("spec"))
    template = mapping(spec.get("template"))
    problems.at_least("NAT204", "spec", spec, "replicas", "minReadySeconds", "revisionHistoryLimit")
    _selector(problems, "spec", spec, template)
    _always(problems, "spec", "Deployment", template)
    deadline, ready = number(spec.get("progressDeadlineSeconds"), 600) or 0, number(spec.get("minReadySeconds"), 0) or 0
    if deadline <= ready:
        message = f"progressDeadlineSeconds ({deadline}) must be more than minReadySeconds ({ready})"
        problems.add("NAT204", "spec.progressDeadlineSeconds", message)
    strategy = mapping(spec.get("strategy"))
    rolling = strategy.get("rollingUpdate")
    kind = strategy.get("type") or "RollingUpdate"
    problems.choice("NAT203", "spec.strategy.type", kind, ("Recreate", "RollingUpdate"))
    if kind == "Recreate" and rolling is not None:
        problems.add("NAT203", "spec.strategy.rollingUpdate", "Recreate takes no rollingUpdate")
    elif rolling is not None:
        rolling = mapping(rolling)
        int_or_percent(problems, "NAT203", "spec.strategy.rollingUpdate.maxUnavailable", rolling.get("maxUnavailable"))
        int_or_percent(problems, "NAT203", "spec.strategy.rollingUpdate.maxSurge", rolling.get("maxSurge"), top=False)
        if not amount_of(rolling.get("maxUnavailable"), 25) and not amount_of(rolling.get("maxSurge"), 25):
            message = "maxUnavailable and maxSurge are both 0: no pod could ever be replaced"
            problems.add("NAT203", "spec.strategy.rollingUpdate.maxUnavailable", message)
    pod_template(problems, "spec.template", template)


def replica_set(problems: Problems, body: Body) -> None:
    """NAT201, NAT202, NAT204 for a ReplicaSet."""
    spec = mapping(body.get("spec"))
    template = mapping(spec.get("template"))
    problems.at_least("NAT204", "spec", spec, "replicas", "minReadySeconds")
    _selector(problems, "spec", spec, template)
    _always(problems, "spec", "ReplicaSet", template)
    pod_template(problems, "spec.template", template)


def daemon_set(problems: Problems, body: Body) -> None:
    """NAT201 to NAT204 for a DaemonSet."""
    spec = mapping(body.get("spec"))
    template = mapping(spec.get("template"))
    problems.at_least("NAT204", "spec", spec, "minReadySeconds", "revisionHistoryLimit")
    _selector(problems, "spec", spec, template)
    _always(problems, "spec", "DaemonSet", template)
    strategy, here = mapping(spec.get("updateStrategy")), "spec.updateStrategy"
    kind = strategy.get("type") or "RollingUpdate"
    problems.choice("NAT203", f"{here}.type", kind, ("OnDelete", "RollingUpdate"))
    if kind == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        rolling = mapping(strategy["rollingUpdate"])
        for name in ("maxUnavailable", "maxSurge"):
            int_or_percent(problems, "NAT203", f"{here}.rollingUpdate.{name}", rolling.get(name))
        gone, more = amount_of(rolling.get("maxUnavailable"), 1), amount_of(rolling.get("maxSurge"), 0)
        if gone and more:
            problems.add("NAT203", f"{here}.rollingUpdate.maxSurge", "maxSurge needs maxUnavailable: 0")
        elif not gone and not more:
            problems.add("NAT203", f"{here}.rollingUpdate.maxUnavailable", "maxUnavailable and maxSurge are both 0")
    pod_template(problems, "spec.template", template)


def stateful_set(problems: Problems, body: Body) -> None:
    """NAT201 to NAT204, NAT208 for a StatefulSet."""
    spec = mapping(body.get("spec"))
    template = mapping(spec.get("template"))
    problems.at_least("NAT204", "spec", spec, "replicas", "minReadySeconds")
    problems.at_least("NAT204", "spec.ordinals", mapping(spec.get("ordinals")), "start")
    _selector(problems, "spec", spec, template)
    _always(problems, "spec", "StatefulSet", template)
    if spec.get("podManagementPolicy"):
        problems.choice("NAT208", "spec.podManagementPolicy", spec["podManagementPolicy"], ("OrderedReady", "Parallel"))
    service = text(spec.get("serviceName"))
    if service and (problem := forms.label_1123(service)):
        problems.add("NAT208", "spec.serviceName", f"serviceName {service!r} {problem}")
    keep = mapping(spec.get("persistentVolumeClaimRetentionPolicy"))
    for name in ("whenDeleted", "whenScaled"):
        if keep.get(name):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            problems.choice("NAT208", path, keep[name], ("Retain", "Delete"))
    _stateful_update(problems, mapping(spec.get("updateStrategy")))
    claims = maps(spec.get("volumeClaimTemplates"))
    for index, claim in enumerate(claims):
        claim_spec(problems, "NAT208", f"spec.volumeClaimTemplates[{index}].spec", mapping(claim.get("spec")))
    names = tuple(text(mapping(claim.get("metadata")).get("name")) for claim in claims)
    pod = mapping(template.get("spec"))
    if pod.keys() & {"hostname", "subdomain"}:  # the controller overwrites both
        template = {
            **template,
            "spec": {key: value for key, value in pod.items() if key not in ("hostname", "subdomain")},
        }
    pod_template(problems, "spec.template", template, extra=names)


def _stateful_update(problems: Problems, strategy: Body) -> None:
    here, rolling = "spec.updateStrategy", strategy.get("rollingUpdate")
    kind = strategy.get("type") or "RollingUpdate"
    problems.choice("NAT203", f"{here}.type", kind, ("OnDelete", "RollingUpdate"))
    if rolling is None:
        return
    if kind == "OnDelete":
        problems.add("NAT203", f"{here}.rollingUpdate", "OnDelete takes no rollingUpdate")
        return
    rolling = mapping(rolling)
    problems.at_least("NAT203", f"{here}.rollingUpdate", rolling, "partition")
