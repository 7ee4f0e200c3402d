"""Tenants: namespaces, people and their rights, limits, and the network between namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from blueprint.finding import Source
from blueprint.render.names import name
from blueprint.render.plan import Item
from blueprint.render.policies import judges
from blueprint.render.pools import GPU, TEAM_LABEL, device_class, gpu_resource
from blueprint.render.queues import cluster_queue, team_queues
from blueprint.render.site import MANAGED_BY, Site
from blueprint.spec.cluster import NodePool
from blueprint.spec.team import Member, Quota, Team

APPLICATION = "access"

#: The Pod Security Standards that tenant pods must meet, pinned: `latest` would drift with the cluster.
POD_SECURITY = "restricted"

DNS = {
    "to": [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
        }
    ],
    "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
}

READ = ["get", "list", "watch"]
WRITE = ["create", "delete", "patch", "update"]


def rule(groups: list[str], resources: list[str], verbs: list[str], names: list[str] | None = None) -> dict[str, Any]:
    """One RBAC rule for the templates of Role and ClusterRole."""
    return {"groups": groups, "resources": resources, "verbs": verbs, "names": names}


#: What tenants may do in their own namespace. Nobody gets `resourceclaims/status`, DeviceClasses, ResourceSlices,
#: queues, flavors, secrets of others, `pods/exec` for viewers, or a right to bind or escalate.
VIEWER = [
    rule(
        [""], ["pods", "pods/log", "services", "configmaps", "events", "persistentvolumeclaims", "resourcequotas"], READ
    ),
    rule(["apps"], ["deployments", "replicasets"], READ),
    rule(["autoscaling"], ["horizontalpodautoscalers"], READ),
    rule(["batch"], ["jobs"], READ),
    rule(["kubeflow.org"], ["pytorchjobs"], READ),
    rule(["trainer.kubeflow.org"], ["trainjobs", "trainingruntimes"], READ),
    rule(["kueue.x-k8s.io"], ["localqueues", "workloads"], READ),
    rule(["resource.k8s.io"], ["resourceclaims", "resourceclaimtemplates"], READ),
    rule(["argoproj.io"], ["rollouts", "analysisruns", "analysistemplates"], READ),
    rule(["keda.sh"], ["scaledobjects"], READ),
    rule(["leaderworkerset.x-k8s.io"], ["leaderworkersets"], READ),
]
DEVELOPER = [
    rule(["batch"], ["jobs"], WRITE),
    rule(["kubeflow.org"], ["pytorchjobs"], WRITE),
    rule(["trainer.kubeflow.org"], ["trainjobs"], WRITE),
    rule(["resource.k8s.io"], ["resourceclaims", "resourceclaimtemplates"], ["create", "delete"]),
    rule([""], ["configmaps"], WRITE),
    rule([""], ["pods"], ["delete"]),
    rule([""], ["pods/exec", "pods/portforward"], ["create"]),
]
LEAD = [
    rule([""], ["persistentvolumeclaims"], WRITE),
    rule(["trainer.kubeflow.org"], ["trainingruntimes"], WRITE),
    # Promoting, aborting and retrying write the status (argo-rollouts v1.10.2 pkg/kubectl-argo-rollouts/cmd).
    rule(["argoproj.io"], ["rollouts/status"], ["patch"]),
]
ROLES = {"viewer": VIEWER, "developer": VIEWER + DEVELOPER, "lead": VIEWER + DEVELOPER + LEAD}

ADMIN = [
    rule(["kueue.x-k8s.io"], ["*"], [*READ, *WRITE]),
    rule(["resource.k8s.io"], ["deviceclasses", "resourceclaims", "resourceclaimtemplates"], [*READ, *WRITE]),
    rule(["resource.k8s.io"], ["resourceslices", "devicetaintrules"], READ),
    rule([""], ["namespaces", "nodes", "pods", "pods/log", "events", "resourcequotas", "limitranges"], READ),
]


def team_application(team: Team) -> str:
    """The Application that holds what a team always has."""
    return name("Application", "team", team.metadata.name)


def runs_application(team: Team) -> str:
    """The Application that holds a team's training runs."""
    return name("Application", "runs", team.metadata.name)


def data_application(team: Team) -> str:
    """The Application that holds a team's volume claims, which may stay unbound until their first pod comes."""
    return name("Application", "data", team.metadata.name)


def team_labels(team: Team) -> dict[str, str]:
    """Labels of everything that belongs to a team."""
    return {**MANAGED_BY, TEAM_LABEL: team.metadata.name}


def role_name(role: str) -> str:
    """The ClusterRole of a tenant role."""
    return name("ClusterRole", "platform-tenant", role)


def items(site: Site) -> Iterator[Item]:
    """Roles for all, and for each team its namespace with everything that must stand before a workload comes."""
    source = site.document.source
    for role, rules in ROLES.items():
        yield site.item(APPLICATION, "ClusterRole", source, name=role_name(role), labels=MANAGED_BY, rules=rules)
    yield site.item(APPLICATION, "ClusterRole", source, name="platform-admin", labels=MANAGED_BY, rules=ADMIN)
    if site.cluster.spec.platform_admins:
        yield site.item(
            APPLICATION,
            "ClusterRoleBinding",
            source,
            name="platform-admin",
            labels=MANAGED_BY,
            role_kind="ClusterRole",
            role="platform-admin",
            subjects=[subject("Group", group) for group in site.cluster.spec.platform_admins],
        )
    for document in site.platform.teams_on(site.name):
        yield from _team(site, document.model, document.source)


def subject(kind: str, who: str) -> dict[str, str]:
    """A subject of a binding that is not a service account."""
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": who}


def _team(site: Site, team: Team, source: Source) -> Iterator[Item]:
    application, labels, namespace = team_application(team), team_labels(team), team.namespace
    version = "v" + ".".join(site.cluster.spec.components.kubernetes.split(".")[:2])
    modes = ("enforce", "audit", "warn")
    security = {f"pod-security.kubernetes.io/{mode}": POD_SECURITY for mode in modes}
    versions = {f"pod-security.kubernetes.io/{mode}-version": version for mode in modes}
    yield site.item(
        application,
        "Namespace",
        source,
        name=namespace,
        labels={**labels, **security, **versions},
        annotations=None,
        needs=judges(site),
    )
    for role in ROLES:
        members = [_member(member) for member in team.spec.members if member.role == role]
        if members:
            yield site.item(
                application,
                "RoleBinding",
                source,
                name=name("RoleBinding", "tenant", role),
                namespace=namespace,
                labels=labels,
                role_kind="ClusterRole",
                role=role_name(role),
                subjects=members,
            )
    yield site.item(application, "ServiceAccount", source, name="training", namespace=namespace, labels=labels)
    yield site.item(
        application, "ResourceQuota", source, name="team", namespace=namespace, labels=labels, hard=_hard(site, team)
    )
    yield site.item(
        application,
        "LimitRange",
        source,
        name="defaults",
        namespace=namespace,
        labels=labels,
        request={"cpu": "250m", "memory": "512Mi"},
    )
    yield from _network(site, team, source)
    for queue in team_queues(site, team):
        yield site.item(
            application,
            "LocalQueue",
            source,
            name=name("LocalQueue", queue),
            namespace=namespace,
            labels=labels,
            cluster_queue=cluster_queue(team, queue),
        )


def _member(member: Member) -> dict[str, str]:
    return subject("Group", member.group) if member.group is not None else subject("User", member.user or "")


def _hard(site: Site, team: Team) -> dict[str, str]:
    """Limits of the namespace; GPUs and devices are bounded only where Kueue's own bound is finite, never below it."""
    hard = {
        "count/pods": str(team.spec.max_pods),
        "persistentvolumeclaims": "100",
        "requests.storage": team.spec.storage,
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }
    rows = [row for quotas in team_queues(site, team).values() for row in quotas]
    gpus = [quota for pool, quota in rows if gpu_resource(pool, quota.profile) == GPU]
    if gpus and (most := _bound(gpus)) is not None:
        hard[f"requests.{GPU}"] = str(most)
    return hard | _devices(site, rows)


def _devices(site: Site, rows: Sequence[tuple[NodePool, Quota]]) -> dict[str, str]:
    """Devices of each class that the claims of the namespace may ask for; none of a class without a quota.

    A claim by itself, whatever Kueue knows of it, is counted here (kubernetes v1.35.4
    pkg/quota/v1/evaluator/core/resource_claims.go).
    """
    classes = sorted(
        {device_class(pool) for pool in site.cluster.spec.node_pools if pool.devices == "dra" and pool.gpus}
    )
    bounds = {
        each: _bound([quota for pool, quota in rows if pool.devices == "dra" and device_class(pool) == each])
        for each in classes
    }
    return {
        f"{each}.deviceclass.resource.k8s.io/devices": str(most) for each, most in bounds.items() if most is not None
    }


def _bound(quotas: Sequence[Quota]) -> int | None:
    """The most that the quotas let a team have at once, None where it may borrow without bound."""
    return None if any(quota.borrow is None for quota in quotas) else sum(q.gpus + (q.borrow or 0) for q in quotas)


def _network(site: Site, team: Team, source: Source) -> Iterator[Item]:
    """Nothing in or out, then: names, the team's own pods among each other, and the scraper."""
    application, labels, namespace = team_application(team), team_labels(team), team.namespace
    own: list[dict[str, Any]] = [{"podSelector": {}}]
    scraper = [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": site.cluster.spec.monitoring.namespace}}}
    ]
    policies: list[tuple[str, list[Any] | None, list[Any] | None]] = [
        ("default-deny", [], []),
        ("allow-dns", None, [DNS]),
        ("allow-team", [{"from": own}], [{"to": own}]),
        ("allow-scrape", [{"from": scraper, "ports": [{"protocol": "TCP", "port": "metrics"}]}], None),
    ]
    for title, ingress, egress in policies:
        types = [kind for kind, rules in (("Ingress", ingress), ("Egress", egress)) if rules is not None]
        yield site.item(
            application,
            "NetworkPolicy",
            source,
            name=title,
            namespace=namespace,
            labels=labels,
            selector={},
            types=types,
            ingress=ingress or None,
            egress=egress or None,
        )
