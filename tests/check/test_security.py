"""Pod Security by the labels of the namespaces in the same set, for pods wherever they are written."""

from __future__ import annotations

from typing import Any

import pytest

from blueprint.check.pods import pod_templates
from blueprint.check.security import pod_security, policy_of
from blueprint.check.standards import Policy
from blueprint.finding import Severity, Source
from blueprint.objects import Manifest

GOOD = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {"name": "c", "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}},
    ],
}
BAD = {"containers": [{"name": "c"}]}


def manifest(body: dict[str, Any]) -> Manifest:
    return Manifest(body, Source("a.yaml", 1, 1))


def namespace(**labels: str) -> Manifest:
    prefixed = {f"pod-security.kubernetes.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    return manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": prefixed}})


def pod(spec: dict[str, Any], where: str = "team") -> Manifest:
    return manifest({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": where}, "spec": spec})


def codes(*manifests: Manifest) -> list[str]:
    return [finding.code for finding in pod_security(manifests)]


ALL_FOUR = ["PSS202", "PSS203", "PSS205", "PSS206"]


def test_the_label_of_the_namespace_decides() -> None:
    assert codes(namespace(enforce="restricted"), pod(BAD)) == ALL_FOUR
    assert codes(namespace(enforce="restricted"), pod(GOOD)) == []
    assert codes(namespace(enforce="baseline"), pod(BAD)) == []
    assert codes(namespace(), pod(BAD)) == []
    assert codes(namespace(enforce="restricted"), pod(BAD, where="other")) == []
    assert codes(pod(BAD)) == []


def test_an_unknown_level_is_the_strictest() -> None:
    assert codes(namespace(enforce="strict"), pod(BAD)) == ALL_FOUR


def test_what_is_only_told_is_a_warning() -> None:
    findings = list(pod_security([namespace(warn="restricted"), pod(BAD)]))
    assert [f.code for f in findings] == ALL_FOUR
    assert {f.severity for f in findings} == {Severity.WARNING}
    host = {**BAD, "hostNetwork": True}
    both = list(pod_security([namespace(enforce="baseline", audit="restricted"), pod(host)]))
    assert [(f.code, f.severity) for f in both if f.severity is Severity.ERROR] == [("PSS101", Severity.ERROR)]
    assert sorted(f.code for f in both) == ["PSS101", *ALL_FOUR]


@pytest.mark.parametrize(
    ("labels", "policy"),
    [
        ({}, Policy("privileged")),
        ({"enforce": "baseline"}, Policy("baseline", 35)),
        ({"enforce": "baseline", "enforce-version": "v1.28"}, Policy("baseline", 28)),
        ({"enforce": "baseline", "enforce-version": "v1.99"}, Policy("baseline", 35)),
        ({"enforce": "baseline", "enforce-version": "1.28"}, Policy("baseline", 35)),
        ({"enforce": "nothing"}, Policy("restricted", 35)),
    ],
)
def test_policies(labels: dict[str, str], policy: Policy) -> None:
    assert policy_of({f"pod-security.kubernetes.io/{key}": value for key, value in labels.items()}, "enforce") == policy


def holders(spec: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    job = {"spec": {"template": template}}
    return [
        ("apps/v1 Deployment spec.template", {"spec": {"template": template}}),
        ("apps/v1 StatefulSet spec.template", {"spec": {"template": template}}),
        ("batch/v1 CronJob spec.jobTemplate.spec.template", {"spec": {"jobTemplate": job}}),
        ("v1 PodTemplate template", {"template": template}),
        ("argoproj.io/v1alpha1 Rollout spec.template", {"spec": {"template": template}}),
        (
            "kubeflow.org/v1 PyTorchJob spec.pytorchReplicaSpecs.Worker.template",
            {"spec": {"pytorchReplicaSpecs": {"Worker": {"template": template}}}},
        ),
        (
            "jobset.x-k8s.io/v1alpha2 JobSet spec.replicatedJobs[0].template.spec.template",
            {"spec": {"replicatedJobs": [{"template": job}]}},
        ),
        (
            "trainer.kubeflow.org/v1alpha1 TrainingRuntime spec.template.spec.replicatedJobs[0].template.spec.template",
            {"spec": {"template": {"spec": {"replicatedJobs": [{"template": job}]}}}},
        ),
        (
            "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet spec.leaderWorkerTemplate.workerTemplate",
            {"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}},
        ),
        ("kueue.x-k8s.io/v1beta2 Workload spec.podSets[0].template", {"spec": {"podSets": [{"template": template}]}}),
        (
            "argoproj.io/v1alpha1 AnalysisTemplate spec.metrics[0].provider.job.spec.template",
            {"spec": {"metrics": [{"provider": {"job": job}}]}},
        ),
        ("keda.sh/v1alpha1 ScaledJob spec.jobTargetRef.template", {"spec": {"jobTargetRef": {"template": template}}}),
    ]


@pytest.mark.parametrize(("where", "body"), holders(BAD), ids=lambda value: value if isinstance(value, str) else "")
def test_templates_of_every_kind_are_found(where: str, body: dict[str, Any]) -> None:
    api, kind, path = where.split(" ")
    made = manifest({"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "team"}, **body})
    (template,) = pod_templates(made)
    assert template.path == path
    assert template.metadata == {"labels": {"a": "b"}}
    assert template.spec == BAD
    findings = list(pod_security([namespace(enforce="restricted"), made]))
    assert [f.code for f in findings] == ALL_FOUR
    assert all(f.path.startswith(f"{path}.spec.") for f in findings)


def test_kinds_without_pods_have_no_templates() -> None:
    made = manifest(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "spec": {"template": {"spec": BAD}}}
    )
    assert list(pod_templates(made)) == []
