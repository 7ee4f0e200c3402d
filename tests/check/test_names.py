"""Names and metadata: what a server refuses is in native/cases.json, too; here is what breaks later."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.check.names import names
from blueprint.finding import Finding, Source
from blueprint.objects import Manifest
from tests.check.objects import VALIDATOR


def judge(
    api: str, kind: str, name: object = "a", spec: dict[str, Any] | None = None, **metadata: Any
) -> list[Finding]:
    body: dict[str, Any] = {"apiVersion": api, "kind": kind, "metadata": {"name": name, **metadata}}
    if spec is not None:
        body["spec"] = spec
    manifest = Manifest(body, Source("a.yaml", 1, 1))
    return names(manifest, VALIDATOR.checker.kind_of(manifest))


def codes(*args: Any, **metadata: Any) -> list[str]:
    return [finding.code for finding in judge(*args, **metadata)]


@pytest.mark.parametrize(
    ("api", "kind", "longest"),
    [
        ("v1", "Namespace", 63),
        ("v1", "Service", 63),
        ("v1", "ConfigMap", 253),
        ("apps/v1", "Deployment", 253),
        ("batch/v1", "CronJob", 52),
        ("apps/v1", "StatefulSet", 52),
        ("kueue.x-k8s.io/v1beta2", "LocalQueue", 63),
        ("kyverno.io/v1", "ClusterPolicy", 63),
    ],
)
def test_lengths(api: str, kind: str, longest: int) -> None:
    assert codes(api, kind, "a" * longest) == []
    assert codes(api, kind, "a" * (longest + 1))[0] in ("NAM102", "NAM201")


@pytest.mark.parametrize("name", ["Reader_of:All things", "x" * 254])
def test_roles_may_be_called_nearly_anything(name: str) -> None:
    assert codes("rbac.authorization.k8s.io/v1", "Role", name) == []
    assert codes("rbac.authorization.k8s.io/v1", "Role", "a/b") == ["NAM102"]


def replicas(**roles: int) -> dict[str, Any]:
    return {"pytorchReplicaSpecs": {role: {"replicas": count} for role, count in roles.items()}}


def test_pods_of_a_training_job_are_called_after_it() -> None:
    api, kind = "kubeflow.org/v1", "PyTorchJob"
    assert codes(api, kind, "a" * 54, replicas(Master=1)) == []
    (finding,) = judge(api, kind, "a" * 54, replicas(Worker=101))
    assert finding.code == "NAM201"
    assert "worker-100" in finding.message
    assert codes(api, kind, "0-starts-with-a-digit", replicas(Master=1)) == ["NAM201"]


def test_pods_of_a_job_set_are_called_after_it() -> None:
    spec = {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 10}}}]}
    assert codes("jobset.x-k8s.io/v1alpha2", "JobSet", "a" * 45, spec) == []
    assert codes("jobset.x-k8s.io/v1alpha2", "JobSet", "a" * 46, spec) == ["NAM201"]


def test_groups_of_a_leader_worker_set_are_called_after_it() -> None:
    assert codes("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "a" * 50, {"replicas": 10}) == []
    assert codes("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "a" * 50, {"replicas": 11}) == ["NAM201"]


def test_names_that_follow_from_the_content() -> None:
    crd = {"group": "example.com", "names": {"plural": "widgets", "kind": "Widget"}}
    assert codes("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com", crd) == []
    assert codes("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widget.example.com", crd) == ["NAM108"]
    template = {"crd": {"spec": {"names": {"kind": "RequireDigest"}}}}
    assert codes("templates.gatekeeper.sh/v1", "ConstraintTemplate", "requiredigest", template) == []
    assert codes("templates.gatekeeper.sh/v1", "ConstraintTemplate", "require-digest", template) == ["NAM108"]


def test_generated_names_cannot_be_applied() -> None:
    assert codes("batch/v1", "Job", None, generateName="job-") == ["NAM202"]
    assert codes("batch/v1", "Job", None, generateName="Job-") == ["NAM202", "NAM102"]
    assert codes("batch/v1", "Job", None) == ["NAM101"]
    assert codes("batch/v1", "Job", 5) == []


def test_namespaces() -> None:
    assert codes("v1", "ConfigMap", namespace="a.b") == ["NAM103"]
    assert codes("kueue.x-k8s.io/v1beta2", "ClusterQueue", namespace="team") == ["NAM203"]
    assert codes("v1", "Namespace", "kube-addons") == ["NAM204"]
    assert codes("v1", "Namespace", "kube-system") == []
    assert codes("v1", "Namespace", "kubernetes") == []
    assert codes("v1", "Namespace", labels={"kubernetes.io/metadata.name": "b"}) == ["NAM206"]
    assert codes("v1", "Namespace", labels={"kubernetes.io/metadata.name": "a"}) == []


def test_labels_and_annotations() -> None:
    assert codes("v1", "ConfigMap", labels={"Example.com/a": "b"}) == ["NAM104"]
    assert codes("v1", "ConfigMap", annotations={"Example.com/a": "any / value"}) == []
    assert codes("v1", "ConfigMap", labels={"a": "b c"}, annotations={"a b": "c"}) == ["NAM104", "NAM105"]
    assert codes("v1", "ConfigMap", labels={"a": None}) == []
    assert codes("v1", "ConfigMap", annotations={"argocd.argoproj.io/tracking-id": "x"}) == ["NAM205"]
    assert codes("v1", "ConfigMap", annotations={"argocd.argoproj.io/sync-wave": "1"}) == []


def test_finalizers_and_owners() -> None:
    assert codes("v1", "ConfigMap", finalizers=["example.com/guard", "orphan"]) == []
    assert codes("v1", "ConfigMap", finalizers=["guard"]) == ["NAM106"]
    assert codes("argoproj.io/v1alpha1", "Application", finalizers=["resources-finalizer.argocd.argoproj.io"]) == []
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": True}
    assert codes("v1", "ConfigMap", ownerReferences=[owner]) == []
    assert codes("v1", "ConfigMap", ownerReferences=[owner, owner]) == ["NAM107"]
    assert codes("v1", "ConfigMap", ownerReferences=[{**owner, "uid": ""}]) == ["NAM107"]


def test_a_document_in_the_form_of_an_object_need_not_be_one() -> None:
    details = Manifest({"apiVersion": "internal.example.com/v1", "kind": "Details", "number": 1}, Source("a.yaml", 1))
    assert not names(details, None)
    nameless = {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"labels": {}}}
    named = Manifest(nameless, Source("a.yaml", 1))
    assert [finding.code for finding in names(named, None)] == ["NAM101"]
