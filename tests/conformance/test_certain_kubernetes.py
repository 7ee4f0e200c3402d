"""Certain means certain, where Kubernetes' own code judges what its API server takes: kubelet, kubectl, audit."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from blueprint.check.images import image
from blueprint.conform.controlplane import ControlPlane
from blueprint.finding import Confidence
from tests.conformance.certain.replay import ids, reading
from tests.conformance.certain.table import Case, cases, examples
from tests.conformance.conftest import program

Question = dict[str, Any]


def ask(questions: list[Question]) -> list[str]:
    """What Kubernetes says to each question, "" where it takes it."""
    lines = "\n".join(map(json.dumps, questions))
    asked = [program("kubernetes-verdicts")]
    done = subprocess.run(asked, input=lines, capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_images(text: str) -> Iterator[Question]:
    """Every image of the pods, for the kubelet."""
    for manifest in reading(text).manifests:
        for named in manifest.body["spec"]["containers"]:
            yield {"image": named["image"]}


def of_files(text: str) -> Iterator[Question]:
    """The file as it is, for kubectl."""
    yield {"file": text}


def of_durations(text: str) -> Iterator[Question]:
    """The time to live of a schedule's backups, whose type is that of durations (velero pkg/apis/velero/v1)."""
    for manifest in reading(text).manifests:
        yield {"duration": manifest.body["spec"]["template"]["ttl"]}


ASKED: dict[str, Callable[[str], Iterator[Question]]] = {
    "IMG101": of_images,
    "YML110": of_files,
    "YML111": of_files,
    "SCH116": of_durations,
}


@ids(cases("kubernetes"))
def test_kubernetes_cannot_read_it(case: Case) -> None:
    questions = ASKED[case.code]
    assert not any(ask(list(questions(case.good))))
    assert any(ask(list(questions(case.bad))))


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n--- # a comment\n", True),
        ("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}", True),
        ("{apiVersion: v1, kind: List, items: [a]}", False),
        ("{apiVersion: v1, metadata: {name: a}}", False),
        ("{apiVersion: v1, kind: '', metadata: {name: a}}", False),
        ("{apiVersion: v1, kind: 3, metadata: {name: a}}", False),
    ],
)
def test_objects_are_read_as_kubectl_does(text: str, taken: bool) -> None:
    assert (ask([{"file": text}]) == [""]) is taken
    assert ([each.code for each in reading(text).findings if each.fails] == []) is taken


def test_a_missing_version_is_called_likely() -> None:
    """kubectl's reader takes the file; what refuses it is the server's, which is not asked here."""
    text = "{kind: ConfigMap, metadata: {name: a}}"
    assert ask([{"file": text}]) == [""]
    assert [each.confidence for each in reading(text).findings] == [Confidence.LIKELY]


DIGEST = "@sha256:" + "0123456789abcdef" * 4
PARTS = ("a", "A", "a-b", "a--b", "a__b", "a_", "a.b", "a..b", "1", "0123456789abcdef" * 4, "")
HOSTS = (
    "",
    "a.example.com/",
    "A.example.com/",
    "localhost/",
    "host:5000/",
    "host:/",
    "[::1]:5000/",
    "a b/",
    "https://a/",
)
ENDS = (
    "",
    ":1",
    ":v1.2_3-4",
    ":-1",
    ":" + "1" * 128,
    ":" + "1" * 129,
    ":1 ",
    DIGEST,
    f":1{DIGEST}",
    DIGEST[:-1],
    "@md5:0",
)


def test_every_image_is_read_as_the_kubelet_does() -> None:
    names = ["".join(each) for each in itertools.product(HOSTS, PARTS, ENDS)]
    names += [f"a/{part}:1" for part in PARTS] + [
        "a" * 255,
        "a" * 256,
        "a/" * 100 + "a",
        f"a/{'b' * 254}",
        f"a/{'b' * 256}",
        f"a.example.com/{'b' * 255}",
        f"a.example.com/{'b' * 256}",
        f"docker.io/{'b' * 247}",
        f"docker.io/{'b' * 248}",
    ]
    said = ask([{"image": name} for name in names])
    wrong = {name: (found, image(name).problem) for name, found in zip(names, said, strict=True) if name}
    assert {name: both for name, both in wrong.items() if bool(both[0]) is not bool(both[1])} == {}


def audited(policy: Any, folder: Path) -> set[str]:
    """The levels at which an API server with a policy writes down what is done with workloads."""
    folder.mkdir()
    file, log = folder / "policy.json", folder / "audit.log"
    file.write_text(json.dumps(policy))
    flags = [f"--audit-policy-file={file}", f"--audit-log-path={log}", "--audit-log-mode=blocking"]
    with ControlPlane(flags=flags) as plane:
        people = (plane.client, plane.client.acting_as("somebody", "people"))
        paths = ("/workloads", "/namespaces/default/workloads/a", "/namespaces/default/workloads/a/status")
        for client, verb, path in itertools.product(people, ("GET", "POST", "PUT", "PATCH", "DELETE"), paths):
            client.request(verb, f"/apis/kueue.x-k8s.io/v1beta2{path}", b"{}" if verb != "GET" else None)
    events = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    return {each["level"] for each in events if each.get("objectRef", {}).get("resource") == "workloads"}


def test_an_audit_rule_behind_one_that_takes_everything_is_never_asked(tmp_path: Path) -> None:
    levels = {}
    for name, text in zip(("bad", "good"), examples("POL502"), strict=True):
        (policy,) = (each.body for each in (*reading(text).manifests, *reading(text).aside))
        levels[name] = audited(policy, tmp_path / name)
    assert levels == {"bad": {"Metadata"}, "good": {"RequestResponse"}}
