"""Verdicts about upgrades against the real API server: old CRDs, objects, new CRDs, and the objects again."""

from __future__ import annotations

import json
import os
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check.patches import apply
from blueprint.conform import modules
from blueprint.conform.client import Answer, Target
from blueprint.conform.controlplane import ControlPlane
from blueprint.conform.crds import load, without_descriptions
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.review.upgrade import Need, Verdict, move
from tests.conformance.conftest import ROOT

Body = dict[str, Any]

KIND = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
POD = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "registry.example.com/c:1"}]},
}
ROLLOUT: Body = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Rollout",
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": POD,
        "strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {"duration": "1m"}}]}},
    },
}
ANALYSIS: Body = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "AnalysisTemplate",
    "spec": {
        "metrics": [
            {
                "name": "errors",
                "interval": "1m",
                "successCondition": "result[0] < 1",
                "consecutiveSuccessLimit": 2,
                "provider": {"prometheus": {"address": "http://p:9090", "query": "up"}},
            }
        ]
    },
}
CLUSTER_POLICY: Body = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "spec": {
        "validationFailureAction": "Enforce",
        "rules": [
            {
                "name": "r",
                "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                "validate": {"message": "m", "pattern": {"metadata": {"name": "?*"}}},
            }
        ],
    },
}
VALIDATING_POLICY: Body = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "ValidatingPolicy",
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
            ]
        },
        "validations": [{"expression": "true"}],
    },
}
TEMPLATE: Body = {
    "apiVersion": "templates.gatekeeper.sh/v1",
    "kind": "ConstraintTemplate",
    "spec": {
        "crd": {"spec": {"names": {"kind": "K"}}},
        "targets": [{"target": "admission.k8s.gatekeeper.sh", "rego": "package k\nviolation[{}] { false }"}],
    },
}
TRAINJOB: Body = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 2}, "activeDeadlineSeconds": 60},
}
RUNTIME: Body = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainingRuntime",
    "spec": {
        "mlPolicy": {"numNodes": 1},
        "template": {
            "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": POD["spec"]}}}}]}
        },
    },
}
PYTORCH: Body = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "spec": {
        "pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": POD}},
        "runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"},
    },
}
QUEUE: Body = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "spec": {
        "cohortName": "all",
        "namespaceSelector": {},
        "resourceGroups": [
            {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1}]}]}
        ],
    },
}
OLD_QUEUE: Body = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "spec": {"clusterQueue": "q"}}
MOVED_QUEUE: Body = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "ClusterQueue",
    "spec": {
        "cohort": "all",
        "namespaceSelector": {},
        "admissionChecks": ["provisioning"],
        "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
        "resourceGroups": QUEUE["spec"]["resourceGroups"],
    },
}
WORKER: Body = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "MultiKueueCluster",
    "spec": {"kubeConfig": {"location": "worker", "locationType": "Secret"}},
}
SHARES: Body = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1beta2",
    "kind": "PriorityLevelConfiguration",
    "metadata": {"name": "tenants"},
    "spec": {
        "type": "Limited",
        "limited": {"assuredConcurrencyShares": 10, "limitResponse": {"type": "Reject"}},
    },
}
REQUEST: Body = {"name": "gpu", "deviceClassName": "gpu.example.com", "count": 2, "allocationMode": "ExactCount"}
CLAIM: Body = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceClaim",
    "metadata": {"name": "claim", "namespace": "web"},
    "spec": {"devices": {"requests": [REQUEST]}},
}
CLAIM_TEMPLATE: Body = {
    **CLAIM,
    "kind": "ResourceClaimTemplate",
    "spec": {"spec": CLAIM["spec"]},
}
PAIRS = (
    ("argo-rollouts", "1.4.1", "1.7.2", (ROLLOUT, ANALYSIS)),
    ("argo-rollouts", "1.7.2", "1.8.5", (ROLLOUT, ANALYSIS)),
    ("argo-rollouts", "1.8.5", "1.9.3", (ROLLOUT, ANALYSIS)),
    ("argo-rollouts", "1.9.3", "1.10.2", (ROLLOUT, ANALYSIS)),
    ("argo-rollouts", "1.10.2", "1.4.1", (ROLLOUT, ANALYSIS)),
    ("kyverno", "1.13.4", "1.18.2", (CLUSTER_POLICY,)),
    ("kyverno", "1.18.2", "1.19.1", (CLUSTER_POLICY, VALIDATING_POLICY)),
    ("kyverno", "1.19.1", "1.13.4", (CLUSTER_POLICY, VALIDATING_POLICY)),
    ("gatekeeper", "3.17.0", "3.23.1", (TEMPLATE,)),
    ("trainer", "2.0.0", "2.1.0", (RUNTIME, TRAINJOB)),
    ("trainer", "2.1.0", "2.2.0", (RUNTIME, TRAINJOB)),
    ("trainer", "2.2.0", "2.0.0", (RUNTIME, TRAINJOB)),
    ("training-operator", "1.8.1", "1.9.3", (PYTORCH,)),
    ("training-operator", "1.9.3", "1.8.1", (PYTORCH,)),
    ("kueue", "0.15.0", "0.17.0", (QUEUE, OLD_QUEUE, MOVED_QUEUE, WORKER)),
    ("kueue", "0.17.0", "0.17.1", (QUEUE, OLD_QUEUE, MOVED_QUEUE, WORKER)),
    ("kueue", "0.17.1", "0.19.2", (QUEUE, OLD_QUEUE, MOVED_QUEUE, WORKER)),
    ("kueue", "0.19.2", "0.15.0", (QUEUE, OLD_QUEUE)),
)


CLUSTER_WIDE = ("ClusterPolicy", "ValidatingPolicy", "ConstraintTemplate", "ClusterQueue", "MultiKueueCluster")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A server of its own: its CRDs change under way."""
    with ControlPlane() as started:
        started.namespace("web")
        yield started


def definitions(component: str, version: str) -> list[Body]:
    """The CRDs of a release, from its module; the test is skipped where no mirror serves it."""
    rows = tomllib.loads((ROOT / "scripts/upgrades.toml").read_text())["component"]
    row = next(row for row in rows if row["name"] == component)
    command = ["go", "mod", "download", "-json", f"{row['module']}@v{version}"]
    environment = os.environ | {"GOTOOLCHAIN": "auto", "GOWORK": "off", "GOFLAGS": "-mod=mod"}
    done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)
    folder = json.loads(done.stdout or "{}").get("Dir")
    if not folder:
        pytest.skip(f"{row['module']}@v{version} cannot be had here")
    files = [file for part in row["crds"] for file in sorted((Path(folder) / part).glob("*.yaml"))]
    found = [body for body in modules.documents(files) if body["kind"] == "CustomResourceDefinition"]
    return [without_descriptions(body) for body in found]


def bring(plane: ControlPlane, crds: list[Body]) -> dict[str, str]:
    """Bring the server to a release, over whatever release of the same kinds is there; what it refuses, by kind.

    Kinds that the release does not have are deleted, as an upgrade by manifests with pruning does.
    """
    groups = {crd["spec"]["group"] for crd in crds}
    names = {crd["metadata"]["name"] for crd in crds}
    there = plane.client.every("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    mine = {crd["metadata"]["name"]: crd for crd in there if _family(crd) & {_last(group) for group in groups}}
    for name in mine.keys() - names:
        plane.client.delete(Target.of({**KIND, "metadata": {"name": name}}))
    refused = {}
    for crd in crds:
        found = mine.get(crd["metadata"]["name"])
        if found is None:
            answer = plane.client.create(crd)
        else:
            number = found["metadata"]["resourceVersion"]
            answer = plane.client.replace({**crd, "metadata": {**crd["metadata"], "resourceVersion": number}})
        if not answer.ok:
            refused[crd["spec"]["names"]["kind"]] = answer.message
    load(plane.client, [c for c in crds if c["spec"]["names"]["kind"] not in refused], 60)  # waits until it is served
    time.sleep(2)  # a schema that changes is told to nobody
    return refused


def _family(crd: Body) -> set[str]:
    return {_last(crd["spec"]["group"])}


def _last(group: str) -> str:
    """`policies.kyverno.io` and `kyverno.io` are of one project."""
    return ".".join(group.split(".")[-2:])


@pytest.mark.parametrize(("component", "before", "after", "bodies"), PAIRS)
def test_the_server_agrees(
    plane: ControlPlane, component: str, before: str, after: str, bodies: tuple[Body, ...]
) -> None:
    old, new = definitions(component, before), definitions(component, after)
    assert not bring(plane, old)
    written = []
    for number, body in enumerate(bodies):
        cluster = body["kind"] in CLUSTER_WIDE
        name = "k" if body["kind"] == "ConstraintTemplate" else f"o{number}"
        written.append({**body, "metadata": {"name": name} | ({} if cluster else {"namespace": "web"})})
    created = [plane.client.create(body) for body in written]
    try:
        refused = bring(plane, new)
        for number, (body, stored) in enumerate(zip(written, created, strict=True)):
            agrees(plane, component, before, after, Manifest(body, Source("a.yaml", number + 1, 1)), stored, refused)
    finally:
        for body in written:
            plane.client.delete(Target.of(body))


def agrees(
    plane: ControlPlane,
    component: str,
    before: str,
    after: str,
    manifest: Manifest,
    stored: Answer,
    refused: dict[str, str],
) -> None:
    """The verdict about one object, and what the server of the new release makes of it.

    The client asks for strict fields: a field that would be dropped without a word is refused by name.
    """
    found = move(component, before, after, [manifest], SchemaPack.shipped())
    stops = [need for need in found.needs if need.verdict is Verdict.BLOCKED]
    drops = [need.words for need in found.needs if "without a word" in need.words]
    if manifest.kind in refused:
        assert stops, f"the CRD is refused: {refused[manifest.kind]}"
        return
    answer = plane.client.apply(manifest.body)
    unknown = "unknown field" in answer.message or "field not declared" in answer.message
    known = "unknown field" in stored.message
    said = f"{manifest.kind}: {found.verdict.value} {found.needs}; server: {answer.status} {answer.message}"
    if stops:
        assert not answer.ok and not unknown, said
    elif drops:
        assert unknown and not known, said
        assert all(words.split(" drops ")[1].split(" ")[0].rpartition(".")[2] in answer.message for words in drops), (
            said
        )
    else:
        assert answer.ok or (unknown and known), said
    for need in found.needs:
        if need.edits:
            taken(plane, manifest.body, need)


def taken(plane: ControlPlane, body: Body, need: Need) -> None:
    """The server takes what the patch writes, field by field; with the new version alone it would not."""
    name = f"{body['metadata']['name']}-written"
    again = {**body, "metadata": {**body["metadata"], "name": name}}
    moved = plane.client.create(apply(again, need.edits))
    plane.client.delete(Target.of(apply(again, need.edits)))
    assert moved.ok, f"{body['kind']} {need.edits}: {moved.message}"
    if len(need.edits) > 1:
        alone = plane.client.create({**again, "apiVersion": need.patch})
        assert not alone.ok, f"{body['kind']}: nothing had to move"


@pytest.mark.parametrize("body", [SHARES, CLAIM, CLAIM_TEMPLATE], ids=lambda body: str(body["kind"]))
def test_the_server_takes_what_moves_in_its_own_kinds(plane: ControlPlane, body: Body) -> None:
    manifest = Manifest(body, Source("a.yaml", 1, 1))
    found = move("kubernetes", "1.28", "1.35", [manifest], SchemaPack.shipped())
    (need,) = [need for need in found.needs if need.edits]
    taken(plane, body, need)
