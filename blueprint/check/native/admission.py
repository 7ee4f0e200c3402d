"""Admission policies, their bindings and webhooks.

Source: k8s.io/kubernetes@v1.35.4 pkg/apis/admissionregistration/validation/validation.go. What is looked at in
CEL expressions says expressions.py.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from blueprint.check import forms
from blueprint.check.native.expressions import expression
from blueprint.check.native.problems import Problems, label_selector, port_number
from blueprint.check.shapes import Body, items, mapping, maps, number, text, texts

_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT", "*")
_FAILURE = ("Fail", "Ignore")
_MATCH = ("Equivalent", "Exact")
_SCOPES = ("Cluster", "Namespaced", "*")
_REASONS = ("Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge")
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)


_REQUEST = ("object", "oldObject", "request", "authorizer")


def policy(problems: Problems, body: Body) -> None:
    """NAT603 for a ValidatingAdmissionPolicy."""
    spec = mapping(body.get("spec"))
    known: tuple[str, ...] = (*_REQUEST, "namespaceObject")
    if spec.get("paramKind") is not None:
        known = (*known, "params")
    before = known
    if items(spec.get("variables")):
        known = (*known, "variables")
    if spec.get("failurePolicy") is not None:
        problems.choice("NAT603", "spec.failurePolicy", spec["failurePolicy"], _FAILURE, True)
    if spec.get("paramKind") is not None:
        _parameter_kind(problems, mapping(spec["paramKind"]))
    if spec.get("matchConstraints") is None:
        problems.add("NAT603", "spec", "matchConstraints must be given")
    else:
        _match(problems, "NAT603", "spec.matchConstraints", mapping(spec["matchConstraints"]))
        if not items(mapping(spec["matchConstraints"]).get("resourceRules")):
            problems.add("NAT603", "spec.matchConstraints", "at least one of resourceRules must be given")
    _conditions(problems, "NAT603", "spec.matchConditions", spec.get("matchConditions"), before)
    for index, variable in enumerate(maps(spec.get("variables"))):
        name = text(variable.get("name"))
        if not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
            problems.add("NAT603", f"spec.variables[{index}].name", f"{name!r} is no CEL identifier")
        expression(problems, "NAT603", f"spec.variables[{index}].expression", variable.get("expression"), known)
    validations, audits = maps(spec.get("validations")), maps(spec.get("auditAnnotations"))
    if not validations and not audits:
        problems.add("NAT603", "spec", "validations or auditAnnotations must be given")
    for index, validation in enumerate(validations):
        _validation(problems, f"spec.validations[{index}]", validation, known)
    _audits(problems, audits, text(mapping(body.get("metadata")).get("name")), known)


def _parameter_kind(problems: Problems, kind: Body) -> None:
    version = text(kind.get("apiVersion"))
    group, slash, name = version.rpartition("/")
    if not version or "/" in group or (slash and forms.subdomain(group)) or forms.label_1035(name):
        problems.add("NAT603", "spec.paramKind.apiVersion", f"{version!r} is no group/version")
    if forms.label_1035(text(kind.get("kind")).lower()):
        problems.add("NAT603", "spec.paramKind.kind", f"{kind.get('kind')!r} is no kind")


def _validation(problems: Problems, at: str, validation: Body, known: tuple[str, ...]) -> None:
    expression(problems, "NAT603", f"{at}.expression", validation.get("expression"), known)
    message = validation.get("message")
    if isinstance(message, str) and message and (not message.strip() or re.search(r"[\r\n]", message.strip())):
        problems.add("NAT603", f"{at}.message", "the message must be one line")
    if validation.get("messageExpression"):
        expression(problems, "NAT603", f"{at}.messageExpression", validation["messageExpression"], known)
    if validation.get("reason") is not None:
        problems.choice("NAT603", f"{at}.reason", validation["reason"], _REASONS, True)


def _audits(problems: Problems, audits: list[Body], name: str, known: tuple[str, ...]) -> None:
    if len(audits) > 20:
        problems.add("NAT603", "spec.auditAnnotations", "no more than 20 audit annotations")
    seen: set[str] = set()
    for index, audit in enumerate(audits):
        key, here = text(audit.get("key")), f"spec.auditAnnotations[{index}]"
        if problem := forms.qualified_name(f"{name}/{key}"):
            problems.add("NAT603", f"{here}.key", f"key {key!r}: {problem}")
        if key in seen:
            problems.add("NAT603", f"{here}.key", f"key {key!r} is given twice")
        seen.add(key)
        expression(problems, "NAT603", f"{here}.valueExpression", audit.get("valueExpression"), known)


def _match(problems: Problems, code: str, at: str, match: Body) -> None:
    if match.get("matchPolicy") is not None:
        problems.choice(code, f"{at}.matchPolicy", match["matchPolicy"], _MATCH, True)
    for name in ("namespaceSelector", "objectSelector"):
        label_selector(problems, code, f"{at}.{name}", match.get(name))
    for part in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(maps(match.get(part))):
            here = f"{at}.{part}[{index}]"
            names = texts(rule.get("resourceNames"))
            for name in names:
                if forms.path_segment(name) or names.count(name) > 1:
                    problems.add(code, f"{here}.resourceNames", f"{name!r} is given twice or no name")
            _rule(problems, code, here, rule)


def _rule(problems: Problems, code: str, at: str, rule: Body) -> None:
    operations = items(rule.get("operations"))
    if not operations:
        problems.add(code, f"{at}.operations" if "operations" in rule else at, "operations must be given")
    for operation in operations:
        problems.choice(code, f"{at}.operations", operation, _OPERATIONS, True)
    for name in ("apiGroups", "apiVersions", "resources"):
        values = texts(rule.get(name))
        if not values:
            problems.add(code, f"{at}.{name}" if name in rule else at, f"{name} must be given")
        elif "" in values and name != "apiGroups":
            problems.add(code, f"{at}.{name}", f"a value of {name} is empty")
        if len(values) > 1 and "*" in values and name != "resources":
            problems.add(code, f"{at}.{name}", "'*' excludes other values")
    if len(operations) > 1 and "*" in operations:
        problems.add(code, f"{at}.operations", "'*' excludes other values")
    _resources(problems, code, f"{at}.resources", texts(rule.get("resources")))
    if rule.get("scope") is not None:
        problems.choice(code, f"{at}.scope", rule["scope"], _SCOPES, True)


def _resources(problems: Problems, code: str, at: str, resources: list[str]) -> None:
    if len(resources) > 1 and "*/*" in resources:
        problems.add(code, at, "'*/*' excludes other resources")
    plain = [name for name in resources if name and "/" not in name]
    if "*" in plain and plain[-1] != "*":  # the server looks at the last one only
        problems.add(code, at, "'*' excludes other resources without subresource")
    whole: set[str] = set()
    everywhere: set[str] = set()
    for name in resources:
        resource, slash, part = name.partition("/")
        if not slash:
            continue
        if resource in whole or part in everywhere:
            problems.add(code, at, f"{name!r} is already covered by a wildcard")
        if part == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(part)


def _conditions(problems: Problems, code: str, at: str, value: object, known: tuple[str, ...]) -> None:
    seen: set[str] = set()
    conditions = maps(value)
    if len(conditions) > 64:
        problems.add(code, at, "no more than 64 conditions")
    for index, condition in enumerate(conditions):
        name = condition.get("name")
        if isinstance(name, str) and (problem := forms.qualified_name(name)):
            problems.add(code, f"{at}[{index}].name", f"name {name!r}: {problem}")
        if isinstance(name, str) and name in seen:
            problems.add(code, f"{at}[{index}].name", f"condition {name!r} is given twice")
        seen.add(text(name))
        expression(problems, code, f"{at}[{index}].expression", condition.get("expression"), known)


def binding(problems: Problems, body: Body) -> None:
    """NAT604 for a ValidatingAdmissionPolicyBinding."""
    spec = mapping(body.get("spec"))
    name = text(spec.get("policyName"))
    if problem := forms.subdomain(name):
        path = "spec.policyName" if "policyName" in spec else "spec"
        problems.add("NAT604", path, f"policyName {name!r} {problem}")
    actions = items(spec.get("validationActions"))
    if not actions:
        path = "spec.validationActions" if "validationActions" in spec else "spec"
        problems.add("NAT604", path, "at least one of validationActions must be given")
    for action in actions:
        problems.choice("NAT604", "spec.validationActions", action, ("Deny", "Warn", "Audit"), True)
    if len(actions) != len({str(action) for action in actions}):
        problems.add("NAT604", "spec.validationActions", "an action is given twice")
    if "Deny" in actions and "Warn" in actions:
        problems.add("NAT604", "spec.validationActions", "Deny and Warn exclude each other", "keep Deny")
    if spec.get("paramRef") is not None:
        _parameters(problems, mapping(spec["paramRef"]))
    if spec.get("matchResources") is not None:
        _match(problems, "NAT604", "spec.matchResources", mapping(spec["matchResources"]))


def _parameters(problems: Problems, reference: Body) -> None:
    name, selector = text(reference.get("name")), reference.get("selector")
    if bool(name) == (selector is not None):
        problems.add("NAT604", "spec.paramRef", "exactly one of name and selector must be given")
    if name and (problem := forms.path_segment(name)):
        problems.add("NAT604", "spec.paramRef.name", f"name {name!r} {problem}")
    label_selector(problems, "NAT604", "spec.paramRef.selector", selector)
    action = reference.get("parameterNotFoundAction")
    if not action:
        problems.add(
            "NAT604", "spec.paramRef", "parameterNotFoundAction must be given", "parameterNotFoundAction: Deny"
        )
    else:
        problems.choice("NAT604", "spec.paramRef.parameterNotFoundAction", action, ("Allow", "Deny"))


def webhooks(problems: Problems, body: Body) -> None:
    """NAT605 for webhook configurations of both kinds."""
    seen: set[str] = set()
    for index, hook in enumerate(maps(body.get("webhooks"))):
        here, name = f"webhooks[{index}]", text(hook.get("name"))
        if forms.subdomain(name) or name.count(".") < 2:
            problems.add("NAT605", f"{here}.name", f"{name!r} is no DNS name of at least three parts")
        if name in seen:
            problems.add("NAT605", f"{here}.name", f"webhook {name!r} is given twice")
        seen.add(name)
        for position, rule in enumerate(maps(hook.get("rules"))):
            _rule(problems, "NAT605", f"{here}.rules[{position}]", rule)
        for field, allowed in _HOOK.items():
            if hook.get(field) is not None:
                problems.choice("NAT605", f"{here}.{field}", hook[field], allowed, True)
        seconds = number(hook.get("timeoutSeconds"))
        if seconds is not None and not 1 <= seconds <= 30:
            problems.add("NAT605", f"{here}.timeoutSeconds", f"{seconds} s is not between 1 and 30")
        for field in ("namespaceSelector", "objectSelector"):
            label_selector(problems, "NAT605", f"{here}.{field}", hook.get(field))
        _versions(problems, f"{here}.admissionReviewVersions", hook.get("admissionReviewVersions"))
        _client(problems, f"{here}.clientConfig", mapping(hook.get("clientConfig")))
        _conditions(problems, "NAT605", f"{here}.matchConditions", hook.get("matchConditions"), _REQUEST)


_HOOK = {
    "failurePolicy": _FAILURE,
    "matchPolicy": _MATCH,
    "sideEffects": ("None", "NoneOnDryRun"),
    "reinvocationPolicy": ("Never", "IfNeeded"),
}


def _versions(problems: Problems, at: str, value: object) -> None:
    versions = texts(value)
    if isinstance(value, list) and not {"v1", "v1beta1"} & set(versions):
        problems.add("NAT605", at, "v1 or v1beta1 must be among them")
    if len(versions) != len(set(versions)) or any(forms.label_1035(version) for version in versions):
        problems.add("NAT605", at, "a version is given twice or badly formed")


def _client(problems: Problems, at: str, client: Body) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        problems.add("NAT605", at, "exactly one of url and service must be given")
    elif isinstance(url, str):
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.username or parts.query or parts.fragment:
            problems.add("NAT605", f"{at}.url", f"{url!r} is no https URL without user, query and fragment")
    elif service is not None:
        target = mapping(service)
        for name in ("name", "namespace"):
            if target.get(name) == "":
                problems.add("NAT605", f"{at}.service.{name}", f"{name} is empty")
        if problem := port_number(target.get("port")):
            problems.add("NAT605", f"{at}.service.port", problem)
        path = target.get("path")
        if isinstance(path, str) and path and not path.startswith("/"):
            problems.add("NAT605", f"{at}.service.path", f"path {path!r} must start with '/'")
