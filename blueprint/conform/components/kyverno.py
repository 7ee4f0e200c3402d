"""Kyverno as live admission, and what writes its reports; it makes its certificates and webhooks by itself."""

from __future__ import annotations

from typing import Any

from blueprint.conform.component import Component, Ground, Shipped

Body = dict[str, Any]

_SPACE = "kyverno"
_OTHERS = ("background", "reports")
_CA, _PAIR = "kyverno-svc.kyverno.svc.kyverno-tls-ca", "kyverno-svc.kyverno.svc.kyverno-tls-pair"


def _objects(ground: Ground) -> None:
    """The configuration and the accounts that its chart brings."""
    for name in ("kyverno-admission-controller", "kyverno-background-controller", "kyverno-reports-controller"):
        meta = {"name": name, "namespace": _SPACE}
        ground.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    data = {"resourceFilters": "[*/*,kube-system,*][*/*,kyverno,*]", "excludeGroups": "system:nodes"}
    selector = (
        '{"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", '
    )
    selector += '"values": ["kube-system", "kyverno", "gatekeeper-system", "kube-node-lease", "kube-public"]}]}}'
    for name, content in (("kyverno", {**data, "webhooks": selector}), ("kyverno-metrics", {"namespaces": "{}"})):
        meta = {"name": name, "namespace": _SPACE}
        ground.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": content})


def _environment(controller: str) -> dict[str, str]:
    return {
        "KYVERNO_NAMESPACE": _SPACE,
        "KYVERNO_SERVICEACCOUNT_NAME": f"kyverno-{controller}-controller",
        "KYVERNO_ROLE_NAME": f"kyverno:{controller}-controller",
        "KYVERNO_DEPLOYMENT": "none",
        "KYVERNO_POD_NAME": "none",
        "POD_NAME": "none",
        "KYVERNO_SVC": "kyverno-svc",
        "INIT_CONFIG": "kyverno",
        "METRICS_CONFIG": "kyverno-metrics",
    }


KYVERNO = Component(
    name="kyverno",
    program="kyverno-admission",
    user="system:serviceaccount:kyverno:kyverno-admission-controller",
    ports=("serve", "metrics"),
    listens=("serve",),
    namespaces=(_SPACE,),
    crds=(
        Shipped(
            "github.com/kyverno/kyverno",
            tuple(f"config/crds/{name}" for name in ("kyverno", "policies.kyverno.io", "policyreport", "reports")),
            "kyverno",
        ),
    ),
    prepare=_objects,
    environment=lambda _: _environment("admission"),
    ready=lambda g: f"https://127.0.0.1:{g.ports['serve']}/health/readiness",
    arguments=lambda g: [
        f"--kubeconfig={g.kubeconfig}",
        f"--serverIP=127.0.0.1:{g.ports['serve']}",
        "--webhookServerHost=127.0.0.1",
        f"--webhookServerPort={g.ports['serve']}",
        "--servicePort=443",
        *(f"--{what}ServiceAccountName=system:serviceaccount:kyverno:kyverno-{what}-controller" for what in _OTHERS),
        f"--caSecretName={_CA}",
        f"--tlsSecretName={_PAIR}",
        "--disableMetrics",
        f"--metricsPort={g.ports['metrics']}",
        "--controllerRuntimeMetricsAddress=0",
        "--enableTuf=false",
    ],
)

#: It scans every half minute instead of every hour; what it writes are PolicyReports.
REPORTS = Component(
    name="kyverno-reports",
    program="kyverno-reports",
    user="system:serviceaccount:kyverno:kyverno-reports-controller",
    ports=("metrics",),
    after=("kyverno",),
    environment=lambda _: _environment("reports"),
    arguments=lambda g: [
        f"--kubeconfig={g.kubeconfig}",
        "--backgroundScanInterval=30s",
        "--disableMetrics",
        f"--metricsPort={g.ports['metrics']}",
        "--enableTuf=false",
    ],
)
