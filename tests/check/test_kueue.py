"""Kueue as a tree sets it up: its version, its configuration, and which jobs are decided about."""

from __future__ import annotations

import pytest

from blueprint.check.graph import Graph
from blueprint.check.kueue import NEWER, Kueue, kueue
from tests.check.rules.cases import manifests

QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 8}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
"""
LOCAL = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: team-a}
spec: {clusterQueue: q}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: c, image: "registry.example.com/c:1", args: [NAME], resources: {requests: {cpu: CPU}}}
"""


def _kueue(*texts: str, **options: object) -> Kueue:
    return kueue(Graph(manifests("---".join(texts)), **options))  # type: ignore[arg-type]


def _job(name: str, cpu: str = "4") -> str:
    return JOB.replace("NAME", name).replace("CPU", cpu)


def test_a_job_is_judged_by_its_queue() -> None:
    found = _kueue(QUEUE, LOCAL, _job("a"), _job("b", "16"))
    assert {each.manifest.ref.name: each.assignment is not None for each in found.judged} == {"a": True, "b": False}
    assert {each.queue for each in found.judged} == {"q"}


def test_jobs_that_differ_in_their_commands_alone_are_decided_about_once() -> None:
    one, two, other = _kueue(QUEUE, LOCAL, _job("a"), _job("b"), _job("c", "2")).judged
    assert one.assignment is two.assignment
    assert one.assignment is not other.assignment


def test_a_limit_range_makes_the_answer_one_of_its_namespace() -> None:
    limits = """
apiVersion: v1
kind: LimitRange
metadata: {name: l, namespace: team-a}
spec: {limits: [{type: Container, defaultRequest: {memory: 1Gi}}]}
"""
    other = LOCAL.replace("team-a", "team-b")
    found = _kueue(QUEUE, LOCAL, other, limits, _job("a"), _job("b").replace("team-a", "team-b"))
    assert [each.assignment is not None for each in found.judged] == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        QUEUE.replace("nominalQuota: 8", 'nominalQuota: "${QUOTA}"'),
        f"{QUEUE}---{QUEUE}",  # written twice: which of the two counts is not known
    ],
)
def test_what_is_not_known_is_not_decided(text: str) -> None:
    (judged,) = _kueue(text, LOCAL, _job("a", "16")).judged
    assert judged.assignment is None
    assert not [reason for reason in judged.reasons if reason.code == "KQ202"]


def test_jobs_that_others_own_or_templates_fill_in_are_left_out() -> None:
    owned = _job("a").replace(
        "metadata: {", "metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}], "
    )
    filled = _job("b", '"{{ cpu }}"')
    assert not _kueue(QUEUE, LOCAL, owned, filled).judged


def test_a_job_without_a_namespace_is_placed_by_whoever_applies_it() -> None:
    assert not _kueue(QUEUE, LOCAL, _job("a").replace(", namespace: team-a", "")).judged
    here = LOCAL.replace(", namespace: team-a", "")
    assert _kueue(QUEUE, here, _job("a").replace(", namespace: team-a", "")).judged


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: kueue-system}
spec:
  selector: {matchLabels: {app: kueue}}
  template:
    metadata: {labels: {app: kueue}}
    spec: {containers: [{name: manager, image: "registry.example.com/kueue/kueue:v0.17.4"}]}
"""
GATES = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfeatureGates: {KueueDRAIntegration: true}\n"


def test_the_version_is_what_is_said_then_what_the_image_says() -> None:
    assert _kueue(QUEUE, DEPLOYMENT).version == "0.17.4"
    assert _kueue(QUEUE, DEPLOYMENT, versions={"kueue": "v0.18.1"}).version == "0.18.1"
    assert not _kueue(QUEUE).said
    assert _kueue(GATES).version == NEWER


def test_a_version_that_is_no_number_is_before_none() -> None:
    assert not _kueue(GATES).before("0.17.0")
    assert _kueue(QUEUE, versions={"kueue": "0.17.0"}).before("0.17.5")


def test_configurations_are_files_and_keys_of_config_maps() -> None:
    inside = "".join(f"    {line}\n" for line in GATES.splitlines())
    config_map = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  settings.yaml: |\n{inside}"
    for text, path in ((GATES, "featureGates"), (config_map, "data[settings.yaml]")):
        (each,) = _kueue(text).configurations
        assert each.body is not None
        assert each.at("featureGates") == path


def test_a_tree_without_kueue_has_none() -> None:
    assert not _kueue("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n").here
