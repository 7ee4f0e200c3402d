"""Pods and their templates.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/core/validation/validation.go (ValidatePodSpec, ValidatePodTemplateSpec).
"""

from __future__ import annotations

import ipaddress
from fractions import Fraction

from blueprint.check import forms
from blueprint.check.native import resources
from blueprint.check.native.containers import container, probes_and_hooks
from blueprint.check.native.placement import placement
from blueprint.check.native.problems import MAX_INT32, Problems, labels
from blueprint.check.native.safety import pod_security
from blueprint.check.native.volumes import volumes
from blueprint.check.shapes import Body, items, mapping, maps, number, text
from blueprint.finding import Confidence

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_NAMES = {
    "serviceAccountName": forms.subdomain,
    "nodeName": forms.subdomain,
    "priorityClassName": forms.subdomain,
    "hostname": forms.label_1123,
    "subdomain": forms.label_1123,
}
_ONLY_OF_SIDECARS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


def pod_template(
    problems: Problems, at: str, template: Body, needs_image: bool = True, extra: tuple[str, ...] = ()
) -> None:
    """NAT1xx for a template; `extra` names volumes that the owner adds (claims of a StatefulSet)."""
    metadata = mapping(template.get("metadata"))
    if metadata:
        labels(problems, "NAT117", f"{at}.metadata.labels", metadata.get("labels"))
        for key in mapping(metadata.get("annotations")):
            if problem := forms.annotation_key(str(key)):
                problems.add("NAT117", f"{at}.metadata.annotations", f"annotation key {key!r}: {problem}")
    spec = mapping(template.get("spec"))
    if items(spec.get("ephemeralContainers")):
        problems.add("NAT116", f"{at}.spec.ephemeralContainers", "a template cannot hold ephemeral containers")
    if template.get("spec") is None:
        problems.add("NAT101", at, "the template has no spec, so its pods have no containers")
        return
    pod_spec(problems, f"{at}.spec", spec, needs_image, extra)


def pod_spec(problems: Problems, at: str, spec: Body, needs_image: bool = True, extra: tuple[str, ...] = ()) -> None:
    """NAT1xx for the spec of a pod; `at` is its path."""
    known = volumes(problems, f"{at}.volumes", spec["volumes"]) if spec.get("volumes") else {}
    for name in extra:
        known[name] = {"persistentVolumeClaim": {}}
    claims = (
        _pod_claims(problems, f"{at}.resourceClaims", spec["resourceClaims"]) if "resourceClaims" in spec else set()
    )
    _containers(problems, at, spec, known, claims, needs_image)
    placement(problems, at, spec)
    unmasked = any("procMount" in mapping(each.get("securityContext")) for each in maps(spec.get("containers")))
    if "securityContext" in spec or "hostUsers" in spec or "hostPID" in spec or unmasked:
        pod_security(problems, at, spec)
    _fields(problems, at, spec)
    if spec.get("resources") is not None:
        _pod_resources(problems, at, spec)
    if spec.get("hostNetwork") is True:
        _host_ports(problems, at, spec)


def _containers(
    problems: Problems, at: str, spec: Body, known: dict[str, Body], claims: set[str], needs_image: bool
) -> None:
    grace = number(spec.get("terminationGracePeriodSeconds"), 30) or 0
    names: set[str] = set()
    if isinstance(spec.get("containers"), list) and not spec["containers"]:
        problems.add("NAT101", f"{at}.containers", "a pod needs at least one container")
    for index, body in enumerate(maps(spec.get("containers"))):
        here = f"{at}.containers[{index}]"
        container(problems, here, body, known, claims, needs_image)
        probes_and_hooks(problems, here, body, grace)
        _once(problems, here, body, names)
        _named_ports(problems, here, body)
    for index, body in enumerate(maps(spec.get("initContainers"))):
        here = f"{at}.initContainers[{index}]"
        container(problems, here, body, known, claims, needs_image)
        _once(problems, here, body, names)
        policy = body.get("restartPolicy")
        if policy == "Always":
            probes_and_hooks(problems, here, body, grace)
        else:
            for name in _ONLY_OF_SIDECARS:
                if body.get(name) is not None:
                    message = f"{name} is for sidecars: an init container without restartPolicy: Always has none"
                    problems.add("NAT116", f"{here}.{name}", message)
        if policy is not None:
            problems.choice("NAT116", f"{here}.restartPolicy", policy, _RESTART, True)
    for index, body in enumerate(maps(spec.get("ephemeralContainers"))):
        here = f"{at}.ephemeralContainers[{index}]"
        container(problems, here, body, known, claims, needs_image)
        _once(problems, here, body, names)


def _once(problems: Problems, at: str, body: Body, names: set[str]) -> None:
    name = body.get("name")
    if isinstance(name, str) and name:
        if name in names:
            problems.add("NAT101", f"{at}.name", f"container {name!r} is given twice")
        names.add(name)


def _named_ports(problems: Problems, at: str, body: Body) -> None:
    """NAT118: a probe that names a port which its container does not have can never succeed."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = mapping(body.get(name))
        action = "httpGet" if "httpGet" in probe else "tcpSocket"
        port = mapping(probe.get(action)).get("port")
        if isinstance(port, str) and port not in [each.get("name") for each in maps(body.get("ports"))]:
            message, fix = f"the container has no port named {port!r}", "name the port, or give its number"
            problems.add("NAT118", f"{at}.{name}.{action}.port", message, fix, Confidence.LIKELY)


def _pod_claims(problems: Problems, at: str, value: object) -> set[str]:
    names: set[str] = set()
    for index, claim in enumerate(maps(value)):
        name, here = claim.get("name"), f"{at}[{index}]"
        if isinstance(name, str):
            if name in names:
                problems.add("NAT110", f"{here}.name", f"claim {name!r} is given twice")
            elif problem := forms.label_1123(name):
                problems.add("NAT110", f"{here}.name", f"claim name {name!r} {problem}")
            names.add(name)
        sources = [
            source for source in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(source) is not None
        ]
        if len(sources) != 1:
            problems.add("NAT110", here, "exactly one of resourceClaimName and resourceClaimTemplateName must be given")
        for source in sources:
            if isinstance(claim[source], str) and (problem := forms.subdomain(claim[source])):
                problems.add("NAT110", f"{here}.{source}", f"{source} {claim[source]!r} {problem}")
    return names


def _fields(problems: Problems, at: str, spec: Body) -> None:
    """NAT115: single fields of a pod."""
    if spec.get("restartPolicy"):
        problems.choice("NAT115", f"{at}.restartPolicy", spec["restartPolicy"], _RESTART)
    if spec.get("dnsPolicy"):
        problems.choice("NAT115", f"{at}.dnsPolicy", spec["dnsPolicy"], _DNS)
    if spec.get("preemptionPolicy") is not None:
        problems.choice(
            "NAT115", f"{at}.preemptionPolicy", spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"), True
        )
    for name, form in _NAMES.items():
        value = spec.get(name)
        if isinstance(value, str) and value and (problem := form(value)):
            problems.add("NAT115", f"{at}.{name}", f"{name} {value!r} {problem}")
    runtime = spec.get("runtimeClassName")
    if isinstance(runtime, str) and (problem := forms.subdomain(runtime)):
        problems.add("NAT115", f"{at}.runtimeClassName", f"runtimeClassName {runtime!r} {problem}")
    deadline = number(spec.get("activeDeadlineSeconds"))
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        problems.add("NAT115", f"{at}.activeDeadlineSeconds", f"{deadline} is not between 1 and {MAX_INT32}")
    if spec.get("os") is not None:
        problems.choice("NAT115", f"{at}.os.name", mapping(spec["os"]).get("name"), ("linux", "windows"), True)
    gates: set[str] = set()
    for index, gate in enumerate(maps(spec.get("schedulingGates"))):
        name = text(gate.get("name"))
        if name in gates or forms.qualified_name(name):
            problems.add("NAT115", f"{at}.schedulingGates[{index}]", f"gate {name!r} is given twice or badly formed")
        gates.add(name)
    for index, gate in enumerate(maps(spec.get("readinessGates"))):
        if problem := forms.qualified_name(text(gate.get("conditionType"))):
            problems.add("NAT115", f"{at}.readinessGates[{index}].conditionType", problem)
    for index, alias in enumerate(maps(spec.get("hostAliases"))):
        if isinstance(alias.get("ip"), str) and not _is_ip(alias["ip"]):
            problems.add("NAT115", f"{at}.hostAliases[{index}].ip", f"{alias['ip']!r} is no IP address")
        for name in items(alias.get("hostnames")):
            if isinstance(name, str) and (problem := forms.subdomain(name)):
                problems.add("NAT115", f"{at}.hostAliases[{index}].hostnames", f"{name!r} {problem}")
    if spec.get("dnsConfig") is not None or spec.get("dnsPolicy") == "None":
        _dns(problems, f"{at}.dnsConfig", mapping(spec.get("dnsConfig")), text(spec.get("dnsPolicy")))


def _is_ip(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _dns(problems: Problems, at: str, config: Body, policy: str) -> None:
    servers, searches = items(config.get("nameservers")), items(config.get("searches"))
    if policy == "None" and not servers:
        problems.add("NAT115", at, "dnsPolicy None needs dnsConfig.nameservers")
    if len(servers) > 3:
        problems.add("NAT115", f"{at}.nameservers", "no more than 3 nameservers")
    for index, server in enumerate(servers):
        if isinstance(server, str) and not _is_ip(server):
            problems.add("NAT115", f"{at}.nameservers[{index}]", f"{server!r} is no IP address")
    if len(searches) > 32 or len(" ".join(map(str, searches))) > 2048:
        problems.add("NAT115", f"{at}.searches", "no more than 32 search domains and 2,048 characters")
    for index, search in enumerate(searches):
        if (
            isinstance(search, str)
            and search != "."
            and (problem := forms.subdomain_underscored(search.removesuffix(".")))
        ):
            problems.add("NAT115", f"{at}.searches[{index}]", f"{search!r} {problem}")
    for index, option in enumerate(maps(config.get("options"))):
        if not option.get("name"):
            problems.add("NAT115", f"{at}.options[{index}]", "an option needs a name")


def _pod_resources(problems: Problems, at: str, spec: Body) -> None:
    """Requests and limits of the pod as a whole hold those of its containers."""
    given, here = mapping(spec["resources"]), f"{at}.resources"
    if given.get("claims") is not None:
        problems.add("NAT108", f"{here}.claims", "claims belong to containers, not to the pod as a whole")
    resources.requirements(problems, here, given, resources.pod_name)
    for name, value in mapping(given.get("requests")).items():
        total, bound = Fraction(0), resources.amount(value)
        for body in maps(spec.get("containers")):
            total += resources.amount(mapping(mapping(body.get("resources")).get("requests")).get(name)) or 0
        if bound is not None and total > bound:
            problems.add("NAT109", f"{here}.requests", f"{name}: the containers request more than the pod's {value}")
    for name, value in mapping(given.get("limits")).items():
        bound = resources.amount(value)
        for index, body in enumerate(maps(spec.get("containers"))):
            limit = resources.amount(mapping(mapping(body.get("resources")).get("limits")).get(name))
            if bound is not None and limit is not None and limit > bound:
                message = f"{name}: the limit of container {index} is above the pod's {value}"
                problems.add("NAT109", f"{here}.limits", message)


def _host_ports(problems: Problems, at: str, spec: Body) -> None:
    for index, body in enumerate(maps(spec.get("containers"))):
        for position, port in enumerate(maps(body.get("ports"))):
            if port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
                path = f"{at}.containers[{index}].ports[{position}].hostPort"
                problems.add("NAT106", path, "with hostNetwork, hostPort must equal containerPort")


def pod(problems: Problems, body: Body) -> None:
    """NAT1xx for a plain Pod, with what the server fills in or asks of Pods only."""
    spec = mapping(body.get("spec"))
    if items(spec.get("ephemeralContainers")):
        message = "ephemeral containers come into a running pod (kubectl debug), not with it"
        problems.add("NAT116", "spec.ephemeralContainers", message)
    for kind in ("containers", "initContainers"):
        for index, each in enumerate(maps(spec.get(kind))):
            image = each.get("image")
            if isinstance(image, str) and image != image.strip():
                problems.add("NAT102", f"spec.{kind}[{index}].image", f"image {image!r} has blanks at its ends")
    for index, volume in enumerate(maps(spec.get("volumes"))):
        if volume.get("image") is not None and not mapping(volume["image"]).get("reference"):
            problems.add("NAT103", f"spec.volumes[{index}].image", "reference must be given")
    pod_spec(problems, "spec", spec)
