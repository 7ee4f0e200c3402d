"""Whether policy engines are asked at all: a policy in force decides nothing about what its engine never sees.

Sources: kyverno v1.19.1 pkg/config/config.go and pkg/controllers/webhook/validating.go (`buildWebhookRules`: one
webhook a policy that is fine-grained, else one for all that share selectors); gatekeeper v3.23.1
charts/gatekeeper/templates (webhook), apis/config/v1alpha1 and pkg/wildcard (Config).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from blueprint.attest.dump import WEBHOOKS
from blueprint.attest.evidence import Body, World
from blueprint.attest.policy_evidence import CONSTRAINTS, KYVERNO, actions, denies, policies_of
from blueprint.catalog.resources import Resources
from blueprint.check.graph import labels_of, selects
from blueprint.check.matching import asks_about, reaches
from blueprint.check.shapes import items, mapping, maps, texts
from blueprint.objects import Manifest
from blueprint.render.pools import TEAM_LABEL

_HOOKS: Final = {
    "ValidatingPolicy": "vpol.validate.kyverno.svc",
    "ImageValidatingPolicy": "ivpol.validate.kyverno.svc",
}
_GATEKEEPER: Final = "validation.gatekeeper.sh"
_NAME: Final = "kubernetes.io/metadata.name"
_JUDGING: Final = {"*", "audit", "webhook"}
"""Processes of Gatekeeper that judge; the others copy and change."""
_FILTER: Final = re.compile(r"\[([^,\]]*),?([^,\]]*),?([^\]]*)\]")
_SPARED: Final = frozenset({"", "system:nodes"})
"""Whom the chart of Kyverno lets by: kubelets, which write what is theirs."""

Tenants = Mapping[str, Mapping[str, str]]
"""Namespace → its labels."""


@dataclass(frozen=True, slots=True)
class _Meant:
    """What an engine must be asked about: in which namespaces, which (group, resource), and by whom it is told."""

    who: str
    tenants: Tenants
    resources: frozenset[tuple[str, str]]
    objects: object = None
    conditions: bool = False
    fails_open: bool = False


def asked(tree: World, world: World) -> None:
    """Hold webhooks and exclusions to the tenants' namespaces; reasons to refuse go to `world`."""
    tenants = _tenants(tree, world)
    found = [
        mapping(hook) for each in world.all(*WEBHOOKS) if not gone(each) for hook in items(each.body.get("webhooks"))
    ]
    meant: set[tuple[str, str]] = set()
    for kind, prefix in _HOOKS.items():
        own = [hook for hook in found if str(hook.get("name")).startswith(prefix)]
        for policy in tree.all(KYVERNO, kind):
            if denies(actions(policy.body)):
                what = _of_policy(policy, tenants)
                meant |= what.resources
                _called(what, _for(policy, own), world)
    if meant:
        _filtered(meant, tenants, world)
    constraints = [policy for policy in policies_of(tree) if policy.ref.group == CONSTRAINTS]
    kinds = frozenset(each for policy in constraints if denies(actions(policy.body)) for each in _of_constraint(policy))
    if kinds:
        own = [hook for hook in found if hook.get("name") == _GATEKEEPER]
        _called(_Meant("Gatekeeper", tenants, kinds), own, world)
        _excluded(tenants, world)


def gone(manifest: Manifest) -> bool:
    """Whether an object is being deleted: it is still listed, and may end at any moment."""
    return bool(mapping(manifest.body.get("metadata")).get("deletionTimestamp"))


def _tenants(*worlds: World) -> Tenants:
    """Tenants' namespaces, as the tree and the cluster have them; the labels are those of the cluster."""
    spaces = [each for world in worlds for each in world.all("", "Namespace")]
    found = {each.ref.name: {_NAME: each.ref.name, **labels_of(each.body)} for each in spaces}
    team = {each.ref.name for each in spaces if TEAM_LABEL in labels_of(each.body)}
    return {name: labels for name, labels in sorted(found.items()) if name in team}


def _for(policy: Manifest, hooks: Sequence[Body]) -> list[Body]:
    """The webhooks by which Kyverno asks for a policy: its own, or those for all that need none."""
    own = [hook for hook in hooks if str(hook.get("name")).endswith(f"-finegrained-{policy.ref.name}")]
    return own or [hook for hook in hooks if "-finegrained-" not in str(hook.get("name"))]


def _of_policy(policy: Manifest, tenants: Tenants) -> _Meant:
    spec = mapping(policy.body.get("spec"))
    match = mapping(spec.get("matchConstraints"))
    selector, rules = match.get("namespaceSelector"), maps(match.get("resourceRules"))
    return _Meant(
        f"Kyverno, for {policy.kind} {policy.ref.name},",
        {name: labels for name, labels in tenants.items() if selector is None or selects(selector, labels)},
        frozenset(
            (group, resource)
            for rule in rules
            for group in texts(rule.get("apiGroups"))
            for resource in texts(rule.get("resources"))
        ),
        match.get("objectSelector"),
        bool(spec.get("matchConditions")),
        spec.get("failurePolicy") == "Ignore",
    )


def _of_constraint(policy: Manifest) -> Iterator[tuple[str, str]]:
    for entry in maps(mapping(mapping(policy.body.get("spec")).get("match")).get("kinds")):
        for group in texts(entry.get("apiGroups")):
            for kind in texts(entry.get("kinds")):
                known = Resources().kind(group, kind)
                if known is not None or kind == "*":
                    yield group, known.plural if known else kind


def _called(meant: _Meant, hooks: Sequence[Body], world: World) -> None:
    """Refuse where no webhook asks an engine, where one does without its answer, and where something is left out."""
    if not hooks:
        world.refuse("CRE112", f"{meant.who} has no webhook: nobody asks it")
        return
    closed = [hook for hook in hooks if hook.get("failurePolicy") != "Ignore"]
    if not closed and not meant.fails_open:
        world.refuse("CRE112", f"{meant.who} is passed by when it does not answer (failurePolicy: Ignore)")
        return
    whole = [hook for hook in closed or hooks if _every_object(hook, meant)]
    if not whole:
        world.refuse("CRE112", f"{meant.who} is asked about some objects only (objectSelector, matchConditions)")
        return
    for name, labels in meant.tenants.items():
        if not any(reaches(hook.get("namespaceSelector"), labels) for hook in whole):
            world.refuse("CRE112", f"{meant.who} is not asked about the namespace {name}")
    rules = [
        rule
        for hook in whole
        for rule in maps(hook.get("rules"))
        if {"*", "CREATE"} & set(texts(rule.get("operations")))
    ]
    for group, resource in sorted(meant.resources):
        if not any(asks_about(rule, group, resource) for rule in rules):
            world.refuse("CRE112", f"{meant.who} is not asked about {resource}{'.' if group else ''}{group}")


def _every_object(hook: Body, meant: _Meant) -> bool:
    narrowed = hook.get("objectSelector") or None
    return narrowed in (None, meant.objects) and (meant.conditions or not hook.get("matchConditions"))


def _filtered(meant: set[tuple[str, str]], tenants: Tenants, world: World) -> None:
    """Kyverno's own configuration: whom and what it does not look at (kyverno pkg/config `isExcluded`, `ToFilter`)."""
    config = world.named("", "ConfigMap", "kyverno", "kyverno")
    if config is None:
        world.refuse("CRE112", "Kyverno's configuration is not among the objects: what it passes over is not known")
        return
    data = mapping(config.body.get("data"))
    kinds = set(_kinds(meant))
    for text in _FILTER.finditer(str(data.get("resourceFilters") or "")):
        kind, space, name = (part.strip() or "*" for part in text.groups())
        if name == "*" and _passes_over(kind, kinds):
            for tenant in tenants:
                if fnmatchcase(tenant, space):
                    world.refuse("CRE112", f"Kyverno does not look at {kind} in the namespace {tenant} ({text[0]})")
    for key in ("excludeGroups", "excludeUsernames", "excludeRoles", "excludeClusterRoles"):
        if let := sorted({one.strip() for one in str(data.get(key) or "").split(",")} - _SPARED):
            world.refuse("CRE112", f"Kyverno lets by {', '.join(let)} ({key})")


def _kinds(meant: set[tuple[str, str]]) -> Iterator[str]:
    """Kinds as filters name them: `Pod`, `Pod/ephemeralcontainers`."""
    for group, resource in meant:
        plural, slash, sub = resource.partition("/")
        if known := Resources().plural(group, plural):
            yield f"{known.kind}{slash}{sub}"


def _passes_over(kind: str, kinds: set[str]) -> bool:
    """Whether a filter's kind, with a group or version before it, takes one of those that policies judge."""
    parts = kind.split("/")
    while len(parts) > 1 and parts[0] != "*" and not parts[0][:1].isupper():
        parts.pop(0)
    text = "/".join(parts)
    return text in ("*", "*/*") or any(fnmatchcase(each, text) for each in kinds)


def _excluded(tenants: Tenants, world: World) -> None:
    """Gatekeeper's own configuration."""
    for pattern in _exclusions(world):
        for name in tenants:
            if _matches(pattern, name):
                world.refuse("CRE112", f"Gatekeeper's Config leaves out the namespace {name} ({pattern})")


def _exclusions(world: World) -> Iterator[str]:
    for config in world.all("config.gatekeeper.sh", "Config"):
        for entry in maps(mapping(config.body.get("spec")).get("match")):
            if _JUDGING & set(texts(entry.get("processes"))):
                yield from texts(entry.get("excludedNamespaces"))


def _matches(pattern: str, name: str) -> bool:
    """A star at the beginning, at the end or at both (gatekeeper pkg/wildcard `Matches`)."""
    inner = pattern.removeprefix("*").removesuffix("*")
    if pattern.startswith("*") and pattern.endswith("*"):
        return inner in name
    if pattern.startswith("*"):
        return name.endswith(inner)
    return name.startswith(inner) if pattern.endswith("*") else name == pattern
