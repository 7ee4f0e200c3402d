"""Short ways to write objects and plans in tests."""

from __future__ import annotations

from typing import Any

from blueprint.finding import Ref, Source
from blueprint.objects import Manifest
from blueprint.render.plan import Item, Need

API = {
    "Namespace": "v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    "Service": "v1",
    "ServiceAccount": "v1",
    "PersistentVolumeClaim": "v1",
    "Deployment": "apps/v1",
    "CronJob": "batch/v1",
    "Job": "batch/v1",
    "StorageClass": "storage.k8s.io/v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Rollout": "argoproj.io/v1alpha1",
    "AnalysisTemplate": "argoproj.io/v1alpha1",
    "Application": "argoproj.io/v1alpha1",
    "ScaledObject": "keda.sh/v1alpha1",
    "PyTorchJob": "kubeflow.org/v1",
    "ClusterQueue": "kueue.x-k8s.io/v1beta2",
    "LocalQueue": "kueue.x-k8s.io/v1beta2",
    "ResourceFlavor": "kueue.x-k8s.io/v1beta2",
    "ConstraintTemplate": "templates.gatekeeper.sh/v1",
    "K8sRequireTeam": "constraints.gatekeeper.sh/v1beta1",
    "VirtualService": "networking.istio.io/v1",
    "DestinationRule": "networking.istio.io/v1",
    "Widget": "example.com/v1",
}


def obj(kind: str, name: str, namespace: str = "", *, line: int = 1, **fields: Any) -> Manifest:
    """An object whose source is `<name>.yaml:<line>`; `labels` and `annotations` go into the metadata."""
    meta: dict[str, Any] = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    for key in ("labels", "annotations"):
        if key in fields:
            meta[key] = fields.pop(key)
    body = {"apiVersion": API[kind], "kind": kind, "metadata": meta, **fields}
    return Manifest(body, Source(f"{name}.yaml", line))


def ref(kind: str, name: str, namespace: str = "") -> Ref:
    """The identity of such an object."""
    return obj(kind, name, namespace).ref


def item(application: str, manifest: Manifest, *needs: Need) -> Item:
    """An object in an Application."""
    return Item(manifest, application, needs)


def pod(*, claim: str = "", account: str = "") -> dict[str, Any]:
    """The spec of something that runs pods."""
    spec: dict[str, Any] = {"containers": [{"name": "c"}]}
    if claim:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    if account:
        spec["serviceAccountName"] = account
    return {"template": {"spec": spec}}
