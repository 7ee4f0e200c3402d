"""Policies of Kyverno that are also asked in the background, where there is no request and so no user.

Sources: kyverno v1.19.1 pkg/validation/policy/background.go and validate.go (what the webhook of policies refuses),
pkg/controllers/report/utils/scanner.go and pkg/admissionpolicy/user_info.go (a scan has no user, and its fields are not
there).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from blueprint.check.graph import Graph
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, mapping, maps, text, texts
from blueprint.finding import Finding

_OLD = ("ClusterPolicy.kyverno.io", "Policy.kyverno.io")
_NEW = ("ValidatingPolicy.policies.kyverno.io", "NamespacedValidatingPolicy.policies.kyverno.io")
_VARIABLE = re.compile(r"(?:^|[^\\])(\{\{(?:\{[^{}]*\}|[^{}])*\}\})")
_USER = re.compile(r"[^.](serviceAccountName(?:space)?|request.userInfo|request.roles|request.clusterRoles)\b")
_WHO = ("roles", "clusterRoles", "subjects")
_READ = re.compile(r"\brequest\.userInfo\.(\w+)")
_ASKED = re.compile(r"\bhas\s*\(\s*request\.userInfo\b|\brequest\.\?userInfo\b|\brequest\.userInfo\.\?")
_VERSION = re.compile(r"v\d(?:(?:alpha|beta)\d)?|\*")
_FIX = "background: false, if the policy is about who asks"


def refused(graph: Graph) -> Iterator[Finding]:
    """POL311: a policy that may be asked in the background needs what only a request has."""
    for policy in graph.kind(*_OLD):
        spec = mapping(policy.body.get("spec"))
        if policy.is_unknown(("spec", "background")) or spec.get("background") is False:
            continue
        rules = maps(spec.get("rules"))
        found = [problem for index, rule in enumerate(rules) for problem in _of_rule(rule, f"spec.rules[{index}]")]
        existing = any(mapping(rule.get("mutate")).get("targets") is not None for rule in rules)
        if not found and not existing:
            found = [(at, f"{name} is read") for at, name in _variables(spec)]
        for path, what in found[:1]:
            message = f"{what}, which there is not in a background scan: Kyverno refuses the policy"
            yield say("POL311", policy, message, path, _FIX)


def _of_rule(rule: Body, at: str) -> Iterator[tuple[str, str]]:
    """What of a rule is not there in a scan: users, any kind at all, and requests to subresources."""
    for part in ("match", "exclude"):
        holder = mapping(rule.get(part))
        blocks = [(f"{at}.{part}", holder)]
        blocks += [
            (f"{at}.{part}.{how}[{index}]", block)
            for how in ("any", "all")
            for index, block in enumerate(maps(holder.get(how)))
        ]
        for here, block in blocks:
            for name in _WHO:
                if block.get(name):
                    yield f"{here}.{name}", f"{name} of who asks are matched"
            for kind in texts(mapping(block.get("resources")).get("kinds")):
                path = f"{here}.resources.kinds"
                if kind == "*":
                    yield path, "every kind is matched"
                elif rule.get("validate") is not None and (sub := _subresource(kind)):
                    yield path, f"the subresource {sub} is matched"


def _subresource(kind: str) -> str:
    """The subresource of `Pod/exec`, `v1/Pod/exec` or `Pod.exec`, "" where there is none."""
    *head, last = kind.split("/")
    parts = [*head, *last.split(".")]
    if parts == ["*", "*"]:
        return "*"
    if len(parts) == 2:
        return "" if _VERSION.fullmatch(parts[0]) and not (parts[0] == "*" and parts[1].islower()) else parts[1]
    if len(parts) == 3:
        return parts[2] if _VERSION.fullmatch(parts[0]) else ""
    return parts[3] if len(parts) == 4 else ""


def _variables(spec: Body) -> Iterator[tuple[str, str]]:
    for index, rule in enumerate(maps(spec.get("rules"))):
        for variable in _VARIABLE.findall(orjson.dumps(rule, default=str).decode()):
            if user := _USER.search(variable):
                yield f"spec.rules[{index}]", user[1]


def without_a_user(graph: Graph) -> Iterator[Finding]:
    """POL312: an expression reads who asks, and the policy is asked in the background, too."""
    for policy in graph.kind(*_NEW):
        spec = mapping(policy.body.get("spec"))
        evaluation = mapping(spec.get("evaluation"))
        if mapping(evaluation.get("background")).get("enabled") is False or evaluation.get("mode") == "JSON":
            continue
        rows = [
            (f"spec.{part}[{index}].expression", text(row.get("expression")))
            for part in ("matchConditions", "variables", "validations")
            for index, row in enumerate(maps(spec.get(part)))
        ]
        if any(_ASKED.search(written) for _, written in rows):
            continue
        for path, written in rows:
            if read := _READ.search(written):
                message = f"request.userInfo.{read[1]} is not there in a background scan: its report says error for all"
                yield warn("POL312", policy, message, path, "evaluation.background.enabled: false, or ask with has()")
                break


RULES = (refused, without_a_user)
TREE = ()
