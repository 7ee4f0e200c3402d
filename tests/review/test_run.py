"""A review as a whole: clusters of anybody's tree, waves, reach, large trees."""

from __future__ import annotations

import pytest

from blueprint.review import judged
from blueprint.review.entries import entries
from blueprint.review.model import Risk
from tests.review.conftest import Bench

QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: main}}
spec:
  namespaceSelector: {{}}
  resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors: [{{name: gpu, resources: [{{name: nvidia.com/gpu, nominalQuota: {quota}}}]}}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: q, namespace: web}}
spec: {{clusterQueue: main}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {{name: gpu}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: web}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: train, namespace: web, labels: {{kueue.x-k8s.io/queue-name: q}}}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers:
        - {{name: c, image: "registry.example.com/c:1", resources: {{limits: {{nvidia.com/gpu: 4}}}}}}
"""


def environments(**quotas: int) -> dict[str, bytes]:
    return {f"env/{name}/queues.yaml": QUEUE.format(quota=quota).encode() for name, quota in quotas.items()}


def test_folders_with_the_same_objects_are_clusters(bench: Bench) -> None:
    found = bench.review(environments(test=8, live=8), environments(test=8, live=2))
    assert found.clusters == ("env/live",)
    assert [(m.cluster, m.kind) for m in found.meanings] == [("env/live", "quota"), ("env/live", "job")]
    assert "team web loses 6 nominal (8 → 2) nvidia.com/gpu on gpu" in [m.words for m in found.meanings]
    assert any("Job web/train can no longer be admitted" in m.words for m in found.meanings)


def test_the_same_change_in_every_environment_is_one_row(bench: Bench) -> None:
    names = {f"site-{number:02}": 8 for number in range(12)}
    found = bench.review(environments(**names), environments(**dict.fromkeys(names, 6)))
    rows = [entry for entry in entries(found) if entry.risk is Risk.CAPACITY]
    assert [row.where for row in rows] == ["×12", "×12"]


def test_a_job_that_is_let_in(bench: Bench) -> None:
    found = bench.review(environments(live=2), environments(live=8))
    assert "Job web/train can be admitted from now on" in [m.words for m in found.meanings]


def test_nothing_is_said_of_jobs_that_stay_as_they_are(bench: Bench) -> None:
    found = bench.review(environments(live=8), environments(live=7))
    assert [m.kind for m in found.meanings] == ["quota"]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"replace": 'sync-wave: "2"', "with": 'sync-wave: "7"'}, "waves"),
        ({"delete": True}, ""),
    ],
)
def test_waves_before_and_after(bench: Bench, edit: dict[str, object], words: str) -> None:
    edits = [{"file": "prod-a/queues/clusterqueue-search-ai-training.yaml", **edit}]
    found = bench.review(bench.tree, bench.changed(edits))
    said = [wave.words for wave in found.waves]
    assert any(words in each for each in said) if words else True
    if words:
        assert any(each.startswith("Application prod-a-queues: 3 → 4 waves (at least 4 → 6 s)") for each in said), said


def test_health_scripts_that_go_open_the_gates(bench: Bench) -> None:
    file = "prod-a/bootstrap/configmap-argocd-cm.yaml"
    edits = [
        {
            "file": file,
            "replace": "resource.customizations.health.templates.gatekeeper.sh_ConstraintTemplate",
            "with": "other",
        }
    ]
    found = bench.review(bench.tree, bench.changed(edits))
    assert any("gates → does not gate" in wave.words for wave in found.waves), [w.words for w in found.waves]


def test_how_far_a_policy_reaches(bench: Bench) -> None:
    edits = [
        {
            "file": "prod-a/policies/blueprintimagesbydigest-images-by-digest.yaml",
            "replace": "enforcementAction: deny",
            "with": "enforcementAction: warn",
        }
    ]
    found = bench.review(bench.tree, bench.changed(edits))
    assert found.radius == ("the policy that changes judges chat, research, search-ai",)


def test_large_trees_are_judged_by_what_changed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged, "LARGE", 10)
    file = "prod-a/team-search-ai/localqueue-training.yaml"
    edits = [{"file": file, "replace": "clusterQueue: search-ai-training", "with": "clusterQueue: Not_A_Name"}]
    found = bench.review(bench.tree, bench.changed(edits), findings=True)
    assert not found.findings.whole
    assert any(finding.fails and finding.source and finding.source.file == file for finding in found.findings.new)
