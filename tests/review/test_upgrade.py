"""Verdicts about upgrades, on the reference platform's tree and on small ones."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from importlib import resources
from pathlib import Path

import pytest

from blueprint.catalog import releases
from blueprint.catalog.schemas import SchemaPack
from blueprint.check.parse import Reading, read_bytes
from blueprint.errors import UsageError
from blueprint.objects import Manifest
from blueprint.review import moves
from blueprint.review.upgrade import Move, Verdict, move, names

PACK = SchemaPack.shipped()
QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: q, namespace: web}
spec: {clusterQueue: main}
"""
CRON = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1beta3
kind: FlowSchema
metadata: {name: tenants}
spec: {priorityLevelConfiguration: {name: workload-low}}
"""
SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: server, namespace: web}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      containers:
        - name: vllm
          image: registry.example.com/vllm@sha256:0000000000000000000000000000000000000000000000000000000000000000
          command: [vllm, serve]
          args: [/weights, --swap-space=4, --guided-decoding-backend=xgrammar]
"""
TRAINJOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job, namespace: web}
spec: {runtimeRef: {name: torch}, activeDeadlineSeconds: 60}
"""
POLICY = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec: {validations: [{expression: "true"}], matchConstraints: {resourceRules: []}}
"""


def read(text: str) -> list[Manifest]:
    reading = Reading()
    read_bytes(text.encode(), "a.yaml", reading)
    return reading.manifests


def judged(text: str, name: str, before: str, after: str) -> Move:
    return move(name, before, after, read(text), PACK)


@pytest.mark.parametrize(
    ("text", "name", "before", "after", "verdict", "words"),
    [
        (QUEUE, "kueue", "0.15.0", "0.17.1", Verdict.SAFE, ""),
        (CRON, "kubernetes", "1.31", "1.35", Verdict.MANUAL, "served until 1.32"),
        (CRON, "kubernetes", "1.30", "1.31", Verdict.SAFE, ""),
        (CRON, "kubernetes", "1.35", "1.44", Verdict.UNKNOWN, "nothing is known of Kubernetes 1.44"),
        (SERVER, "vllm", "0.8.5.post1", "0.33.0", Verdict.MANUAL, "does not know --swap-space"),
        (SERVER, "vllm", "0.8.5.post1", "0.9.2", Verdict.SAFE, ""),
        (SERVER, "vllm", "0.33.0", "9.0.0", Verdict.UNKNOWN, "nobody knows whether vLLM 9.0.0 has"),
        (TRAINJOB, "trainer", "2.2.0", "2.0.0", Verdict.MANUAL, "drops spec.activeDeadlineSeconds without a word"),
        (POLICY, "kyverno", "1.19.1", "1.13.4", Verdict.BLOCKED, "has no kind ValidatingPolicy"),
        (QUEUE, "kueue", "0.17.0", "0.99.0", Verdict.UNKNOWN, "nothing is known of kueue 0.99.0"),
    ],
)
def test_verdict(text: str, name: str, before: str, after: str, verdict: Verdict, words: str) -> None:
    found = judged(text, name, before, after)
    assert any(words in need.words for need in found.needs) if words else True, found
    assert found.verdict is verdict, found


def test_what_only_moved_is_a_patch(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CRON)
    found = judged(CRON, "kubernetes", "1.31", "1.35")
    written = moves.patch([found], tmp_path)
    assert (
        "-apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\n+apiVersion: flowcontrol.apiserver.k8s.io/v1\n" in written
    )
    assert "1 patch: --patch writes them" in moves.text([found])


def test_a_kind_that_a_release_does_not_have_is_not_taken_from_another() -> None:
    old = releases.pack_of("kyverno", "1.13.4", PACK)
    assert old.kind("policies.kyverno.io/v1", "ValidatingPolicy") is None
    assert old.kind("kyverno.io/v1", "ClusterPolicy") is not None
    assert old.kind("apps/v1", "Deployment") is not None


def test_the_pinned_release_says_what_the_pack_says() -> None:
    pinned = releases.pack_of("argo-rollouts", "1.10.2", PACK)
    ours, theirs = (pack.kind("argoproj.io/v1alpha1", "Rollout") for pack in (PACK, pinned))
    assert ours is not None and theirs is not None
    assert ours.schema == theirs.schema and ours.rules == theirs.rules and ours.defaults == theirs.defaults


def test_every_release_can_be_read() -> None:
    for name in releases.components():
        for each in releases.releases(name):
            assert releases.records(name, each)
            assert releases.nearest(name, each) == each


def test_files_of_releases_are_those_of_the_lock() -> None:
    folder = resources.files("blueprint.catalog").joinpath("data/releases")
    lock = json.loads(folder.joinpath("LOCK.json").read_bytes())
    files = {each.name for each in folder.iterdir()} - {"LOCK.json"}
    listed = {f"{name}@{each}.json.gz": mark for name, row in lock.items() for each, mark in row["releases"].items()}
    assert files == listed.keys()
    for name, mark in listed.items():
        assert sha256(gzip.decompress(folder.joinpath(name).read_bytes())).hexdigest() == mark


def test_an_unknown_component_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="nothing is known"):
        judged(QUEUE, "kubectl", "", "1.0")
    assert {"kubernetes", "kueue", "argo-rollouts", "kyverno", "gatekeeper", "trainer", "vllm"} <= set(names())


def test_json_is_stable() -> None:
    found = moves.document([judged(CRON, "kubernetes", "1.31", "1.35")])
    (one,) = found["moves"]
    assert found["schema"] == 1
    assert list(one) == ["component", "before", "after", "verdict", "objects", "sources", "needs"]
    assert one["needs"][0]["apiVersion"] == "flowcontrol.apiserver.k8s.io/v1"
