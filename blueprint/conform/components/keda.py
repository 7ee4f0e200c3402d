"""KEDA: the operator that makes HorizontalPodAutoscalers, and the server of external metrics that they ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blueprint.conform.certificates import issue
from blueprint.conform.component import Component, Ground, Shipped

Body = dict[str, Any]

_SPACE = "keda"
_SERVICE = "keda-metrics-apiserver"


def _environment(_: Ground) -> Mapping[str, str]:
    """Without a namespace it looks for the file of a pod's account, and ends."""
    return {
        "KEDA_CLUSTER_OBJECT_NAMESPACE": _SPACE,
        "POD_NAMESPACE": _SPACE,
        "POD_NAME": "keda-local",
        "WATCH_NAMESPACE": "",
    }


OPERATOR = Component(
    name="keda",
    program="keda-operator",
    user="system:serviceaccount:keda:keda-operator",
    ports=("health", "metrics", "serve"),
    listens=("serve",),
    namespaces=(_SPACE,),
    crds=(Shipped("github.com/kedacore/keda/v2", ("config/crd/bases",)),),
    environment=_environment,
    ready=lambda g: f"http://127.0.0.1:{g.ports['health']}/readyz",
    arguments=lambda g: [
        f"--kubeconfig={g.kubeconfig}",
        f"--metrics-bind-address=127.0.0.1:{g.ports['metrics']}",
        f"--health-probe-bind-address=127.0.0.1:{g.ports['health']}",
        f"--metrics-service-bind-address=127.0.0.1:{g.ports['serve']}",
        f"--cert-dir={issue(g.authority, ('keda-operator.keda.svc',))}",
        "--enable-cert-rotation=false",
        "--enable-webhook-patching=false",
        "--enable-apiservice-patching=false",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
    ],
)


def _adapter(ground: Ground) -> list[str]:
    own = issue(ground.authority, (f"{_SERVICE}.{_SPACE}.svc",))
    return [
        *(f"--{name}={ground.kubeconfig}" for name in ("kubeconfig", "lister-kubeconfig")),
        *(f"--{name}={ground.kubeconfig}" for name in ("authentication-kubeconfig", "authorization-kubeconfig")),
        f"--secure-port={ground.ports['serve']}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={own}",
        f"--tls-cert-file={own / 'tls.crt'}",
        f"--tls-private-key-file={own / 'tls.key'}",
        f"--port={ground.ports['metrics']}",
        f"--metrics-service-address=127.0.0.1:{ground.others['keda']['serve']}",
    ]


ADAPTER = Component(
    name="keda-adapter",
    program="keda-adapter",
    user="system:serviceaccount:keda:keda-metrics-server",
    ports=("serve", "metrics"),
    listens=("serve",),
    environment=_environment,
    ready=lambda g: f"https://127.0.0.1:{g.ports['serve']}/readyz",
    arguments=_adapter,
    after=("keda",),
)


def external_metrics(ground: Ground) -> list[Body]:
    """How the API server finds the adapter: by a Service that is only a name, since none leads to a process."""
    meta = {"name": _SERVICE, "namespace": _SPACE}
    found = {"name": _SERVICE, "namespace": _SPACE, "port": ground.ports["serve"]}
    spec = {
        "group": "external.metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "caBundle": ground.authority.bundle,
        "service": found,
    }
    name = {"name": "v1beta1.external.metrics.k8s.io"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"type": "ExternalName", "externalName": "127.0.0.1"},
        },
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": name, "spec": spec},
    ]
