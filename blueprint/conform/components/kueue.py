"""Kueue's full manager with its webhooks, and the operator of training jobs, whose pods it lets in."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml_rs

from blueprint.conform import modules
from blueprint.conform.certificates import authority, issue
from blueprint.conform.component import Component, Ground, Shipped, hooks_by_url
from blueprint.conform.components.core import written
from blueprint.conform.isolate import private
from blueprint.errors import EnvironmentLacks

Body = dict[str, Any]

#: kueue v0.17.0 cmd/kueue/main.go: opened whatever the configuration says, unless it manages certificates itself.
_METRICS = Path("/etc/kueue/metrics/certs")
#: training-operator v1.9.3 pkg/cert/cert.go: no flag changes it.
_SERVING = Path("/tmp/k8s-webhook-server/serving-certs")  # noqa: S108 - the program's own choice
_CONVERTED = frozenset({"localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters"})
_WATCHED = (
    *("clusterqueue", "cohort", "localqueue", "resourceflavor", "workload", "job", "pod", "deployment"),
    *("pytorchjob", "trainjob", "jobset", "leaderworkerset"),
)


def _configuration(ground: Ground) -> Path:
    """The configuration of the tree, with ports and certificates of this machine; all else as it is rendered."""
    rendered: Any = {}
    for body in ground.of_kind("ConfigMap", "kueue-manager-config"):
        rendered = yaml_rs.loads(body["data"]["controller_manager_config.yaml"], parse_datetime=False)
    here = {
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ground.ports['health']}"},
        "metrics": {**rendered.get("metrics", {}), "bindAddress": "0"},
        "webhook": {
            "host": "127.0.0.1",
            "port": ground.ports["webhook"],
            "certDir": str(issue(ground.authority, ("kueue-webhook-service",))),
        },
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 200, "burst": 400},
        "featureGates": {**rendered.get("featureGates", {}), "VisibilityOnDemand": False},
    }
    base = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": "kueue-system"}
    return written(ground.folder, "config.yaml", {**base, **rendered, **here})


def _kueue_files(ground: Ground) -> None:
    """Put a certificate where Kueue looks for that of its metrics."""
    source = issue(ground.authority, ("kueue-metrics",))
    _provide(ground, _METRICS, {name: (source / name).read_bytes() for name in ("tls.crt", "tls.key")})


def _provide(ground: Ground, folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files to a path that a program insists on: in our own mount namespace, or only where we may."""
    try:
        if ground.isolated:
            root = Path("/", folder.parts[1])
            private(folder if root == Path("/tmp") else root)  # noqa: S108
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise EnvironmentLacks(f"{folder} cannot be written: {error}", hint="run it as root, in namespaces") from None


def _kueue_hooks(ground: Ground) -> list[Body]:
    """Its webhooks, in the scope that its own Kustomize root gives them: pods of the system are not its business."""
    root = modules.folder("sigs.k8s.io/kueue", "kueue") / "config/components/webhook"
    base = f"https://127.0.0.1:{ground.ports['webhook']}"
    found = hooks_by_url(
        list(modules.documents([root / "manifests.yaml"])), base, ground.authority.bundle, prefix="kueue-"
    )
    apart = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kueue-system"]}
    for body in found:
        body["webhooks"] = [hook for hook in body["webhooks"] if hook["name"].split(".")[0][1:] in _WATCHED]
        for hook in body["webhooks"]:
            if hook["name"].split(".")[0][1:] in ("pod", "deployment"):
                hook["namespaceSelector"] = {"matchExpressions": [apart]}
    return found


def _convert(ground: Ground, crd: Body) -> Body:
    """Kinds with two versions are converted by the manager, found by URL."""
    if crd["spec"]["group"] != "kueue.x-k8s.io" or crd["spec"]["names"]["plural"] not in _CONVERTED:
        return crd
    client = {"url": f"https://127.0.0.1:{ground.ports['webhook']}/convert", "caBundle": ground.authority.bundle}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    return {**crd, "spec": {**crd["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}}}


KUEUE = Component(
    name="kueue",
    program="kueue",
    user="system:serviceaccount:kueue-system:kueue-controller-manager",
    ports=("health", "webhook"),
    listens=("webhook",),
    namespaces=("kueue-system",),
    crds=(
        Shipped("sigs.k8s.io/kueue", ("config/components/crd/bases",), "kueue"),
        Shipped("k8s.io/autoscaler/cluster-autoscaler/apis", ("config/crd",), "kueue"),
        # It ends where its configuration names a framework whose kinds are not served.
        Shipped("github.com/kubeflow/trainer/v2", ("manifests/base/crds",)),
        Shipped("sigs.k8s.io/jobset", ("config/components/crd/bases",)),
        Shipped("sigs.k8s.io/lws", ("config/crd/bases",)),
    ),
    convert=_convert,
    prepare=_kueue_files,
    hooks=_kueue_hooks,
    ready=lambda g: f"http://127.0.0.1:{g.ports['health']}/readyz",
    arguments=lambda g: [f"--config={_configuration(g)}"],
)


def _training_files(ground: Ground) -> None:
    """Its rotator takes our certificates only if the authority bears its name; then Secret and files must agree."""
    made = authority(ground.folder / "pki", ("training-operator-ca",))
    server = issue(made, ("training-operator.kubeflow.svc",))
    files = {name: (server / name).read_bytes() for name in ("tls.crt", "tls.key", "ca.crt")}
    files["ca.key"] = (made.folder / "ca.key").read_bytes()
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    meta = {"name": "training-operator-webhook-cert", "namespace": "kubeflow"}
    ground.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
    _provide(ground, _SERVING, files)


def _training_hooks(ground: Ground) -> list[Body]:
    root = modules.folder("github.com/kubeflow/training-operator", "training-operator") / "manifests/base/webhook"
    bundle = base64.b64encode((ground.folder / "pki" / "ca.crt").read_bytes()).decode()
    base = f"https://127.0.0.1:{ground.ports['webhook']}"
    [body] = hooks_by_url(list(modules.documents([root / "manifests.yaml"])), base, bundle)
    return [{**body, "metadata": {"name": "validator.training-operator.kubeflow.org"}}]


TRAINING = Component(
    name="training-operator",
    program="training-operator",
    user="system:serviceaccount:kubeflow:training-operator",
    ports=("health", "webhook"),
    listens=("webhook",),
    namespaces=("kubeflow",),
    crds=(
        Shipped("github.com/kubeflow/training-operator", ("manifests/base/crds",), "training-operator", "PyTorchJob"),
    ),
    prepare=_training_files,
    hooks=_training_hooks,
    ready=lambda g: f"http://127.0.0.1:{g.ports['health']}/readyz",
    arguments=lambda g: [
        f"--kubeconfig={g.kubeconfig}",
        f"--health-probe-bind-address=127.0.0.1:{g.ports['health']}",
        "--metrics-bind-address=0",
        f"--webhook-server-port={g.ports['webhook']}",
        "--zap-devel=false",
        "--enable-scheme=pytorchjob",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
    ],
)
