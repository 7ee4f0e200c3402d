"""Verdicts about upgrades, on the reference platform's tree and on small ones."""

from __future__ import annotations

import gzip
import json
import subprocess
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
    written = moves.patch([found], tmp_path).text
    assert (
        "-apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\n+apiVersion: flowcontrol.apiserver.k8s.io/v1\n" in written
    )
    assert "1 patch: --patch writes them" in moves.text([found])


MOVED = """\
# Who may borrow from whom.
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: q}
spec:
  cohort: all  # everybody
  namespaceSelector: {}
  flavorFungibility:
    whenCanBorrow: Borrow
  admissionChecks:
    - provisioning
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: MultiKueueCluster
metadata: {name: worker}
spec:
  kubeConfig: {location: worker, locationType: Secret}
"""
WRITTEN = """\
# Who may borrow from whom.
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  admissionChecksStrategy: {admissionChecks: [{name: provisioning}]}
  cohortName: all  # everybody
  namespaceSelector: {}
  flavorFungibility:
    whenCanBorrow: MayStopSearch
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: worker}
spec:
  clusterSource: {kubeConfig: {location: worker, locationType: Secret}}
"""
SHARES = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1beta2
kind: PriorityLevelConfiguration
metadata: {name: tenants}
spec:
  type: Limited
  limited:
    assuredConcurrencyShares: 10  # of all
    limitResponse: {type: Reject}
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: web}
spec:
  spec:
    devices:
      requests:
        - name: gpu
          deviceClassName: gpu.example.com
          count: 2
        - name: nic
          deviceClassName: nic.example.com
"""
CLAIMED = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: web}
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly: {count: 2, deviceClassName: gpu.example.com}
        - name: nic
          exactly: {deviceClassName: nic.example.com}
"""


@pytest.mark.parametrize(
    ("text", "name", "before", "after", "verdict", "written"),
    [
        (MOVED, "kueue", "0.15.0", "0.17.1", Verdict.SAFE, WRITTEN),
        (
            SHARES,
            "kubernetes",
            "1.28",
            "1.35",
            Verdict.MANUAL,
            SHARES.replace("v1beta2", "v1").replace("assured", "nominal"),
        ),
        (CLAIM, "kubernetes", "1.34", "1.35", Verdict.SAFE, CLAIMED),
    ],
)
def test_fields_move_with_their_version(
    tmp_path: Path, text: str, name: str, before: str, after: str, verdict: Verdict, written: str
) -> None:
    (tmp_path / "a.yaml").write_text(text)
    found = judged(text, name, before, after)
    assert found.verdict is verdict
    patched = moves.patch([found], tmp_path)
    assert not patched.left
    assert subprocess.run(
        ["patch", "-p1"], cwd=tmp_path, input=patched.text, text=True, check=True, capture_output=True
    )
    assert (tmp_path / "a.yaml").read_text() == written
    again = judged(written, name, after, after)
    assert not [need for need in again.needs if need.verdict is not Verdict.SAFE or need.edits]


def test_what_cannot_be_moved_is_by_hand_at_its_line(tmp_path: Path) -> None:
    """Both places are taken, so that a person must say which counts."""
    text = MOVED.replace("  namespaceSelector: {}\n", "  cohortName: some\n")
    (tmp_path / "a.yaml").write_text(text)
    (found,) = moves.placed([judged(text, "kueue", "0.15.0", "0.17.1")], tmp_path)
    needs = [need for need in found.needs if need.object and need.object.kind == "ClusterQueue"]
    hand = [need for need in needs if "by hand" in need.words]
    assert found.verdict is Verdict.MANUAL and len(hand) == 1
    assert "spec.cohort" in hand[0].words and not hand[0].edits
    assert hand[0].source is not None and text.splitlines()[hand[0].source.line - 1].strip().startswith("cohort: all")


def test_a_file_that_edits_do_not_know_is_told_as_left(tmp_path: Path) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*map(_json, MOVED.split("---\n"))]}, indent=2)
    (tmp_path / "a.yaml").write_text(text)
    patched = moves.patch([judged(text, "kueue", "0.15.0", "0.17.1")], tmp_path)
    assert [need.object.kind for need in patched.left if need.object] == ["ClusterQueue", "MultiKueueCluster"]
    assert patched.text == ""


def _json(text: str) -> object:
    (manifest,) = read(text)
    return manifest.body


def test_the_way_goes_over_versions_that_are_gone() -> None:
    (need,) = judged(SHARES, "kubernetes", "1.28", "1.35").needs
    assert need.patch == "flowcontrol.apiserver.k8s.io/v1" and "(use flowcontrol.apiserver.k8s.io/v1)" in need.words
    (near,) = judged(SHARES, "kubernetes", "1.28", "1.30").needs
    assert near.patch in ("flowcontrol.apiserver.k8s.io/v1beta3", "flowcontrol.apiserver.k8s.io/v1")


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
