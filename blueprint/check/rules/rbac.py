"""Rights: those that reach further than meant, and those that grant nothing.

Sources: kubernetes.io docs/reference/access-authn-authz/rbac and docs/concepts/security/rbac-good-practices; the table
`protected` says what decides over others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from difflib import get_close_matches

from blueprint.catalog.tables import table
from blueprint.check.grants import (
    RBAC,
    WRITES,
    Binding,
    allows,
    built_in,
    protected,
    rules_of,
    shown,
    words,
)
from blueprint.check.graph import Graph, labels_of
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import items, placeholder
from blueprint.finding import Finding, Ref, Severity
from blueprint.objects import Manifest

_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"


def wildcards(graph: Graph) -> Iterator[Finding]:
    """RBA101: a role that may write everything, also what will be added to the cluster later."""
    grants = graph.grants
    given = {id(b.role): tenants for b in grants.bindings if b.role and (tenants := grants.tenants_of(b))}
    for role in graph.kind(f"Role.{RBAC}", f"ClusterRole.{RBAC}"):
        for index, rule in rules_of(role):
            everything = "*" in words(rule, "resources") and {"*", ""} & set(words(rule, "apiGroups"))
            if not everything or not WRITES & set(words(rule, "verbs")):
                continue
            tenants = given.get(id(role), [])
            who = f" ({shown(tenants[0])} among those who have it)" if tenants else ""
            message = f"the role may write every resource, secrets and roles too{who}"
            severity = Severity.ERROR if tenants else Severity.WARNING
            yield say("RBA101", role, message, f"rules[{index}]", "list the resources that it needs", severity)
            break


def powers(graph: Graph) -> Iterator[Finding]:
    """RBA102: verbs with which one becomes more than one is."""
    grants = graph.grants
    given = {id(b.role): tenants for b in grants.bindings if b.role and (tenants := grants.tenants_of(b))}
    for role in graph.kind(f"Role.{RBAC}", f"ClusterRole.{RBAC}"):
        for index, rule in rules_of(role):
            if "*" in words(rule, "resources") and "*" in words(rule, "verbs"):
                continue  # RBA101
            row = next((row for row in table("protected")["powers"] if _power(rule, row)), None)
            if row is not None:
                tenants = given.get(id(role), [])
                who = f"; {shown(tenants[0])} has it" if tenants else ""
                message = f"with {row['verb']} on {_resource(row)} {row['why']}{who}"
                severity = Severity.ERROR if tenants else Severity.WARNING
                yield say("RBA102", role, message, f"rules[{index}]", "take it away, or name the objects", severity)
                break


def _power(rule: dict[str, object], row: dict[str, str]) -> bool:
    if not {row["verb"], "*"} & set(words(rule, "verbs")):
        return False
    if row["resource"] != "*":
        return allows(rule, row["verb"], row["group"], row["resource"])
    named = bool(items(rule.get("resourceNames")))
    return row["verb"] in words(rule, "verbs") and row["group"] in words(rule, "apiGroups") and not named


def _resource(row: dict[str, str]) -> str:
    return "roles" if row["resource"] == "*" else row["resource"]


def cluster_admins(graph: Graph) -> Iterator[Finding]:
    """RBA103: somebody has every right."""
    grants = graph.grants
    for binding in grants.bindings:
        if binding.role_kind != "ClusterRole" or binding.role_name != "cluster-admin":
            continue
        for index, subject in enumerate(binding.subjects):
            if subject[2] == "system:masters" or placeholder(subject[2]) or placeholder(subject[1]):
                continue
            where = "" if binding.everywhere else f" in the namespace {binding.manifest.ref.namespace}"
            default = subject[0] == "ServiceAccount" and subject[2] == "default"
            tenant = binding.everywhere and bool(grants.tenants_of(binding))
            why = "; every pod without an account of its own is that one" if default else ""
            message = f"{shown(subject)} has every right{where}{why}"
            severity = Severity.ERROR if (default or tenant) and binding.everywhere else Severity.WARNING
            yield say(
                "RBA103",
                binding.manifest,
                message,
                f"subjects[{index}]",
                "bind a role that lists what it needs",
                severity,
            )


def everybody(graph: Graph) -> Iterator[Finding]:
    """RBA104: rights for everybody who reaches the API server, or for every service account."""
    rows = table("protected")
    for binding in graph.grants.bindings:
        if binding.role_name in rows["for_everybody"]:
            continue
        for index, subject in enumerate(binding.subjects):
            if subject[2] not in rows["everybody"]:
                continue
            anonymous = subject[2] in ("system:unauthenticated", "system:anonymous")
            mild = binding.role is not None and _only_reads(binding.role) and not anonymous
            who = "anybody, without logging in," if anonymous else "everybody"
            message = f"{who} gets the rights of {binding.role_kind} {binding.role_name} ({subject[2]})"
            severity = Severity.WARNING if mild else Severity.ERROR
            yield say(
                "RBA104", binding.manifest, message, f"subjects[{index}]", "name the groups that need it", severity
            )


def _only_reads(role: Manifest) -> bool:
    return all(
        set(words(rule, "verbs")) <= {"get", "list", "watch"} and not {"secrets", "*"} & set(words(rule, "resources"))
        for _, rule in rules_of(role)
    )


def aggregated(graph: Graph) -> Iterator[Finding]:
    """RBA105: a label adds rights to view, edit or admin, which everybody with those roles then has."""
    for role in graph.kind(f"ClusterRole.{RBAC}"):
        labels = labels_of(role.body)
        into = [
            key.removeprefix(_AGGREGATE)
            for key, value in labels.items()
            if key.startswith(_AGGREGATE) and value == "true"
        ]
        into = [name for name in into if name in ("view", "edit", "admin")]
        if not into or "kubernetes.io/bootstrapping" in labels:
            continue
        for index, rule in rules_of(role):
            found = next(protected(rule, in_namespace=True), None)
            if found:
                message = f"everybody with the role {into[0]} may write {found[0]} in their namespaces: {found[1]}"
            elif "view" in into and (WRITES & set(words(rule, "verbs")) and not _reviews(rule)):
                message = "everybody with the role view may write: it is added to a role that is meant for reading"
            elif "view" in into and allows(rule, "get", "", "secrets"):
                message = "everybody with the role view may read secrets, and with a token become its owner"
            else:
                continue
            # Who has the role admin looks after the namespace.
            severity = Severity.WARNING if into == ["admin"] else Severity.ERROR
            yield say("RBA105", role, message, f"rules[{index}]", "leave the label out, or the rule", severity)
            break


def _reviews(rule: dict[str, object]) -> bool:
    """Whether a rule only asks what one may do, which is a create, too."""
    return all("review" in name for name in words(rule, "resources"))


def tenants_write(graph: Graph) -> Iterator[Finding]:
    """RBA106: tenants may write what decides over others, or over the limits that they are held to."""
    grants = graph.grants
    for binding in grants.bindings:
        tenants = grants.tenants_of(binding)
        if not tenants or binding.role is None:
            continue
        inside = not binding.everywhere
        if inside and binding.manifest.ref.namespace not in grants.tenant_namespaces:
            continue
        found = grants.writes(binding.role, in_namespace=inside)
        if found:
            where = f" in {binding.manifest.ref.namespace}" if inside else ""
            message = f"{shown(tenants[0])} may write {found[1]}{where} by {binding.role.ref}: {found[2]}"
            yield say("RBA106", binding.manifest, message, "roleRef", f"take {found[1]} out of the role")


def tenant_roles(graph: Graph) -> Iterator[Finding]:
    """RBA106: a role that is called a tenant's and is bound elsewhere, or by what makes namespaces."""
    bound = {id(binding.role) for binding in graph.grants.bindings}
    for role in graph.kind(f"Role.{RBAC}", f"ClusterRole.{RBAC}"):
        if id(role) in bound or "tenant" not in _WORD.findall(role.ref.name):
            continue
        found = graph.grants.writes(role, in_namespace=True)
        if found:
            message = f"by its name a role for tenants; it lets them write {found[1]}: {found[2]}"
            yield say("RBA106", role, message, f"rules[{found[0]}]", f"take {found[1]} out of the role")


_WORD = re.compile(r"[a-z0-9]+")


def without_effect(graph: Graph) -> Iterator[Finding]:
    """RBA107: a right on cluster-wide resources, granted only in a namespace, grants nothing."""
    for role in graph.kind(f"Role.{RBAC}"):
        for index, rule in rules_of(role):
            wide = _cluster_wide(graph, rule)
            if wide:
                message = f"{wide[0]} are not in a namespace; a Role grants nothing on them"
                fix = "use a ClusterRole and a ClusterRoleBinding"
                yield warn("RBA107", role, message, f"rules[{index}].resources", fix)
                break
    for binding in graph.grants.bindings:
        if binding.everywhere or binding.role is None or binding.role.kind != "ClusterRole":
            continue
        rules = [rule for _, rule in rules_of(binding.role) if "resources" in rule]
        if rules and all(set(words(rule, "resources")) == set(_cluster_wide(graph, rule)) for rule in rules):
            message = (
                f"every right of {binding.role.ref} is on cluster-wide resources; a RoleBinding grants none of them"
            )
            yield warn("RBA107", binding.manifest, message, "roleRef", "use a ClusterRoleBinding")


def _cluster_wide(graph: Graph, rule: dict[str, object]) -> list[str]:
    groups = words(rule, "apiGroups")
    found = []
    for name in words(rule, "resources"):
        known = [resource for group in groups if (resource := graph.resources.plural(group, name.partition("/")[0]))]
        if name != "namespaces" and len(known) == len(groups) and known and not any(each.namespaced for each in known):
            found.append(name)
    return found


def default_accounts(graph: Graph) -> Iterator[Finding]:
    """RBA108: rights for the account that every pod has which names none."""
    for binding in graph.grants.bindings:
        for index, (kind, namespace, name) in enumerate(binding.subjects):
            if kind == "ServiceAccount" and name == "default" and binding.role_name != "cluster-admin":
                message = f"every pod of {namespace} that names no account gets the rights of {binding.role_name}"
                yield warn("RBA108", binding.manifest, message, f"subjects[{index}]", "make an account for the pod")


def dangling(graph: Graph) -> Iterator[Finding]:
    """RBA109, RBA110: a binding to a role, or to an account, that is not there."""
    accounts: dict[str, list[str]] = defaultdict(list)
    for manifest in graph.kind("ServiceAccount"):
        accounts[manifest.ref.namespace].append(manifest.ref.name)
    for binding in graph.grants.bindings:
        yield from _roleless(graph, binding)
        for index, (kind, namespace, name) in enumerate(binding.subjects):
            if kind != "ServiceAccount" or name == "default" or placeholder(name) or name in accounts[namespace]:
                continue
            meant = get_close_matches(name, accounts[namespace], 1, 0.85)
            homes = [] if name in accounts[""] else [place for place in sorted(accounts) if name in accounts[place]]
            if meant and graph.closed("ServiceAccount"):
                message = f"there is no ServiceAccount {namespace}/{name}, but there is {meant[0]}"
                yield warn("RBA110", binding.manifest, message, f"subjects[{index}].name", f"did you mean {meant[0]}?")
            elif homes and namespace and not placeholder(namespace) and graph.closed("ServiceAccount"):
                message = f"there is no ServiceAccount {name} in {namespace}, but in {homes[0]}"
                path = f"subjects[{index}].namespace"
                yield warn("RBA110", binding.manifest, message, path, f"namespace: {homes[0]}")


def _roleless(graph: Graph, binding: Binding) -> Iterator[Finding]:
    kind, name, namespace = binding.role_kind, binding.role_name, binding.manifest.ref.namespace
    if binding.role is not None or not name or kind not in ("Role", "ClusterRole"):
        return
    if kind == "ClusterRole" and built_in(name):
        return
    other, where = ("ClusterRole", "") if kind == "Role" else ("Role", namespace)
    there = graph.get(Ref(RBAC, other, where, name))
    if there is not None or (kind == "Role" and built_in(name)):
        message = f"{name} is a {other}, and the binding asks for a {kind} of that name: it grants nothing"
        yield warn("RBA109", binding.manifest, message, "roleRef.kind", f"kind: {other}")
        return
    if not graph.closed(f"{kind}.{RBAC}"):
        return
    roles = [role.ref for role in graph.kind(f"{kind}.{RBAC}")]
    elsewhere = [ref for ref in roles if kind == "Role" and ref.name == name and ref.namespace and namespace]
    peers = [ref.name for ref in roles if kind == "ClusterRole" or ref.namespace == namespace]
    meant = get_close_matches(name, peers, 1, 0.85)
    beside = kind == "Role" and namespace and peers
    if not (elsewhere or meant or beside or f"{kind}.{RBAC}" in graph.said_closed):
        return  # it may come with what is installed otherwise
    where = f" in {namespace}" if kind == "Role" else ""
    hint = f"; the one in {elsewhere[0].namespace} does not count here" if elsewhere else ""
    message = f"there is no {kind} {name}{where}{hint}: the binding grants nothing"
    fix = f"did you mean {meant[0]}?" if meant else "correct the name"
    yield warn("RBA109", binding.manifest, message, "roleRef.name", fix)


def named_creates(graph: Graph) -> Iterator[Finding]:
    """RBA111: a right to create objects of certain names: a plain create has no name to compare."""
    for role in graph.kind(f"Role.{RBAC}", f"ClusterRole.{RBAC}"):
        for index, rule in rules_of(role):
            plain = [name for name in words(rule, "resources") if "/" not in name]
            if not items(rule.get("resourceNames")) or not plain:
                continue
            path, asked = f"rules[{index}].resourceNames", words(rule, "verbs")
            for verb in ("create", "deletecollection"):
                if verb in asked:
                    message = f"{verb} on {plain[0]} cannot be bound to names: a plain {verb} is refused"
                    fix = f"put {verb} into a rule of its own, without resourceNames"
                    yield warn("RBA111", role, message, path, fix)
                    break
            else:
                if "list" in asked and "get" not in asked:
                    message = f"list of {plain[0]} is granted only to a request that selects one of the names"
                    fix = "add get, or list without resourceNames"
                    yield note("RBA111", role, message, path, fix)


RULES = (
    wildcards,
    powers,
    cluster_admins,
    everybody,
    aggregated,
    tenants_write,
    tenant_roles,
    without_effect,
    default_accounts,
    dangling,
    named_creates,
)
TREE = ()
