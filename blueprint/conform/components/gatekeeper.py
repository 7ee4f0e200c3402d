"""Gatekeeper as live admission."""

from __future__ import annotations

from typing import Any

from blueprint.conform import modules
from blueprint.conform.certificates import issue
from blueprint.conform.component import Component, Ground, Shipped, hooks_by_url

Body = dict[str, Any]

SYSTEM = ("gatekeeper-system", "kube-node-lease", "kube-public", "kube-system", "kyverno")


def _hooks(ground: Ground) -> list[Body]:
    """The validating webhook, failing closed, never asked about the system's namespaces."""
    root = modules.folder("github.com/open-policy-agent/gatekeeper/v3", "gator")
    base = f"https://127.0.0.1:{ground.ports['webhook']}"
    shipped = list(modules.documents([root / "config/webhook/manifests.yaml"]))
    apart = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(SYSTEM)}
    found = []
    for body in hooks_by_url(shipped, base, ground.authority.bundle, prefix="gatekeeper-"):
        if body["kind"] == "ValidatingWebhookConfiguration":
            hooks = [hook for hook in body["webhooks"] if hook["name"] == "validation.gatekeeper.sh"]
            scope = {"failurePolicy": "Fail", "namespaceSelector": {"matchExpressions": [apart]}}
            found.append({**body, "webhooks": [{**hook, **scope} for hook in hooks]})
    return found


def _folders(ground: Ground) -> None:
    (ground.folder / "cache").mkdir(exist_ok=True)


GATEKEEPER = Component(
    name="gatekeeper",
    program="gatekeeper",
    user="system:serviceaccount:gatekeeper-system:gatekeeper-admin",
    ports=("webhook", "health", "metrics"),
    listens=("webhook",),
    namespaces=("gatekeeper-system",),
    crds=(Shipped("github.com/open-policy-agent/gatekeeper/v3", ("charts/gatekeeper/crds",), "gator"),),
    prepare=_folders,
    hooks=_hooks,
    environment=lambda _: {"POD_NAME": "gatekeeper-local", "POD_NAMESPACE": "gatekeeper-system"},
    ready=lambda g: f"http://127.0.0.1:{g.ports['health']}/readyz",
    arguments=lambda g: [
        f"--kubeconfig={g.kubeconfig}",
        *(f"--operation={name}" for name in ("webhook", "status", "generate")),  # without generate no constraint kind
        f"--api-cache-dir={g.folder / 'cache'}",
        "--host=127.0.0.1",
        f"--port={g.ports['webhook']}",
        f"--cert-dir={issue(g.authority, ('gatekeeper-webhook-service',))}",
        "--disable-cert-rotation",
        f"--health-addr=127.0.0.1:{g.ports['health']}",
        "--metrics-backend=prometheus",
        f"--prometheus-port={g.ports['metrics']}",
        "--debug-use-fake-pod",  # else its status wants a Pod that owns it
        "--shutdown-delay=0",
    ],
)
