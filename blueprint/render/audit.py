"""The API server's audit policy: a file on the control plane nodes, so no object, and Argo CD never sees it.

It answers who made, bound and released a claim, what Kueue decided, and who changed policies and rights. The first
rule that matches counts, and a parent never matches its subresource (k8s.io/apiserver v0.35.4 pkg/audit/policy).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from blueprint.render.emit import emit
from blueprint.render.site import Site

#: Below the folder of the cluster; docs/handbook.md says how it gets to the nodes.
PATH: Final = "node-files/audit-policy.yaml"

_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "update", "patch", "delete", "deletecollection"]
_CHANGE: Final = ["update", "patch"]


def files(site: Site) -> Iterator[tuple[str, str]]:
    """The one file: path below the cluster's folder, and text."""
    body = site.templates.render("AuditPolicy", source=site.document.source, rules=rules(site))
    yield PATH, emit(body)


def rules(site: Site) -> list[dict[str, Any]]:
    """The rules in their order; what a component brings is there only with the component."""
    components = site.cluster.spec.components
    claims = ["resourceclaims", "resourceclaimtemplates"]
    queues = ["workloads", "clusterqueues", "localqueues", "cohorts", "resourceflavors", "admissionchecks"]
    policies = {
        "admissionregistration.k8s.io": True,
        "rbac.authorization.k8s.io": True,
        "policies.kyverno.io": components.kyverno,
        "templates.gatekeeper.sh": components.gatekeeper,
        "constraints.gatekeeper.sh": components.gatekeeper,
        "externaldata.gatekeeper.sh": components.gatekeeper,
    }
    return [
        # 1. Noise: what nodes and controllers read, leases, endpoints, events, probes.
        _rule("None", verbs=_READ, groups=["system:nodes"]),
        _rule("None", users=["system:kube-proxy"], verbs=_READ),
        _rule(
            "None",
            resources={"coordination.k8s.io": ["leases"], "discovery.k8s.io": ["endpointslices"], "": ["endpoints"]},
        ),
        _rule("None", resources={"": ["events"], "events.k8s.io": ["events"]}),
        _rule("None", paths=["/healthz*", "/livez*", "/readyz*", "/version", "/openapi/*", "/metrics"]),
        # 2. Claims: made, changed, deleted.
        _rule("RequestResponse", verbs=_WRITE, resources={"resource.k8s.io": claims}),
        # 3. Claims: the scheduler binds in the status, controllers release in it, drivers report devices in it.
        _rule("RequestResponse", verbs=_CHANGE, resources={"resource.k8s.io": ["resourceclaims/status"]}),
        # 4. Which pod went to which node.
        _rule("Metadata", verbs=["create"], resources={"": ["pods/binding"]}),
        # 5. Devices: classes and taints in full; slices are large and written often.
        _rule("RequestResponse", verbs=_WRITE, resources={"resource.k8s.io": ["deviceclasses", "devicetaintrules"]}),
        _rule("Metadata", verbs=_WRITE, resources={"resource.k8s.io": ["resourceslices"]}),
        # 6. Kueue: quota reserved, admitted, evicted, preempted stand in a workload's status.
        _rule("RequestResponse", verbs=_CHANGE, resources={"kueue.x-k8s.io": ["workloads/status"]}),
        _rule("RequestResponse", verbs=_WRITE, resources={"kueue.x-k8s.io": queues}),
        # 7. Never a body of these.
        _rule(
            "Metadata",
            resources={
                "": ["secrets", "configmaps", "serviceaccounts/token"],
                "authentication.k8s.io": ["tokenreviews"],
            },
        ),
        # 8. Policies, webhooks and rights.
        _rule("RequestResponse", verbs=_WRITE, resources={group: [] for group, there in policies.items() if there}),
        # 9. All the rest: who, what and when.
        _rule("Metadata"),
    ]


def _rule(
    level: str,
    *,
    users: list[str] | None = None,
    groups: list[str] | None = None,
    verbs: list[str] | None = None,
    resources: dict[str, list[str]] | None = None,
    paths: list[str] | None = None,
) -> dict[str, Any]:
    """One rule for the template; resources by API group, an empty list stands for all of the group."""
    rows = [{"group": group, "resources": names or None} for group, names in sorted((resources or {}).items())]
    return {"level": level, "users": users, "groups": groups, "verbs": verbs, "resources": rows or None, "paths": paths}
