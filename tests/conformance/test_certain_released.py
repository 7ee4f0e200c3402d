"""Certain means certain, where the judge is the released code of a controller or webhook, asked by a small program.

Each program of tools/ reads a JSON list of objects a line and answers "" or what that code says; RELEASED names them.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml_rs

from blueprint.catalog.rules import rules
from blueprint.check.graph import Graph
from blueprint.check.rules.lws import refused
from blueprint.finding import Confidence
from blueprint.render.health import argocd_cm
from tests.check.rules.cases import cases as unit_cases
from tests.check.rules.cases import findings, manifests
from tests.conformance.certain.replay import ids, reading
from tests.conformance.certain.table import Case, cases, examples, source
from tests.conformance.conftest import program

RELEASED = {
    "argocd": "argocd-verdicts",
    "gatekeeper": "gatekeeper-verdicts",
    "keda": "keda-verdicts",
    "lws": "lws-verdicts",
    "monitors": "monitor-verdicts",
    "trainer": "trainer-verdicts",
    "velero": "velero-verdicts",
}
SETTINGS = "github.com/argoproj/argo-cd/v3@v3.6.1/manifests/base/config/argocd-cm.yaml"
"""What Argo CD ships as its settings: the kinds that it does not see are a part of them, not of its code."""


def asked(judge: str, *worlds: list[dict[str, Any]]) -> list[str]:
    """What a program says of each list of objects."""
    text = "".join(f"{json.dumps(world)}\n" for world in worlds)
    command = [program(RELEASED[judge])]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=300)
    return [json.loads(line) for line in done.stdout.splitlines()]


def shipped() -> dict[str, Any]:
    """The settings that Argo CD ships, or a skip where its sources are not on this machine."""
    path = source(SETTINGS)
    if path is None:
        pytest.skip("the sources of Argo CD are not on this machine")
    settings: dict[str, Any] = yaml_rs.loads(path.read_text("utf-8"))
    return settings


@ids([case for judge in RELEASED for case in cases(judge)])
def test_the_released_code_refuses_it(case: Case) -> None:
    first = [shipped()] if case.code == "ARG111" else []
    worlds = [[*first, *(each.body for each in reading(text).manifests)] for text in (case.bad, case.good)]
    bad, good = asked(case.row.judge, *worlds)
    assert bad
    assert good == ""


def test_only_the_first_commit_is_taken_while_verification_is_off() -> None:
    """ARG113 says what becomes of the others: a second question in one process is a check again."""
    bad, _ = examples("ARG113")
    world = [each.body for each in reading(bad).manifests]
    first, second = asked("argocd", world, world)
    assert "unsigned commit" in first
    assert second == ""


def test_an_application_is_waited_for_while_it_is_suspended() -> None:
    """WAV106: by the rendered script for Applications a root waits for a suspended one, not for a healthy one."""
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": argocd_cm(),
    }

    def world(status: str) -> list[dict[str, Any]]:
        def application(name: str, wave: str) -> dict[str, Any]:
            meta = {"name": name, "namespace": "argocd", "annotations": {"argocd.argoproj.io/sync-wave": wave}}
            spec = {
                "project": "default",
                "source": {"repoURL": "https://git.example.com/platform.git", "path": name},
                "destination": {"name": "in-cluster", "namespace": name},
            }
            compared = {"source": spec["source"], "destination": spec["destination"]}
            found = {
                "health": {"status": status},
                "sync": {"status": "Synced", "comparedTo": compared, "revision": "a"},
                "operationState": {"phase": "Succeeded", "syncResult": {"revision": "a"}},
            }
            kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
            return {**kind, "metadata": meta, "spec": spec, "status": found}

        return [settings, application("canary", "0"), application("later", "1")]

    suspended, healthy = asked("argocd", world("Suspended"), world("Healthy"))
    assert "waits for Application canary" in suspended
    assert healthy == ""
    assert rules()["WAV106"].confidence == "certain"


def test_kyverno_leaves_the_policy_out(tmp_path: Path) -> None:
    """POL311: what the webhook refuses, the command line leaves out with the same words."""
    kyverno = program("kyverno")
    resource = tmp_path / "secret.json"
    resource.write_text('{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "default"}}')
    said = {}
    for name, text in zip(("bad", "good"), examples("POL311"), strict=True):
        policy = tmp_path / f"{name}.yaml"
        policy.write_text(text)
        command = [kyverno, "apply", policy, "--resource", resource]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        said[name] = done.stdout + done.stderr
    assert "are allowed in background mode" in said["bad"]
    assert "background" not in said["good"]


def test_leaderworkerset_and_the_rule_agree_on_sizes_and_updates() -> None:
    """SRV254 over a grid: what the rule tells of is what the webhook refuses, and nothing else."""

    def body(replicas: int, update: tuple[Any, Any], size: int, part: int, kind: str) -> dict[str, Any]:
        policy = {"subGroupSize": part} | ({"subGroupPolicyType": kind} if kind else {})
        return {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "llama", "namespace": "serving"},
            "spec": {
                "replicas": replicas,
                "rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": update[0], "maxSurge": update[1]}},
                "leaderWorkerTemplate": {"size": size, "subGroupPolicy": policy, "workerTemplate": {"spec": {}}},
            },
        }

    updates = [(1, 0), (0, 0), (0, 1), ("25%", 0), ("100%", "0%"), ("101%", 0), ("10%", "0%"), (-1, 0)]
    grid = [body(replicas, update, 4, 2, "") for replicas in (0, 1, 2, 4) for update in updates]
    kinds = ("", "LeaderWorker", "LeaderExcluded")
    grid += [body(2, (1, 0), size, part, kind) for size in range(1, 7) for part in range(1, 8) for kind in kinds]
    answers = asked("lws", *([each] for each in grid))
    told = [any(refused(Graph(reading(json.dumps(each)).manifests))) for each in grid]
    assert [bool(answer) for answer in answers] == told
    assert len(set(told)) == 2


ELSEWHERE = {
    "delivery: a wave without quotes is no text": "an annotation that is a number is refused by the API server before",
    "delivery: one object in the folders of two Applications": "the program knows no folders within folders",
    "foreign: a value of an option in capitals": "options of single objects are asked for all over the sync engine",
    "foreign: an option of Applications in an annotation of an object": "as above",
    "slips: a chart beside a path": "the Application is taken, and the path is not read (ApplicationSource.IsHelm)",
}
"""Cases of which the program cannot say what the rule says, with the reason."""


@pytest.mark.parametrize("judge", RELEASED)
def test_what_is_certain_in_a_case_the_released_code_refuses(judge: str) -> None:
    """Every case of tests/cases with a certain finding of a judge's rules, beside the examples of the pages."""
    codes = {case.code for case in cases(judge)}
    told = {}
    for name, case in unit_cases():
        found = findings(case.objects, closed=case.closed, versions=case.versions)
        if any(each.code in codes and each.confidence is Confidence.CERTAIN for each in found):
            told[name] = [each.body for each in manifests(case.objects)]
    answers = asked(judge, *told.values())
    assert {name for name, answer in zip(told, answers, strict=True) if not answer} <= ELSEWHERE.keys()
