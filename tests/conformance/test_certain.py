"""Certain means certain: a real program refuses the bad example of each such rule, and takes the good one.

`certain/judges.yaml` says which program that is. A rule without a judge fails here: it is replayed, or called likely.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml_rs

from blueprint.catalog.rules import rules
from blueprint.catalog.schemas import SchemaPack
from blueprint.check import tree_rules, validate
from blueprint.check.aside import aside
from blueprint.check.engines import engines
from blueprint.check.graph import Graph
from blueprint.check.read import Reading, read_bytes
from blueprint.conform.client import Answer, Client, Target
from blueprint.conform.controlplane import ControlPlane
from blueprint.conform.daemon import NotReady
from blueprint.finding import Confidence
from blueprint.objects import Manifest
from blueprint.render.emit import emit
from tests.check.rules.cases import cases as unit_cases
from tests.check.rules.cases import findings
from tests.conformance.certain.table import ROOT, Case, cases, certain, examples, judge_of, rows, source
from tests.conformance.certain.worlds import World, world
from tests.conformance.conftest import program
from tests.conformance.kueue.oracle import Answer as Decided
from tests.conformance.kueue.oracle import Body, Oracle, running
from tests.conformance.test_kueue_verdicts import ask, body_of

JUDGES = {"apiserver", "text", "kueue", "scheduler", "gator", "flags", "warning", "source", "lacks", "test", "itself"}
NAMESPACE = "certain"


def ids(found: list[Case]) -> Any:
    """A parametrisation by rule."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.code) for case in found])


def reading(text: str) -> Reading:
    """An example as `check` reads it."""
    found = Reading()
    read_bytes(text.encode(), "shown/queues/objects.yaml", found)
    return found


@cache
def pack() -> SchemaPack:
    """The schema pack that is shipped."""
    return SchemaPack.shipped()


@cache
def everything() -> str:
    """The tests of this repository as one text, but for these."""
    files = [path for path in sorted((ROOT / "tests").rglob("*")) if path.suffix in (".py", ".yaml", ".json")]
    return "".join(path.read_text("utf-8", "replace") for path in files if "certain" not in path.parts)


# The table itself


def test_every_certain_rule_has_a_judge() -> None:
    assert [code for code in certain() if judge_of(code) is None] == []
    assert {row.judge for row in rows()} <= JUDGES


def test_no_row_is_about_nothing() -> None:
    starts = [(start, row.judge) for row in rows() for start in row.codes]
    assert [start for start, _ in starts if not any(code.startswith(start) for code in certain())] == []
    assert len({start for start, _ in starts}) == len(starts)


def test_no_finding_is_surer_than_its_rule() -> None:
    sure = {Confidence.CERTAIN: 2, Confidence.LIKELY: 1, Confidence.STYLE: 0}
    for name, case in unit_cases():
        for finding in findings(case.objects, closed=case.closed, versions=case.versions):
            assert sure[finding.confidence] <= sure[Confidence(rules()[finding.code].confidence)], (name, finding)


@ids([case for judge in ("apiserver", "text", "kueue", "scheduler", "gator", "flags") for case in cases(judge)])
def test_check_says_it_of_the_bad_example_only(case: Case) -> None:
    def said(text: str) -> set[str]:
        found = reading(text)
        outcome = validate([*found.manifests, *found.aside], pack(), tree_rules=tree_rules())
        return {finding.code for finding in (*found.findings, *outcome.findings)}

    assert case.bad and case.good
    assert case.code in said(case.bad)
    assert case.code not in said(case.good)


@ids([*cases("test"), *cases("itself")])
def test_a_test_shows_it(case: Case) -> None:
    if case.row.judge == "test":
        file, _, name = case.row.at.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text("utf-8")
    else:
        assert case.code in everything()


@ids([*cases("source"), *cases("lacks")])
def test_the_source_says_it(case: Case) -> None:
    path = source(case.row.at)
    if path is None:
        pytest.skip(f"{case.row.at.partition('@')[0]} is not on this machine")
    text = path.read_text("utf-8")
    assert case.row.says
    assert {words: words in text for words in case.row.says} == dict.fromkeys(case.row.says, case.row.judge == "source")


# kube-apiserver


def sent(plane: ControlPlane, text: str) -> Iterator[tuple[Manifest, Answer]]:
    """What the server says to each object of an example; namespaces are really made, and their labels set."""
    found = reading(text)
    for manifest in sorted(found.manifests, key=lambda each: each.kind != "Namespace"):
        body = manifest.body
        if manifest.kind == "Namespace" and len(manifest.ref.name) < 64 and manifest.ref.name != "kube-system":
            plane.client.apply(body)
        elif manifest.ref.namespace:
            with suppress(NotReady):  # a namespace whose name no server takes
                plane.namespace(manifest.ref.namespace)
        if manifest.kind == "Pod" and isinstance(body.get("spec"), dict):
            _named(plane, body["spec"], manifest.ref.namespace or "default")
        answer = plane.client.create(body, at=_target(body), dry_run=True)
        yield manifest, answer if answer.status != 409 else Answer(200, {}, answer.warnings)


def _named(plane: ControlPlane, spec: Body, namespace: str) -> None:
    """Make what admission plugins look up for a pod."""
    if account := spec.get("serviceAccountName"):
        meta = {"name": account, "namespace": namespace}
        plane.client.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    if name := spec.get("runtimeClassName"):
        kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
        plane.client.apply({**kind, "metadata": {"name": name}, "handler": "runc"})
    if name := spec.get("priorityClassName"):
        how = {"preemptionPolicy": spec["preemptionPolicy"]} if "preemptionPolicy" in spec else {}
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        plane.client.apply({**kind, "metadata": {"name": name}, "value": 9, **how})


def _target(body: Body) -> Target:
    of = Target.of(body)
    meta = body.get("metadata")
    return (
        of if isinstance(meta, dict) and meta.get("namespace") else Target(of.api_version, of.kind, "default", of.name)
    )


@ids(cases("apiserver"))
def test_the_server_refuses_it(case: Case, platform_plane: ControlPlane) -> None:
    good = [answer.message for _, answer in sent(platform_plane, case.good) if not answer.ok]
    bad = [answer.message for _, answer in sent(platform_plane, case.bad) if not answer.ok]
    assert (good, bool(bad)) == ([], True)


@ids(cases("text"))
def test_the_server_does_not_read_it(case: Case, control_plane: ControlPlane) -> None:
    def answer(text: str) -> Answer:
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        path = "/api/v1/namespaces/default/configmaps"
        return control_plane.client.request("POST", path, text.encode(), content_type="application/yaml", query=query)

    assert answer(case.good).ok
    assert not answer(case.bad).ok


@ids(cases("warning"))
def test_the_server_warns_of_it(case: Case, platform_plane: ControlPlane) -> None:
    assert [answer.warnings for _, answer in sent(platform_plane, case.bad) if answer.warnings]
    assert not [answer.warnings for _, answer in sent(platform_plane, case.good) if answer.warnings]


def test_a_status_is_dropped(platform_plane: ControlPlane) -> None:
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": NAMESPACE},
        "spec": {"clusterQueue": "a"},
        "status": {"pendingWorkloads": 3},
    }
    answer = platform_plane.client.create(body, dry_run=True)
    assert answer.ok
    assert "status" not in answer.body or not answer.body["status"].get("pendingWorkloads")


def test_what_json_has_not_cannot_be_sent(control_plane: ControlPlane) -> None:
    text = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": NaN}}'
    assert not control_plane.client.request("POST", "/api/v1/namespaces/default/configmaps", text).ok


@pytest.mark.parametrize(("code", "size"), [("SIZ101", 257), ("SIZ102", 1025), ("SIZ103", 1537)])
def test_what_is_too_large_is_refused(code: str, size: int, platform_plane: ControlPlane) -> None:
    def sized(kib: int) -> Body:
        body: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{NAMESPACE}-{code.lower()}"}}
        text = "x" * (kib * 1024)
        if code == "SIZ101":
            body["metadata"]["annotations"] = {"a": text}
        elif code == "SIZ102":
            body["data"] = {"a": text}
        else:
            # Anything that a CRD lets through unread: etcd's limit is that of the request.
            argument = {"name": "a", "value": text}
            spec = {
                "args": [argument],
                "metrics": [{"name": "m", "provider": {"web": {"url": "http://a", "jsonPath": "$"}}}],
            }
            body |= {"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "spec": spec}
        return body

    def said(body: Body) -> set[str]:
        return {finding.code for finding in validate([Manifest(body, _HERE)], pack()).findings if finding.fails}

    small, large = sized(size - 128), sized(size)
    assert code in said(large) and not said(small)
    assert platform_plane.client.create(small).ok
    platform_plane.client.delete(Target.of(small))
    assert not platform_plane.client.create(large).ok


_HERE = reading("{apiVersion: v1, kind: A, metadata: {name: a}}").manifests[0].source

SECURE = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
    "capabilities": {"drop": ["ALL"]},
}
PODS: dict[str, tuple[str, Body, Body]] = {
    # level, what is added to the spec, what is added to the security context of the container
    "PSS101": ("baseline", {"hostNetwork": True}, {}),
    "PSS102": ("baseline", {}, {"privileged": True, "allowPrivilegeEscalation": True}),
    "PSS103": ("baseline", {}, {"capabilities": {"add": ["SYS_ADMIN"]}, "allowPrivilegeEscalation": True}),
    "PSS104": ("baseline", {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}, {}),
    "PSS107": ("baseline", {}, {"appArmorProfile": {"type": "Unconfined"}}),
    "PSS108": ("baseline", {}, {"seLinuxOptions": {"user": "u"}}),
    "PSS109": ("baseline", {}, {"procMount": "Unmasked"}),
    "PSS110": ("baseline", {}, {"seccompProfile": {"type": "Unconfined"}}),
    "PSS111": ("baseline", {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, {}),
    "PSS201": ("restricted", {"volumes": [{"name": "n", "nfs": {"server": "s", "path": "/"}}]}, {}),
    "PSS202": ("restricted", {}, {"allowPrivilegeEscalation": True}),
    "PSS203": ("restricted", {}, {"runAsNonRoot": False}),
    "PSS204": ("restricted", {}, {"runAsUser": 0}),
    "PSS205": ("restricted", {}, {"seccompProfile": None}),
    "PSS206": ("restricted", {}, {"capabilities": {"drop": ["NET_RAW"]}}),
}


@pytest.mark.parametrize("code", PODS)
def test_pods_that_a_level_does_not_allow_are_refused(code: str, control_plane: ControlPlane) -> None:
    level, added, security = PODS[code]
    name = f"{NAMESPACE}-{level}"
    labels = {"pod-security.kubernetes.io/enforce": level}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    control_plane.namespace(name)
    control_plane.client.apply(namespace)

    def pod(spec: Body, context: Body) -> Body:
        container = {"name": "c", "image": "registry.example.com/c", "securityContext": {**SECURE, **context}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": name}}
        return {**body, "spec": {"containers": [container], **spec}}

    def said(body: Body) -> set[str]:
        found = validate([Manifest(namespace, _HERE), Manifest(body, _HERE)], pack(), tree_rules=tree_rules()).findings
        return {finding.code for finding in found if finding.code.startswith("PSS") and finding.fails}

    good, bad = pod({}, {}), pod(added, security)
    assert said(good) == set()
    assert code in said(bad)
    assert control_plane.client.create(good, dry_run=True).ok
    answer = control_plane.client.create(bad, dry_run=True)
    assert not answer.ok and ("violates PodSecurity" in answer.message or "Unmasked" in answer.message)


# Kueue


@ids(cases("kueue"))
def test_kueue_refuses_it(case: Case) -> None:
    asked = program("kueue-verdicts")

    def refused(text: str) -> list[str]:
        found = reading(text)
        bodies = [body for manifest in (*found.manifests, *found.aside) if (body := body_of(manifest)) is not None]
        return [answer for answer in ask(asked, bodies) if answer]

    assert refused(case.good) == []
    assert refused(case.bad)


@pytest.fixture(scope="module")
def oracle(crds: list[Body]) -> Iterator[Oracle]:
    """Kueue's scheduler."""
    program("minimalkueue")
    with running(crds) as started:
        yield started


def decided(oracle: Oracle, made: World) -> list[Decided]:
    """What the scheduler says to the jobs of a world."""
    client: Client = oracle.client
    for body in made.objects:
        if body["kind"] == "Namespace":
            oracle.plane.namespace(body["metadata"]["name"])
        else:
            oracle.create([body])
    oracle.create(made.nodes)
    oracle.ready()
    oracle.create(made.workloads)
    names = [body["metadata"]["name"] for body in made.workloads]
    answers = oracle.settle(names, quiet=1.0, patience=4.0)
    for node in made.nodes:
        client.delete(Target.of(node))
    return list(answers.values())


@ids(cases("scheduler"))
def test_kueue_never_admits_it(case: Case, oracle: Oracle) -> None:
    verdicts = {}
    for name, text in (("bad", case.bad), ("good", case.good)):
        found = reading(text)
        made = world([*found.manifests, *found.aside], f"{case.code.lower()}-{name}")
        verdicts[name] = all(answer.admitted for answer in decided(oracle, made))
    assert verdicts == {"bad": False, "good": True}


def test_pods_beside_whole_slices_get_no_place(oracle: Oracle) -> None:
    places = {}
    for name, text in zip(("bad", "good"), examples("KQ306"), strict=True):
        found = reading(text)
        (answer,) = decided(oracle, world([*found.manifests, *found.aside], f"kq306-{name}"))
        assert answer.admitted
        (spread,) = answer.spreads.values()
        places[name] = sum(pods for _, pods in spread or ())
    assert places == {"bad": 4, "good": 4}  # of five pods, and of four


# Gatekeeper and vLLM


@ids(cases("gator"))
def test_gator_refuses_it(case: Case, tmp_path: Path) -> None:
    gator = program("gator")
    codes = {}
    for name, text in (("bad", case.bad), ("good", case.good)):
        file = tmp_path / f"{name}.yaml"
        file.write_text("---\n".join(emit(each.body) for each in reading(text).manifests if not aside(each)))
        codes[name] = subprocess.run(
            [gator, "test", "-f", file], capture_output=True, text=True, check=False
        ).returncode
    assert codes["bad"] != 0
    assert codes["good"] == 0


def parser(version: str) -> argparse.ArgumentParser:
    """A parser with the options that `vllm serve` of a version declares (vllm_flags.yaml, made from its sources)."""
    table = yaml_rs.loads((ROOT / "blueprint/catalog/data/vllm_flags.yaml").read_text("utf-8"), parse_datetime=False)
    order = table["versions"]
    made = argparse.ArgumentParser(exit_on_error=False)
    made.add_argument("model_tag", nargs="?")
    types = {"int": int, "float": float}
    for name, spans in table["flags"].items():
        for row in spans:
            if not order.index(row["first"]) <= order.index(version) <= order.index(row.get("last", order[-1])):
                continue
            if row["takes"] == "switch":
                made.add_argument(name, action="store_true")
            elif row["takes"] == "boolean":
                made.add_argument(name, action=argparse.BooleanOptionalAction)
            else:
                count = {"values": "+", "optional": "?"}.get(row["takes"])
                made.add_argument(name, type=types.get(row["type"], str), choices=row.get("choices"), nargs=count)
    return made


@ids(cases("flags"))
def test_the_argument_parser_refuses_it(case: Case) -> None:
    def parses(text: str) -> bool:
        (engine,) = engines(Graph(reading(text).manifests))
        pod = engine.manifest.body["spec"]["containers"][0]
        words = [word for word in pod.get("args", ()) if word != "serve"]
        try:
            left = parser("0.33.0").parse_known_args(words)[1]
        except (argparse.ArgumentError, SystemExit):
            return False
        return left == []

    assert parses(case.good)
    assert not parses(case.bad), json.dumps(case.bad)
