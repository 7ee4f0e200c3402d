"""Who may do what: roles and bindings of a tree, put together.

Source: k8s.io/kubernetes v1.35.4 pkg/registry/rbac/validation/rule.go, pkg/apis/rbac/v1/evaluation_helpers.go.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from blueprint.catalog.tables import table
from blueprint.check.graph import Graph
from blueprint.check.shapes import Body, items, known, mapping, maps, text, texts
from blueprint.finding import Ref
from blueprint.objects import Manifest

RBAC = "rbac.authorization.k8s.io"
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection", "*"})

Subject = tuple[str, str, str]
"""Kind (User, Group, ServiceAccount), namespace ("" but for service accounts) and name."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding with the role that it names, None where the tree does not hold it."""

    manifest: Manifest
    role: Manifest | None
    role_kind: str
    role_name: str
    subjects: tuple[Subject, ...]

    @property
    def everywhere(self) -> bool:
        """Whether it grants in every namespace."""
        return self.manifest.kind == "ClusterRoleBinding"


def rules_of(role: Manifest) -> list[tuple[int, Body]]:
    """The rules of a role with their positions."""
    return list(enumerate(maps(role.body.get("rules"))))


def words(rule: Body, field: str) -> list[str]:
    """The words of a field of a rule."""
    return texts(rule.get(field))


def allows(rule: Body, verb: str, group: str, resource: str) -> bool:
    """Whether a rule grants a verb on every object of a resource; a subresource is `pods/exec`."""
    verbs, groups, resources = words(rule, "verbs"), words(rule, "apiGroups"), words(rule, "resources")
    if "resourceNames" in rule and items(rule.get("resourceNames")):
        return False
    if not ({verb, "*"} & set(verbs) and {group, "*"} & set(groups)):
        return False
    name, slash, sub = resource.partition("/")
    return (
        bool({resource, "*"} & set(resources))
        or bool(slash and f"*/{sub}" in resources)
        or (resource == "*" and bool(resources) and name == "*")
    )


class Grants:
    """Every binding of a graph, and who of those that are bound is a tenant."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._writes: dict[tuple[int, bool], tuple[int, str, str] | None] = {}

    @cached_property
    def bindings(self) -> Sequence[Binding]:
        """Every binding, in the order of the tree."""
        return [
            self._binding(manifest)
            for manifest in self._graph.kind(f"RoleBinding.{RBAC}", f"ClusterRoleBinding.{RBAC}")
        ]

    def _binding(self, manifest: Manifest) -> Binding:
        ref = mapping(manifest.body.get("roleRef"))
        kind, name = text(ref.get("kind")), known(ref.get("name"))
        where = manifest.ref.namespace if kind == "Role" else ""
        subjects = tuple(_subject(row, manifest.ref.namespace) for row in maps(manifest.body.get("subjects")))
        return Binding(manifest, self._graph.get(Ref(RBAC, kind, where, name)), kind, name, subjects)

    @cached_property
    def tenant_namespaces(self) -> frozenset[str]:
        """Namespaces of people who submit work: those with a LocalQueue."""
        return frozenset(queue.ref.namespace for queue in self._graph.kind("LocalQueue.kueue.x-k8s.io"))

    @cached_property
    def tenants(self) -> Mapping[Subject, Binding]:
        """Those whom a RoleBinding lets into a tenant namespace, and the service accounts there, with that binding."""
        places: dict[Subject, set[str]] = defaultdict(set)
        found: dict[Subject, Binding] = {}
        for binding in self.bindings:
            if binding.everywhere or binding.manifest.ref.namespace not in self.tenant_namespaces:
                continue
            for subject in binding.subjects:
                at_home = subject[0] != "ServiceAccount" or subject[1] in self.tenant_namespaces
                if at_home and not subject[2].startswith("system:"):
                    found.setdefault(subject, binding)
                    places[subject].add(binding.manifest.ref.namespace)
        # Who is let into every one of several tenant namespaces looks after them.
        many = len(self.tenant_namespaces)
        return {subject: first for subject, first in found.items() if many < 2 or len(places[subject]) < many}

    def writes(self, role: Manifest, *, in_namespace: bool) -> tuple[int, str, str] | None:
        """The first rule of a role that lets its holders write what is protected: its position, what, and why.

        A rule about everything is left out: it is a matter of its own.
        """
        key = id(role), in_namespace
        if key not in self._writes:
            self._writes[key] = _first_write(role, in_namespace=in_namespace)
        return self._writes[key]

    def tenants_of(self, binding: Binding) -> list[Subject]:
        """Which of the subjects of a binding are tenants."""
        return [
            each
            for each in binding.subjects
            if each in self.tenants or self._lives_with_tenants(each) or _called_tenants(each)
        ]

    def _lives_with_tenants(self, subject: Subject) -> bool:
        return subject[0] == "ServiceAccount" and subject[1] in self.tenant_namespaces


def _called_tenants(subject: Subject) -> bool:
    """Whether a group is one of tenants by its own name (`oidc:tenants`); `tenant-admins` may be anybody."""
    return subject[0] == "Group" and re.search(r"(^|[^a-z0-9])tenants?$", subject[2]) is not None


def _subject(row: Body, namespace: str) -> Subject:
    kind, name = text(row.get("kind")), text(row.get("name"))
    if kind == "ServiceAccount":
        return kind, text(row.get("namespace")) or namespace, name
    if kind == "User" and name.startswith("system:serviceaccount:") and name.count(":") == 3:
        return "ServiceAccount", name.split(":")[2], name.split(":")[3]
    return kind, "", name


def shown(subject: Subject) -> str:
    """A subject for a person: `Group search-ai`, `ServiceAccount web/default`."""
    kind, namespace, name = subject
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def built_in(name: str) -> bool:
    """Whether the API server makes a ClusterRole itself."""
    return name.startswith("system:") or name in table("protected")["built_in"]


def _first_write(role: Manifest, *, in_namespace: bool) -> tuple[int, str, str] | None:
    for index, rule in rules_of(role):
        if "*" in words(rule, "resources") and "*" in words(rule, "apiGroups"):
            continue
        for what, why in protected(rule, in_namespace=in_namespace):
            return index, what, why
    return None


def protected(rule: Body, *, in_namespace: bool) -> Iterator[tuple[str, str]]:
    """The protected resources that a rule lets its subjects write, each with the reason; one is enough to tell."""
    verbs, groups = frozenset(words(rule, "verbs")), words(rule, "apiGroups")
    if not verbs & WRITES or (items(rule.get("resourceNames"))):
        return
    for row in _protected(tuple(groups), in_namespace):
        asked = row.get("verbs") or ("create", "update", "patch", "delete")
        name, group = row["resource"], row["group"]
        hit = name == "*" or any(allows(rule, verb, group, name) for verb in asked)
        if hit:
            yield f"{name}.{group}" if group else name, row["why"]


@lru_cache(maxsize=1 << 10)
def _protected(groups: tuple[str, ...], in_namespace: bool) -> tuple[Mapping[str, Any], ...]:
    """The rows about resources of some groups."""
    return tuple(
        row
        for row in table("protected")["resources"]
        if (row.get("namespaced") or not in_namespace)
        and (row["group"] in groups or ("*" in groups and row["resource"] != "*"))
    )
