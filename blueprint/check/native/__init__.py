"""What the API server checks in Go code and no schema can say: the native validation of built-in kinds.

Each function reports what its kind in k8s.io/kubernetes@v1.35.4 refuses when an object is created. Bodies may hold
anything: a wrong type is the schema check's to report and counts as absent here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from blueprint.catalog.schemas import Kind
from blueprint.check.native import (
    access,
    admission,
    configuration,
    definitions,
    devices,
    jobs,
    network,
    pods,
    quotas,
    scaling,
    workloads,
)
from blueprint.check.native.problems import Problems
from blueprint.check.pods import pod_templates
from blueprint.check.shapes import Body, mapping, maps, text
from blueprint.finding import Confidence, Finding
from blueprint.objects import Manifest

_Check = Callable[[Problems, Body], None]


def _pod(problems: Problems, body: Body) -> None:
    pods.pod(problems, body)


def _pod_template(problems: Problems, body: Body) -> None:
    pods.pod_template(problems, "template", mapping(body.get("template")))


_RBAC = "rbac.authorization.k8s.io/v1"
_DEVICES = "resource.k8s.io/v1"
_ADMISSION = "admissionregistration.k8s.io/v1"
_CHECKS: dict[tuple[str, str], _Check] = {
    ("v1", "Pod"): _pod,
    ("v1", "PodTemplate"): _pod_template,
    ("v1", "ConfigMap"): configuration.config_map,
    ("v1", "Secret"): configuration.secret,
    ("v1", "Namespace"): configuration.namespace,
    ("v1", "PersistentVolumeClaim"): configuration.volume_claim,
    ("v1", "Service"): network.service,
    ("v1", "ResourceQuota"): quotas.resource_quota,
    ("v1", "LimitRange"): quotas.limit_range,
    ("apps/v1", "Deployment"): workloads.deployment,
    ("apps/v1", "ReplicaSet"): workloads.replica_set,
    ("apps/v1", "DaemonSet"): workloads.daemon_set,
    ("apps/v1", "StatefulSet"): workloads.stateful_set,
    ("batch/v1", "Job"): jobs.job,
    ("batch/v1", "CronJob"): jobs.cron_job,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): scaling.autoscaler,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): scaling.autoscaler,
    ("policy/v1", "PodDisruptionBudget"): access.disruption_budget,
    ("networking.k8s.io/v1", "Ingress"): network.ingress,
    ("networking.k8s.io/v1", "NetworkPolicy"): network.network_policy,
    (_RBAC, "Role"): access.role,
    (_RBAC, "ClusterRole"): access.cluster_role,
    (_RBAC, "RoleBinding"): access.role_binding,
    (_RBAC, "ClusterRoleBinding"): access.cluster_role_binding,
    ("scheduling.k8s.io/v1", "PriorityClass"): access.priority_class,
    ("storage.k8s.io/v1", "StorageClass"): access.storage_class,
    ("node.k8s.io/v1", "RuntimeClass"): access.runtime_class,
    (_DEVICES, "ResourceClaim"): devices.claim,
    (_DEVICES, "ResourceClaimTemplate"): devices.claim_template,
    (_DEVICES, "DeviceClass"): devices.device_class,
    (_ADMISSION, "ValidatingAdmissionPolicy"): admission.policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): admission.binding,
    (_ADMISSION, "ValidatingWebhookConfiguration"): admission.webhooks,
    (_ADMISSION, "MutatingWebhookConfiguration"): admission.webhooks,
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): definitions.definition,
}

# What cannot be left out, although the schema of the kind says that it can.
_REQUIRED = {
    **dict.fromkeys(("Pod", "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "HorizontalPodAutoscaler"), "spec"),
    **dict.fromkeys(("Job", "CronJob", "Service", "Ingress", "PersistentVolumeClaim"), "spec"),
    **dict.fromkeys(("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"), "spec"),
    "PodTemplate": "template",
}

# Their jobs bring the image and perhaps volumes: a template of these kinds is completed later.
_COMPLETED_LATER = frozenset({"TrainingRuntime", "ClusterTrainingRuntime"})
# Their jobs hold {{args.name}} until an analysis runs.
_WITH_ARGUMENTS = frozenset({"AnalysisTemplate", "ClusterAnalysisTemplate"})


def native(manifest: Manifest, kind: Kind | None) -> list[Finding]:
    """NAT1xx to NAT6xx: what the API server refuses in an object of a built-in kind.

    In an object of another kind the pod templates are checked: the server accepts them, but not the pods that a
    controller makes of them, so those findings are likely, not certain.
    """
    check = _CHECKS.get((manifest.api_version, manifest.kind))
    if check is not None:
        problems = Problems(manifest)
        part = _REQUIRED.get(manifest.kind)
        if part and manifest.body.get(part) is None:
            problems.add("NAT100", "", f"a {manifest.kind} needs {part}")
        else:
            check(problems, manifest.body)
        return problems.found
    problems = Problems(manifest, Confidence.LIKELY)
    built_in = "." not in manifest.ref.group  # in a version that is no longer served
    if built_in or manifest.kind in _COMPLETED_LATER:
        return []
    for template in pod_templates(manifest):
        if manifest.kind in _WITH_ARGUMENTS and "{{" in str(template):
            continue
        pod = {"metadata": template.metadata, "spec": template.spec}
        pods.pod_template(problems, template.path, pod, extra=tuple(_claims(manifest.body)))
    return problems.found


def _claims(body: object) -> Iterator[str]:
    """Names of the claims that a controller makes and gives to its pods as volumes.

    Source: lws@v0.8.0 api/leaderworkerset/v1 (volumeClaimTemplates), jobset@v0.11.1 api/jobset/v1alpha2 (policies).
    """
    for key, value in mapping(body).items():
        if key == "volumeClaimTemplates":
            yield from (text(mapping(each.get("metadata")).get("name")) for each in maps(value))
        elif key == "volumeClaimPolicies":
            yield from (
                text(mapping(claim.get("metadata")).get("name"))
                for each in maps(value)
                for claim in maps(each.get("templates"))
            )
        else:
            yield from _claims(value)
