"""Health checks of Argo CD, the components, the metrics of the platform, and what every table owes its readers."""

from pathlib import Path

import pytest

import blueprint.catalog
from blueprint.catalog.argocd import checked_kinds, health_check, is_excluded, sync_rank
from blueprint.catalog.components import Support, component, components, oversized_crds, served_versions
from blueprint.catalog.metrics import family_of, platform_metric
from blueprint.catalog.tables import table

DATA = Path(blueprint.catalog.__file__).parent / "data"
TABLES = (
    "argocd",
    "component_apis",
    "components",
    "gpus",
    "metrics",
    "models",
    "vllm_flags",
    "vllm_metrics",
    "vllm_renames",
)


@pytest.mark.parametrize(
    ("group", "kind", "by"),
    [
        ("apps", "Deployment", "go"),
        ("batch", "Job", "go"),
        ("batch", "CronJob", "lua"),
        ("", "PersistentVolumeClaim", "go"),
        ("policy", "PodDisruptionBudget", "lua"),
        ("argoproj.io", "Rollout", "lua"),
        ("keda.sh", "ScaledObject", "lua"),
        ("policies.kyverno.io", "ValidatingPolicy", "lua"),
        ("velero.io", "Backup", "lua"),
        ("snapshot.storage.k8s.io", "VolumeSnapshot", "lua"),
        ("apiextensions.k8s.io", "CustomResourceDefinition", "lua"),
        ("gateway.networking.k8s.io", "HTTPRoute", "lua"),
        ("s3.aws.upbound.io", "Bucket", "lua"),  # by the wildcard of *.upbound.io
    ],
)
def test_kinds_with_a_health_check(group: str, kind: str, by: str) -> None:
    found = health_check(group, kind)
    assert found is not None and found.by == by
    assert "Healthy" in found.statuses


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("kueue.x-k8s.io", "ClusterQueue"),
        ("kueue.x-k8s.io", "Workload"),
        ("kubeflow.org", "PyTorchJob"),
        ("trainer.kubeflow.org", "TrainJob"),
        ("jobset.x-k8s.io", "JobSet"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        ("templates.gatekeeper.sh", "ConstraintTemplate"),
        ("argoproj.io", "Application"),
        ("monitoring.coreos.com", "ServiceMonitor"),
        ("upbound.io", "Bucket"),  # near the wildcard *.upbound.io
        ("", "Deployment"),
    ],
)
def test_kinds_without_a_health_check(group: str, kind: str) -> None:
    assert health_check(group, kind) is None
    assert (group, kind) not in checked_kinds()


def test_which_checks_can_hold_a_wave() -> None:
    def suspends(group: str, kind: str) -> bool:
        found = health_check(group, kind)
        assert found is not None
        return found.can_suspend

    assert suspends("argoproj.io", "Rollout") and suspends("batch", "Job") and suspends("keda.sh", "ScaledObject")
    assert not suspends("batch", "CronJob")  # a suspended one counts as healthy
    rollout = health_check("argoproj.io", "Rollout")
    assert rollout is not None and rollout.computed


def test_the_order_within_a_wave() -> None:
    ranks = [sync_rank(k) for k in ("Namespace", "ConfigMap", "CustomResourceDefinition", "Deployment", "APIService")]
    assert ranks == sorted(ranks) and max(ranks) < 0
    assert sync_rank("ClusterQueue") == sync_rank("ValidatingWebhookConfiguration") == 0


def test_exclusions() -> None:
    assert is_excluded("", "Endpoints") and is_excluded("coordination.k8s.io", "Lease")
    assert not is_excluded("", "Service") and not is_excluded("batch", "Lease")


@pytest.mark.parametrize(
    ("name", "kubernetes", "support"),
    [
        ("argo-cd", "1.35", Support.TESTED),
        ("argo-cd", "v1.35.4", Support.TESTED),
        ("argo-cd", "1.30", Support.UNKNOWN),  # they state no minimum
        ("kueue", "1.35", Support.ALLOWED),
        ("kueue", "1.28", Support.TOO_OLD),
        ("velero", "1.35", Support.TESTED),
        ("velero", "1.36", Support.ALLOWED),
        ("leaderworkerset", "1.35", Support.UNKNOWN),
        ("kueue", "newest", Support.UNKNOWN),
    ],
)
def test_what_makers_say_of_kubernetes_versions(name: str, kubernetes: str, support: Support) -> None:
    found = component(name)
    assert found is not None and found.support(kubernetes) is support


def test_served_versions() -> None:
    assert served_versions("kueue.x-k8s.io", "ClusterQueue") == ("v1beta2", "v1beta1")
    assert served_versions("keda.sh", "ScaledObject") == ("v1alpha1",)
    assert served_versions("apps", "Deployment") is None
    assert component("no-such-thing") is None


def test_oversized_crds() -> None:
    big = oversized_crds()
    assert {"workloads.kueue.x-k8s.io", "clusterpolicies.kyverno.io", "rollouts.argoproj.io"} <= big.keys()
    assert "clusterqueues.kueue.x-k8s.io" not in big and "applications.argoproj.io" not in big
    assert min(big.values()) > 262_144


def test_each_component_has_its_apis() -> None:
    assert {c.module for c in components()} == {row["module"] for row in table("component_apis")["components"]}
    for c in components():
        assert c.served and c.version
        assert bool(c.source) == bool(c.minimum or c.tested)


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", "gauge"),
        ("DCGM_FI_DEV_XID_ERRORS", "gauge"),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter"),
        ("istio_requests_total", "counter"),
        ("istio_request_duration_milliseconds_bucket", "histogram"),
        ("kube_pod_info", "gauge"),
        ("keda_scaler_active", "gauge"),
        ("keda_trigger_registered_total", "gauge"),
        ("kueue_pending_workloads", "gauge"),
        ("rollout_info", "gauge"),
        ("http_requests_total", "counter"),
    ],
)
def test_platform_metrics(series: str, kind: str) -> None:
    found = platform_metric(series)
    assert found is not None and found.type == kind
    assert found.family == family_of(series)


def test_names_that_do_not_exist() -> None:
    assert platform_metric("istio_request_duration_milliseconds") is None  # a histogram has no such series
    assert platform_metric("kueue_no_such_metric") is None
    family = family_of("kueue_no_such_metric")
    assert family is not None and family.complete
    dcgm = family_of("DCGM_FI_DEV_POWER_MGMT_LIMIT")
    assert dcgm is not None and not dcgm.complete
    assert family_of("my_own_metric_total") is None


def test_labels_and_units() -> None:
    dcgm = platform_metric("DCGM_FI_DEV_FB_USED")
    assert dcgm is not None and dcgm.unit == "MiB" and {"gpu", "UUID", "pod"} <= set(dcgm.labels)
    tensor = platform_metric("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE")
    assert tensor is not None and tensor.unit == "ratio" and not tensor.optional
    occupancy = platform_metric("DCGM_FI_PROF_SM_OCCUPANCY")
    assert occupancy is not None and occupancy.optional
    istio = platform_metric("istio_requests_total")
    assert istio is not None and {"reporter", "destination_service", "response_code"} <= set(istio.labels)
    nodes = platform_metric("kube_node_status_allocatable")
    assert nodes is not None and set(nodes.labels) == {"node", "resource", "unit"}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_says_where_it_is_from(name: str) -> None:
    text = (DATA / f"{name}.yaml").read_text()
    assert text.startswith("# ")
    assert "source" in text.casefold() or "Generated by scripts/" in text
    assert table(name) is table(name)


def test_a_table_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        table("no-such-table")
