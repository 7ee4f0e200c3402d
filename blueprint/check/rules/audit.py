"""Audit policies of the API server: what they do not log, and what they should not.

Source: k8s.io/apiserver v0.35.4 pkg/audit/policy/checker.go: the first rule that matches decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.catalog.tables import table
from blueprint.check.graph import Graph
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, items, maps, text
from blueprint.finding import Finding
from blueprint.objects import Manifest

_LEVELS = ("None", "Metadata", "Request", "RequestResponse")
_CONDITIONS = ("users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs")


def _policies(graph: Graph) -> Iterator[Manifest]:
    for manifest in graph.aside:
        if manifest.kind == "Policy" and manifest.api_version.startswith("audit.k8s.io/"):
            yield manifest


def _level(rule: Body) -> int:
    level = text(rule.get("level"))
    return _LEVELS.index(level) if level in _LEVELS else 0


def _names(rule: Body, group: str, resource: str) -> bool:
    """Whether a rule is about a resource by name, with its group."""
    return any(
        text(row.get("group")) == group and resource in [text(each) for each in items(row.get("resources"))]
        for row in maps(rule.get("resources"))
    )


def _matches(rule: Body, group: str, resource: str) -> bool:
    """Whether a rule takes a resource, named, by a pattern, or because it takes everything."""
    if "resources" not in rule:
        return "nonResourceURLs" not in rule
    name, slash, sub = resource.partition("/")
    wanted = {resource, f"{name}/*", f"*/{sub}"} if slash else {resource, "*"}
    for row in maps(rule.get("resources")):
        if text(row.get("group")) == group:
            listed = {text(each) for each in items(row.get("resources"))}
            if not listed or listed & wanted:
                return True
    return False


def written_elsewhere(graph: Graph) -> Iterator[Finding]:
    """POL501: a rule on a resource, while what matters is written to its subresource."""
    for policy in _policies(graph):
        rules = maps(policy.body.get("rules"))
        for row in table("audit")["written_elsewhere"]:
            group, resource = row["group"], row["resource"]
            sub = f"{resource}/{row['subresource']}"
            first = next((n for n, rule in enumerate(rules) if _names(rule, group, resource) and _level(rule)), None)
            if first is None:
                continue
            decides = next((rule for rule in rules if _matches(rule, group, sub) and _open(rule)), {})
            if _level(decides) < _level(rules[first]):
                name = f"{resource}.{group}" if group else resource
                message = f"{row['what']} of {name} is written to {sub}, which no rule logs at this level"
                yield warn("POL501", policy, message, f"rules[{first}].resources", f"add a rule for {sub}")


def never_reached(graph: Graph) -> Iterator[Finding]:
    """POL502: a rule behind one that takes every request."""
    for policy in _policies(graph):
        rules = maps(policy.body.get("rules"))
        everything = next((n for n, rule in enumerate(rules) if not any(rule.get(key) for key in _CONDITIONS)), None)
        if everything is not None and everything < len(rules) - 1:
            behind = len(rules) - 1 - everything
            message = f"rule {everything} takes every request: the {behind} behind it are never looked at"
            yield say("POL502", policy, message, f"rules[{everything + 1}]", "put the rule that takes everything last")


def logged_secrets(graph: Graph) -> Iterator[Finding]:
    """POL503: bodies of secrets and tokens in the audit log."""
    for policy in _policies(graph):
        rules = maps(policy.body.get("rules"))
        for row in table("audit")["secret_bodies"]:
            group, resource = row["group"], row["resource"]
            number = next((n for n, rule in enumerate(rules) if _matches(rule, group, resource) and _open(rule)), None)
            if number is not None and _level(rules[number]) >= _LEVELS.index("Request"):
                message = f"the bodies of {resource} are logged: whoever reads the log has them"
                yield say(
                    "POL503", policy, message, f"rules[{number}].level", f"a rule before it: {resource} at Metadata"
                )
                break


def _open(rule: Body) -> bool:
    """Whether a rule is for all users and for writes or every verb."""
    verbs = [text(each) for each in items(rule.get("verbs"))]
    return (
        not rule.get("users")
        and not rule.get("userGroups")
        and (not verbs or bool({"create", "update", "patch", "*"} & set(verbs)))
    )


RULES = (written_elsewhere, never_reached, logged_secrets)
TREE = ()
