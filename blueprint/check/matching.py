"""Which resources the rules of webhooks and policies ask about, and which namespaces their selectors take.

Source: k8s.io/apiserver v0.35.4 pkg/admission/plugin/webhook/predicates/rules/rules.go, …/namespace/matcher.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from blueprint.check.graph import Graph, selects
from blueprint.check.shapes import Body, mapping, maps, placeholder, texts

SYSTEM = {"kubernetes.io/metadata.name": "kube-system"}
"""The labels by which every cluster's own namespace is known."""


def asks_about(rule: Body, group: str, resource: str) -> bool:
    """Whether a rule of a webhook or policy takes a resource (`pods`, `pods/ephemeralcontainers`) of a group."""
    groups, resources = texts(rule.get("apiGroups")), texts(rule.get("resources"))
    if not {group, "*"} & set(groups):
        return False
    name, slash, sub = resource.partition("/")
    every = {f"*/{sub}", "*/*", f"{name}/*"} if slash else {"*", "*/*"}
    return bool(({resource} | every) & set(resources))


def reaches(selector: object, labels: Mapping[str, str]) -> bool:
    """Whether a namespaceSelector lets a namespace through; none lets every namespace through."""
    return selector is None or selects(selector, labels)


def problems(graph: Graph, rule: Body) -> Iterator[tuple[str, str]]:
    """What in a rule can never match, with the name that was perhaps meant ("" for none)."""
    groups = texts(rule.get("apiGroups"))
    for group in groups:
        if "/" in group:
            yield f"apiGroups holds {group!r}, which is a group with a version", group.partition("/")[0]
    for version in texts(rule.get("apiVersions")):
        if "/" in version:
            yield f"apiVersions holds {version!r}, which is a version with its group", version.partition("/")[2]
    if any("*" in group or placeholder(group) for group in groups):
        return
    known = [resource for group in groups for resource in graph.resources.of_group(group)]
    if {resource.group for resource in known} != set(groups):
        return  # a group that nothing is known about
    plurals = {resource.plural for resource in known}
    for name in texts(rule.get("resources")):
        plain = name.partition("/")[0]
        if plain in plurals or "*" in plain or placeholder(plain) or not plain:
            continue
        close = next((each.plural for each in known if each.kind.lower() == plain.lower()), "")
        close = close or next(iter(get_close_matches(plain.lower(), plurals, 1)), "")
        where = " or ".join(group or "the core group" for group in groups)
        yield f"{where} has no resource {name!r}", close


def kind_problem(graph: Graph, group: str, kind: str) -> str | None:
    """Why no object has this kind, None where that is not known; the text names what was perhaps meant."""
    known = graph.resources.of_group(group)
    if not known or "*" in kind or placeholder(kind) or graph.resources.kind(group, kind):
        return None
    close = next((each.kind for each in known if kind.lower() in (each.kind.lower(), each.plural)), "")
    close = close or next(iter(get_close_matches(kind, [each.kind for each in known], 1)), "")
    hint = f"; did you mean {close}?" if close else ""
    return f"{group or 'the core group'} has no kind {kind!r}{hint}"


def rules_of(match: object) -> list[Body]:
    """The resource rules of a matchConstraints or matchResources."""
    return maps(mapping(match).get("resourceRules"))
