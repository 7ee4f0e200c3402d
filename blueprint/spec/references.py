"""What specs say of each other: names that must exist, and names that may exist once."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from blueprint.finding import Finding, Severity, Source
from blueprint.spec.base import Model
from blueprint.spec.inference import InferenceService
from blueprint.spec.machines import machines
from blueprint.spec.nearest import nearest
from blueprint.spec.plain import plain
from blueprint.spec.platform import Document, Platform
from blueprint.spec.services import services
from blueprint.spec.shared import shared
from blueprint.spec.together import Declaration, Missing, missing
from blueprint.spec.training import TrainingJob

# Namespaces of Kubernetes itself (`kube-` is reserved: kubernetes.io/docs/concepts/overview/working-with-objects/
# namespaces) and those that the charts of the components install into by default.
_RESERVED_PREFIX: Final = "kube-"
_RESERVED: Final = frozenset(
    {
        "argo-rollouts",
        "argocd",
        "cert-manager",
        "default",
        "gatekeeper-system",
        "gpu-operator",
        "istio-ingress",
        "istio-system",
        "jobset-system",
        "keda",
        "kubeflow",
        "kubeflow-system",
        "kueue-system",
        "kyverno",
        "lws-system",
        "monitoring",
        "nvidia-dra-driver-gpu",
        "velero",
    }
)


@dataclass(frozen=True, slots=True)
class Declared:
    """Every kind and name that some document bears, also one with mistakes, and where.

    `unread` are the texts of files of which some document is not known by kind and name: a name that one of them may
    declare is not called missing. None stands for a file that could not be read at all. `misnamed` are kinds of which
    some document has a name that is none: corrected, it may be the one that is missing.
    """

    places: Mapping[tuple[str, str], Source]
    unread: tuple[bytes | None, ...] = ()
    misnamed: frozenset[str] = frozenset()

    def names(self, kind: str) -> list[str]:
        """The names of a kind, sorted."""
        return sorted(name for of, name in self.places if of == kind)

    def lacks(self, kind: str, name: str) -> bool:
        """Whether nothing of that kind and name exists, for certain."""
        if (kind, name) in self.places or kind in self.misnamed:
            return False
        here = re.compile(rb"name\W{1,40}" + re.escape(name.encode()) + rb"(?![\w-])")
        return not any(text is None or here.search(text) for text in self.unread)


def check(platform: Platform, declared: Declared) -> Iterator[Finding]:
    """Judge the platform as a whole: of documents with mistakes of their own only what the mistakes do not touch."""
    return chain(
        _exist(platform, declared),
        _once(platform),
        _namespaces(platform),
        _one_delivery(platform, declared),
        _promotion(platform, declared),
        machines(platform),
        shared(platform),
        services(platform),
        plain(platform),
    )


def _exist(platform: Platform, declared: Declared) -> Iterator[Finding]:
    """SPC202 and SPC203: clusters and teams that specs name."""
    wanted = list(_named(platform))
    named = {(kind, name) for _, kind, name, _, _ in wanted}
    lacking: list[Missing] = []
    for code, kind, name, by, path in wanted:
        if by.knows(path) and declared.lacks(kind, name):
            others = declared.names(kind)
            near = nearest(name, others)
            fix = f"write {near}" if near else _there(others)
            message = f"there is no {kind} {name}" + (f"; did you mean {near}?" if near else "")
            finding = Finding(code, message, by.locate(path), path=path, fix=fix)
            lacking.append(Missing(name, kind, tuple(others), finding))
    unused = {key: Declaration(at, "metadata.name") for key, at in declared.places.items() if key not in named}
    yield from missing(lacking, unused)
    for service in platform.services:
        for cluster in service.model.spec.replicas_on:
            path = f"spec.replicasOn.{cluster}"
            if cluster not in service.model.spec.clusters and service.knows("spec.clusters", path):
                message = f"{service.model.metadata.name} does not run on {cluster}"
                fix = "add it to clusters, or delete this"
                yield Finding("SPC202", message, service.locate(path), path=path, fix=fix)


def _there(names: list[str]) -> str:
    """The names that could be meant, as a hint."""
    return f"there {'is' if len(names) == 1 else 'are'} {', '.join(names)}" if names else ""


def _named(platform: Platform) -> Iterator[tuple[str, str, str, Document[Model], str]]:
    """Every name of a cluster or team in some spec: the code of its absence, the kind, the name, and where."""
    for team in platform.teams:
        for index, quota in enumerate(team.model.spec.quotas):
            yield "SPC202", "Cluster", quota.cluster, team, f"spec.quotas[{index}].cluster"
    runs: list[Document[TrainingJob] | Document[InferenceService]] = [*platform.training_jobs, *platform.services]
    for work in (*runs, *platform.policies):
        for index, cluster in enumerate(work.model.spec.clusters):
            yield "SPC202", "Cluster", cluster, work, f"spec.clusters[{index}]"
    for run in runs:
        yield "SPC203", "Team", run.model.spec.team, run, "spec.team"
    for delivery in platform.deliveries:
        for stage, clusters in enumerate(delivery.model.spec.promotion):
            for index, cluster in enumerate(clusters):
                yield "SPC202", "Cluster", cluster, delivery, f"spec.promotion[{stage}][{index}]"


def _once(platform: Platform) -> Iterator[Finding]:
    """SPC212: lists whose entries are told apart by a key."""
    for site in platform.clusters:
        yield from _repeated(site, "spec.platformAdmins", site.model.spec.platform_admins)
        for index, pool in enumerate(site.model.spec.node_pools):
            # A node bears one taint of a key and effect.
            taints = [(taint.key, taint.effect) for taint in pool.taints]
            yield from _repeated(site, f"spec.nodePools[{index}].taints", taints)
    for team in platform.teams:
        keys = [(q.cluster, q.pool, q.profile) for q in team.model.spec.quotas]
        yield from _repeated(team, "spec.quotas", keys)
        members = [(member.group, member.user, member.role) for member in team.model.spec.members]
        yield from _repeated(team, "spec.members", members)
    runs: list[Document[TrainingJob] | Document[InferenceService]] = [*platform.training_jobs, *platform.services]
    for run in (*runs, *platform.policies):
        yield from _repeated(run, "spec.clusters", run.model.spec.clusters)
    for job in platform.training_jobs:
        yield from _repeated(job, "spec.datasets", [data.name for data in job.model.spec.datasets])
        yield from _repeated(job, "spec.datasets", [(data.path or "").rstrip("/") for data in job.model.spec.datasets])
    for service in platform.services:
        yield from _repeated(service, "spec.adapters", [adapter.name for adapter in service.model.spec.adapters])
    for policy in platform.policies:
        yield from _repeated(policy, "spec.variables", [variable.name for variable in policy.model.spec.variables])
    for delivery in platform.deliveries:
        seen = set[str]()
        for stage, clusters in enumerate(delivery.model.spec.promotion):
            for index, cluster in enumerate(clusters):
                if cluster in seen and delivery.knows(f"spec.promotion[{stage}][{index}]"):
                    yield _second(delivery, f"spec.promotion[{stage}][{index}]", cluster)
                seen.add(cluster)


def _repeated(document: Document[Model], path: str, keys: Iterable[Hashable]) -> Iterator[Finding]:
    seen = set[Hashable]()
    for index, key in enumerate(keys):
        if not document.knows(f"{path}[{index}]"):
            continue
        if key in seen:
            parts = key if isinstance(key, tuple) else (key,)
            yield _second(document, f"{path}[{index}]", " ".join(str(part) for part in parts if part is not None))
        seen.add(key)


def _second(document: Document[Model], path: str, what: str) -> Finding:
    message = f"{what} stands here a second time"
    return Finding("SPC212", message, document.locate(path), path=path, fix="keep one of the two")


def _namespaces(platform: Platform) -> Iterator[Finding]:
    """SPC207 and SPC208: a team's namespace is its own, and nobody else's."""
    system = _RESERVED | {delivery.model.spec.namespace for delivery in platform.deliveries}
    for cluster in platform.clusters:
        system |= {cluster.model.spec.monitoring.namespace}
        gateway = cluster.model.spec.gateway
        system |= {gateway.namespace} if gateway and cluster.knows("spec.gateway.name") else set()
    owners: dict[str, str] = {}
    for team in platform.teams:
        name, namespace = team.model.metadata.name, team.model.namespace
        if not team.knows("metadata.name", "spec.namespace"):
            continue
        path = "spec.namespace" if team.model.spec.namespace else "metadata.name"
        owner = owners.setdefault(namespace, name)
        if owner != name:
            message = f"namespace {namespace} already belongs to team {owner}"
            yield Finding("SPC207", message, team.locate(path), path=path, fix="give each team its own namespace")
        if namespace in system or namespace.startswith(_RESERVED_PREFIX):
            message = f"namespace {namespace} is reserved for the platform"
            yield Finding("SPC208", message, team.locate(path), path=path, fix="choose another spec.namespace")


def _one_delivery(platform: Platform, declared: Declared) -> Iterator[Finding]:
    """SPC209: a platform is clusters and the one way in which they get their tree."""
    if not declared.unread:
        for kind, folder in (("Cluster", "clusters"), ("Delivery", "argocd")):
            if not declared.names(kind):
                yield Finding("SPC209", f"the platform has no {kind}", Source(folder), fix=f"write one in {folder}/")
    for extra in platform.deliveries[1:]:
        first = platform.deliveries[0]
        message = f"a second Delivery; {first.model.metadata.name} in {first.source} is one already"
        yield Finding("SPC209", message, extra.source, path="kind", fix="keep one of the two")


def _promotion(platform: Platform, declared: Declared) -> Iterator[Finding]:
    """SPC213: with an order of promotion, a cluster outside of it is never reached."""
    for delivery in platform.deliveries:
        if not delivery.knows("spec.promotion"):
            continue
        order = set(chain.from_iterable(delivery.model.spec.promotion))
        left_out = [name for name in declared.names("Cluster") if name not in order]
        # A step that names a cluster which is not there was meant for one that is.
        astray = any(declared.lacks("Cluster", name) for name in order) or "Cluster" in declared.misnamed
        if order and left_out and not astray:
            path = "spec.promotion"
            message = f"no step promotes to {', '.join(left_out)}"
            at = delivery.locate(path)
            yield Finding("SPC213", message, at, Severity.WARNING, path=path, fix="add a step, or leave promotion out")
