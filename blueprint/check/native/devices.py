"""Device claims, their templates and device classes (dynamic resource allocation, resource.k8s.io/v1).

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/resource/validation/validation.go, pkg/apis/resource/types.go (limits). What
is looked at in CEL expressions says expressions.py.
"""

from __future__ import annotations

from blueprint.check import forms
from blueprint.check.native.expressions import expression
from blueprint.check.native.problems import Problems, labels
from blueprint.check.native.selectors import refused, unmet
from blueprint.check.shapes import Body, items, mapping, maps, number, text
from blueprint.finding import Confidence

_MOST = 32
_MOST_ALTERNATIVES = 8
_LONGEST_EXPRESSION = 10 * 1024


def claim(problems: Problems, body: Body) -> None:
    """NAT601 for a ResourceClaim."""
    _devices(problems, "spec.devices", mapping(mapping(body.get("spec")).get("devices")))


def claim_template(problems: Problems, body: Body) -> None:
    """NAT601 for a ResourceClaimTemplate."""
    metadata = mapping(mapping(body.get("spec")).get("metadata"))
    labels(problems, "NAT601", "spec.metadata.labels", metadata.get("labels"))
    for key in mapping(metadata.get("annotations")):
        if problem := forms.annotation_key(str(key)):
            problems.add("NAT601", "spec.metadata.annotations", f"annotation key {key!r}: {problem}")
    inner = mapping(mapping(body.get("spec")).get("spec"))
    _devices(problems, "spec.spec.devices", mapping(inner.get("devices")))


def device_class(problems: Problems, body: Body) -> None:
    """NAT602 for a DeviceClass."""
    spec = mapping(body.get("spec"))
    _selectors(problems, "NAT602", "spec.selectors", spec.get("selectors"))
    for index, config in enumerate(maps(spec.get("config"))):
        _configuration(problems, "NAT602", f"spec.config[{index}]", config)
    name = spec.get("extendedResourceName")
    if isinstance(name, str) and (problem := forms.qualified_name(name)):
        problems.add("NAT602", "spec.extendedResourceName", f"{name!r} {problem}")


def _devices(problems: Problems, at: str, devices: Body) -> None:
    known: dict[str, set[str]] = {}
    requests = maps(devices.get("requests"))
    for part in ("requests", "constraints", "config"):
        if len(items(devices.get(part))) > _MOST:
            problems.add("NAT601", f"{at}.{part}", f"no more than {_MOST} {part}")
    for index, request in enumerate(requests):
        here, name = f"{at}.requests[{index}]", request.get("name")
        if isinstance(name, str):
            if problem := forms.label_1123(name):
                problems.add("NAT601", f"{here}.name", f"request name {name!r} {problem}")
            if name in known:
                problems.add("NAT601", f"{here}.name", f"request {name!r} is given twice")
        alternatives = maps(request.get("firstAvailable"))
        known[text(name)] = {text(each.get("name")) for each in alternatives}
        if (request.get("exactly") is None) == (not alternatives):
            problems.add("NAT601", here, "exactly one of exactly and firstAvailable must be given")
        elif alternatives:
            _alternatives(problems, f"{here}.firstAvailable", alternatives)
        else:
            _request(problems, f"{here}.exactly", mapping(request["exactly"]))
    for index, constraint in enumerate(maps(devices.get("constraints"))):
        here = f"{at}.constraints[{index}]"
        _references(problems, f"{here}.requests", constraint.get("requests"), known)
        given = [field for field in ("matchAttribute", "distinctAttribute") if constraint.get(field) is not None]
        if not given:
            problems.add("NAT601", here, "matchAttribute must be given")
        for field in given:
            _attribute(problems, f"{here}.{field}", constraint[field])
    for index, config in enumerate(maps(devices.get("config"))):
        _references(problems, f"{at}.config[{index}].requests", config.get("requests"), known)
        _configuration(problems, "NAT601", f"{at}.config[{index}]", config)


def _alternatives(problems: Problems, at: str, alternatives: list[Body]) -> None:
    if len(alternatives) > _MOST_ALTERNATIVES:
        problems.add("NAT601", at, f"no more than {_MOST_ALTERNATIVES} alternatives")
    seen: set[str] = set()
    for index, each in enumerate(alternatives):
        name = text(each.get("name"))
        if problem := forms.label_1123(name):
            problems.add("NAT601", f"{at}[{index}].name", f"request name {name!r} {problem}")
        if name in seen:
            problems.add("NAT601", f"{at}[{index}].name", f"request {name!r} is given twice")
        seen.add(name)
        _request(problems, f"{at}[{index}]", each)


def _request(problems: Problems, at: str, request: Body) -> None:
    name = request.get("deviceClassName")
    if isinstance(name, str) and (problem := forms.subdomain(name)):
        problems.add("NAT601", f"{at}.deviceClassName", f"deviceClassName {name!r} {problem}")
    mode, count = request.get("allocationMode") or "ExactCount", number(request.get("count"))
    problems.choice("NAT601", f"{at}.allocationMode", mode, ("All", "ExactCount"))
    if mode == "All" and count:
        problems.add("NAT601", f"{at}.count", "allocationMode All takes no count")
    elif mode == "ExactCount" and count is not None and count < 0:
        problems.add("NAT601", f"{at}.count", f"count {count} is negative")
    _selectors(problems, "NAT601", f"{at}.selectors", request.get("selectors"))


def _selectors(problems: Problems, code: str, at: str, value: object) -> None:
    selectors = maps(value)
    if len(selectors) > _MOST:
        problems.add(code, at, f"no more than {_MOST} selectors")
    for index, selector in enumerate(selectors):
        if selector.get("cel") is None:
            problems.add(code, f"{at}[{index}]", "a selector needs cel")
            continue
        written, here = mapping(selector["cel"]).get("expression"), f"{at}[{index}].cel.expression"
        if isinstance(written, str) and len(written) > _LONGEST_EXPRESSION:
            problems.add(code, here, f"no more than {_LONGEST_EXPRESSION:,} characters")
        else:
            _expression(problems, code, here, written)


def _expression(problems: Problems, code: str, at: str, written: object) -> None:
    before = len(problems.found)
    expression(problems, code, at, written, ("device",))
    if not isinstance(written, str) or len(problems.found) > before:
        return
    if said := refused(written):
        problems.add(code, at, f"CEL: {said}")
    elif said := unmet(written):
        message = f"{said}; no device has it, and where it is read the claim is not allocated"
        problems.add(code, at, message, confidence=Confidence.LIKELY)


def _references(problems: Problems, at: str, value: object, known: dict[str, set[str]]) -> None:
    seen: set[str] = set()
    for index, name in enumerate(items(value)):
        if not isinstance(name, str):
            continue
        first, slash, second = name.partition("/")
        if first not in known or (slash and second not in known[first]):
            problems.add("NAT601", f"{at}[{index}]", f"the claim has no request {name!r}")
        if name in seen:
            problems.add("NAT601", f"{at}[{index}]", f"request {name!r} is given twice")
        seen.add(name)


def _attribute(problems: Problems, at: str, value: object) -> None:
    domain, slash, name = text(value).partition("/")
    if "/" in name:
        return  # a gap in the server, which accepts it
    identifier = name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit() and len(name) <= 32
    if isinstance(value, str) and (not slash or not identifier or len(domain) > 63 or forms.subdomain(domain)):
        problems.add("NAT601", at, f"{value!r} is no domain/identifier")


def _configuration(problems: Problems, code: str, at: str, config: Body) -> None:
    if config.get("opaque") is None:
        problems.add(code, at, "opaque must be given")
        return
    driver = mapping(config["opaque"]).get("driver")
    if isinstance(driver, str) and (len(driver) > 63 or forms.subdomain(driver.lower())):
        problems.add(code, f"{at}.opaque.driver", f"driver {driver!r} is no DNS name of at most 63 characters")
