"""Who holds strong rights in the head: what a service account, or a role that is bound, lets its holder do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from blueprint.catalog.tables import table
from blueprint.check.grants import allows, protected, rules_of, words
from blueprint.check.pods import PodTemplate
from blueprint.check.shapes import Body, mapping, maps, text
from blueprint.objects import Manifest
from blueprint.review.model import Pair

if TYPE_CHECKING:
    from blueprint.review.around import Around

SOURCE = "kubernetes.io docs/concepts/security/rbac-good-practices"
_READS = ("get", "list", "watch")
_KNOWN: Mapping[str, str] = {
    "cluster-admin": "may do everything",
    "admin": "reads secrets and gives rights to others",
    "edit": "reads secrets and runs pods as any account",
}
"""Roles that the API server makes (k8s.io/kubernetes v1.35.4 plugin/pkg/auth/authorizer/rbac/bootstrappolicy)."""


def of_pod(pod: PodTemplate, pair: Pair, around: Around) -> str:
    """The account of a pod with what makes it strong, "" where nothing does, or its token is not in the pod."""
    namespace = pair.ref.namespace or "default"
    name = text(pod.spec.get("serviceAccountName")) or text(pod.spec.get("serviceAccount")) or "default"
    mounts = pod.spec.get("automountServiceAccountToken")
    if mounts is False or (mounts is None and around.withholds_token(pair.cluster, namespace, name)):
        return ""
    told = of_account(pair.cluster, namespace, name, around)
    return f"service account {name}, which {told}" if told else ""


def of_account(cluster: str, namespace: str, name: str, around: Around) -> str:
    """What a service account may do that few may, "" for nothing."""
    for binding in around.bindings(cluster):
        if any(_is(subject, binding, namespace, name) for subject in maps(binding.body.get("subjects"))):
            told = of_binding(binding, cluster, around)
            if told and (binding.kind == "ClusterRoleBinding" or binding.ref.namespace):
                return told
    return ""


def _is(subject: Body, binding: Manifest, namespace: str, name: str) -> bool:
    kind, called = text(subject.get("kind")), text(subject.get("name"))
    if kind == "ServiceAccount":
        return called == name and (text(subject.get("namespace")) or binding.ref.namespace) == namespace
    if kind == "User":
        return called == f"system:serviceaccount:{namespace}:{name}"
    return kind == "Group" and called in (
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
        "system:authenticated",
    )


def of_binding(binding: Manifest, cluster: str, around: Around) -> str:
    """What a binding lets its subjects do that few may, "" for nothing, or for a role that is not in the tree."""
    role = mapping(binding.body.get("roleRef"))
    kind, name = text(role.get("kind")), text(role.get("name"))
    everywhere = binding.kind == "ClusterRoleBinding"
    where = "in every namespace" if everywhere else f"in {binding.ref.namespace}"
    if kind == "ClusterRole" and name in _KNOWN:
        return f"{_KNOWN[name]} {where}"
    found = around.role(cluster, kind, binding.ref.namespace if kind == "Role" else "", name)
    return next(_strong(found, where, everywhere=everywhere), "") if found else ""


def _strong(role: Manifest, where: str, *, everywhere: bool) -> Iterator[str]:
    """Sentences about a role, the strongest first."""
    rules = [rule for _, rule in rules_of(role)]
    if any("*" in words(rule, "resources") and {"*", ""} & set(words(rule, "apiGroups")) for rule in rules):
        every = any("*" in words(rule, "verbs") for rule in rules if "*" in words(rule, "resources"))
        yield f"may {'do' if every else 'read'} everything {where}"
    if any(allows(rule, verb, "", "secrets") for rule in rules for verb in _READS):
        yield f"reads secrets {where}"
    for row in table("protected")["powers"]:
        names = ("roles", "clusterroles") if row["resource"] == "*" else (row["resource"],)
        if name := next((n for n in names for rule in rules if allows(rule, row["verb"], row["group"], n)), ""):
            yield f"may {row['verb']} {name}: {row['why']}"
    if any(allows(rule, "create", "", "pods/exec") for rule in rules):
        yield f"runs commands in pods {where}"
    for rule in rules:
        for what, why in protected(rule, in_namespace=not everywhere):
            yield f"may write {what}: {why}"
