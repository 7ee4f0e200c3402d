"""Names in the rules of roles that no request has: resources of another group, verbs and subresources that are none.

Source: k8s.io/kubernetes v1.35.4 plugin/pkg/auth/authorizer/rbac/rbac.go (RuleAllows compares texts); the table
`rights`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache

from blueprint.catalog.tables import table
from blueprint.check.grants import RBAC, rules_of, words
from blueprint.check.graph import Graph
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, items, placeholder
from blueprint.finding import Finding
from blueprint.objects import Manifest

_NEAR = 0.8


@cache
def _groups_of() -> dict[str, list[str]]:
    """The groups of Kubernetes in which a resource is, by its name."""
    found: dict[str, list[str]] = {}
    for group, resources in table("rights")["resources"].items():
        for name in resources:
            found.setdefault(name, []).append(group)
    return found


def _roles(graph: Graph) -> Iterator[tuple[Manifest, int, Body]]:
    for role in graph.kind(f"Role.{RBAC}", f"ClusterRole.{RBAC}"):
        for index, rule in rules_of(role):
            yield role, index, rule


def groups(graph: Graph) -> Iterator[Finding]:
    """RBA113: a resource that none of the rule's groups has, and another group of Kubernetes has."""
    for role, index, rule in _roles(graph):
        named = words(rule, "apiGroups")
        ours = table("rights")["resources"]
        if not named or not all(group in ours for group in named):
            continue  # a group that is not known, or all groups
        only = {name for group in named for name in table("rights")["only_in_roles"].get(group, ())}
        for name in words(rule, "resources"):
            plain = name.partition("/")[0]
            homes = _groups_of().get(plain, [])
            if not homes or set(homes) & set(named) or plain in only or _elsewhere(role, index, plain, homes):
                continue
            shown = " or ".join(group or "the core group" for group in named)
            message = (
                f"{plain} are not of {shown}, but of {homes[0] or 'the core group'}: the rule grants nothing of them"
            )
            fix = f'apiGroups: ["{homes[0]}"]'
            yield warn("RBA113", role, message, f"rules[{index}].resources", fix)


def _elsewhere(role: Manifest, index: int, plain: str, homes: Sequence[str]) -> bool:
    """Whether another rule of the role grants the resource in its own group."""
    return any(
        place != index
        and {plain, "*"} & {name.partition("/")[0] for name in words(rule, "resources")}
        and {*homes, "*"} & set(words(rule, "apiGroups"))
        for place, rule in rules_of(role)
    )


def verbs(graph: Graph) -> Iterator[Finding]:
    """RBA114: a verb that no request has."""
    rows = table("rights")
    real = [*rows["verbs"], *rows["special"]]
    for role, index, rule in _roles(graph):
        if items(rule.get("nonResourceURLs")):
            continue
        ours = all(group in rows["resources"] for group in words(rule, "apiGroups"))
        for place, verb in enumerate(words(rule, "verbs")):
            if verb in real or verb in ("*", "") or placeholder(verb) or ":" in verb:
                continue
            plain = verb.strip().lower()
            near = [plain] if plain in real else get_close_matches(plain, rows["verbs"], 1, _NEAR)
            meant = (rows["meant"].get(plain) if ours else "") or next(iter(near), "")
            if meant:
                message = f"no request has the verb {verb!r}: it grants nothing"
                yield say("RBA114", role, message, f"rules[{index}].verbs[{place}]", f"write {meant}")


def subresources(graph: Graph) -> Iterator[Finding]:
    """RBA115: a subresource that a resource of Kubernetes does not have, and one of nearly that name that it has."""
    rows = table("rights")
    for role, index, rule in _roles(graph):
        for group in words(rule, "apiGroups"):
            for name in words(rule, "resources"):
                plain, slash, sub = name.partition("/")
                there = rows["resources"].get(group, {}).get(plain)
                if not slash or there is None or placeholder(sub):
                    continue
                known = {*there, "status", "finalizers", "*", *(rows["nodes"] if plain == "nodes" else ())}
                near = get_close_matches(sub, sorted(known), 1, _NEAR) if sub not in known else []
                if near:
                    message = f"{plain} have no subresource {sub!r}: the rule grants nothing of it"
                    path = f"rules[{index}].resources"
                    yield say("RBA115", role, message, path, f"write {plain}/{near[0]}")


RULES = (groups, verbs, subresources)
TREE = ()
