"""Health as Argo CD judges it, and the statuses that are played for controllers that do not run."""

import pytest

from blueprint.conform.health import constraint_crd, judge, stand_in


def body(api_version, kind, status=None, **spec):
    made = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}, "spec": spec}
    return made if status is None else {**made, "status": status}


@pytest.mark.parametrize(
    ("status", "health"),
    [
        ({}, "Progressing"),
        ({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}, "Healthy"),
        ({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}, "Progressing"),
        ({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1}, "Progressing"),
        (
            {"observedGeneration": 2, "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]},
            "Degraded",
        ),
    ],
)
def test_a_deployment(status, health):
    assert judge(body("apps/v1", "Deployment", status, replicas=1)).status == health


@pytest.mark.parametrize(("phase", "health"), [("Bound", "Healthy"), ("Pending", "Progressing"), ("Lost", "Degraded")])
def test_a_claim(phase, health):
    assert judge(body("v1", "PersistentVolumeClaim", {"phase": phase})).status == health


def test_a_load_balancer_waits_for_its_address():
    assert judge(body("v1", "Service", {}, type="LoadBalancer")).status == "Progressing"
    assert judge(body("v1", "Service", {}, type="ClusterIP")).status == "Healthy"


PLAYED = [
    ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
    ("kueue.x-k8s.io/v1beta2", "LocalQueue"),
    ("kueue.x-k8s.io/v1beta2", "AdmissionCheck"),
    ("templates.gatekeeper.sh/v1", "ConstraintTemplate"),
    ("constraints.gatekeeper.sh/v1beta1", "BlueprintAnything"),
    ("externaldata.gatekeeper.sh/v1beta1", "Provider"),
    ("velero.io/v1", "BackupStorageLocation"),
]


@pytest.mark.parametrize(("api_version", "kind"), PLAYED)
def test_what_is_played_makes_an_object_healthy_that_was_not(api_version, kind):
    made = body(api_version, kind)
    assert judge(made).status == "Progressing"
    played = stand_in(made)
    assert judge({**made, "status": played.status}).status == "Healthy"


def test_without_our_script_argo_cd_knows_nothing_of_a_queue():
    assert judge(body("kueue.x-k8s.io/v1beta2", "ClusterQueue"), scripted=False).message == "no check"


def test_nobody_is_played_for_a_deployment():
    assert stand_in(body("apps/v1", "Deployment")) is None


def test_a_template_makes_the_kind_of_its_constraints():
    template = body("templates.gatekeeper.sh/v1", "ConstraintTemplate", crd={"spec": {"names": {"kind": "NoTags"}}})
    assert constraint_crd(template)["metadata"]["name"] == "notags.constraints.gatekeeper.sh"
