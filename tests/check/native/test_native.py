"""Native validation against verdicts of the API server's own code, and for what no server was asked."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.check.names import names
from blueprint.check.native import native
from blueprint.check.sizes import sizes
from blueprint.finding import Confidence, Finding, Source
from blueprint.objects import Manifest
from tests.check.objects import VALIDATOR

HERE = Path(__file__).parent
OBJECTS: list[dict[str, Any]] = yaml_rs.loads((HERE / "objects.yaml").read_text("utf-8"))
CASES: list[dict[str, Any]] = json.loads((HERE / "cases.json").read_text("utf-8"))["cases"]


def judge(body: dict[str, Any]) -> list[Finding]:
    manifest = Manifest(body, Source("a.yaml", 1, 1))
    kind = VALIDATOR.checker.kind_of(manifest)
    return [*native(manifest, kind), *names(manifest, kind), *sizes(manifest, kind)]


def of(index: int) -> dict[str, Any]:
    return copy.deepcopy(OBJECTS[index])


def put(body: Any, path: list[str | int], value: object) -> None:
    for step in path[:-1]:
        body = body[step]
    body[path[-1]] = value


@pytest.mark.parametrize("index", range(len(OBJECTS)), ids=lambda index: OBJECTS[index]["kind"])
def test_valid_objects_have_no_finding(index: int) -> None:
    assert judge(OBJECTS[index]) == []


def test_one_changed_field_is_judged_as_the_server_does() -> None:
    wrong = []
    for case in CASES:
        body, path = of(case["object"]), case["path"]
        if "gone" in case:
            holder = body
            for step in path[:-1]:
                holder = holder[step]
            del holder[path[-1]]
        else:
            put(body, path, case["value"])
        found = sorted({f.code for f in judge(body) if f.fails and f.confidence is Confidence.CERTAIN})
        if found != case["refused"]:
            wrong.append((case, found))
    assert not wrong


def test_every_rule_has_a_case_that_breaks_it_and_one_beside_it() -> None:
    rules = yaml_rs.loads((HERE.parents[2] / "blueprint/catalog/data/rules/nat.yaml").read_text("utf-8"))
    broken = {code for case in CASES for code in case["refused"]}
    assert {rule["code"] for rule in rules} - broken == {"NAT118", "NAT606"}
    assert sum(not case["refused"] for case in CASES) > 500


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 70_000) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for step, member in members for place in places(member, (*path, step)))]


PLACES = [
    (index, place) for index, body in enumerate(OBJECTS) for place in places(body) if place and place[0] != "kind"
]


@settings(max_examples=200)
@given(st.sampled_from(PLACES), ANYTHING)
def test_no_value_anywhere_ends_in_a_crash(place: tuple[int, tuple[str | int, ...]], value: object) -> None:
    body = of(place[0])
    put(body, list(place[1]), value)
    judge(body)


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 80}]}]},
}


def with_probe(port: object) -> dict[str, Any]:
    body = copy.deepcopy(POD)
    put(body, ["spec", "containers", 0, "readinessProbe"], {"httpGet": {"path": "/", "port": port}})
    return body


def test_a_probe_of_a_port_that_is_not_there_is_likely_wrong() -> None:
    (finding,) = judge(with_probe("metrics"))
    assert (finding.code, finding.confidence, finding.path) == (
        "NAT118",
        Confidence.LIKELY,
        "spec.containers[0].readinessProbe.httpGet.port",
    )
    assert not judge(with_probe("http"))
    assert not judge(with_probe(9000))


def test_templates_in_custom_resources_are_likely_findings() -> None:
    pod = {
        "metadata": {},
        "spec": {"containers": [{"name": "pytorch", "volumeMounts": [{"name": "shm", "mountPath": "/d"}]}]},
    }
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "j"},
        "spec": {"pytorchReplicaSpecs": {"Master": {"template": pod}}},
    }
    found = native(Manifest(job, Source("a.yaml")), None)
    assert {(f.code, f.confidence) for f in found} == {("NAT102", Confidence.LIKELY), ("NAT104", Confidence.LIKELY)}
    assert {f.path for f in found} == {
        "spec.pytorchReplicaSpecs.Master.template.spec.containers[0]",
        "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].volumeMounts[0].name",
    }


def test_runtimes_are_completed_by_their_jobs() -> None:
    pod = {"spec": {"containers": [{"name": "node"}]}}
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r"},
        "spec": {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": pod}}}]}}},
    }
    assert native(Manifest(runtime, Source("a.yaml")), None) == []


def analysis(label: str) -> Manifest:
    template = {
        "metadata": {"labels": {"revision": label}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]},
    }
    metric = {"name": "smoke", "provider": {"job": {"spec": {"template": template}}}}
    body = {"kind": "AnalysisTemplate", "metadata": {"name": "a"}, "spec": {"metrics": [metric]}}
    return Manifest({"apiVersion": "argoproj.io/v1alpha1", **body}, Source("a.yaml"))


def test_templates_with_arguments_wait_for_them() -> None:
    assert native(analysis("{{args.revision}}"), None) == []
    assert [f.code for f in native(analysis("v1"), None)] == ["NAT102"]


def test_versions_that_are_gone_are_left_to_the_schema_check() -> None:
    body = {"apiVersion": "apps/v1beta1", "kind": "Deployment", "metadata": {"name": "a"}}
    assert (
        native(Manifest({**body, "spec": {"template": {"spec": {"containers": [{}]}}}}, Source("a.yaml")), None) == []
    )


@pytest.mark.parametrize(
    ("requests", "limits", "codes"),
    [
        ({"nvidia.com/gpu": 4}, {"nvidia.com/gpu": "4"}, []),
        ({"nvidia.com/gpu": 2}, {"nvidia.com/gpu": 4}, ["NAT109"]),
        ({"nvidia.com/gpu": 4}, {}, ["NAT109"]),
        ({}, {"nvidia.com/gpu": 4}, []),
        ({}, {"nvidia.com/gpu": "500m"}, ["NAT108"]),
        ({"memory": "1Gi"}, {"memory": "1024Mi"}, []),
        ({"memory": "1Gi"}, {"memory": "1000Mi"}, ["NAT109"]),
        ({"gpu": 1}, {}, ["NAT108"]),
        ({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"}, ["NAT108"]),
        ({"hugepages-2Mi": "4Mi", "cpu": 1}, {"hugepages-2Mi": "4Mi"}, []),
        ({"hugepages-2Mi": "3Mi", "cpu": 1}, {"hugepages-2Mi": "3Mi"}, ["NAT108", "NAT108"]),
        ({"cpu": -1}, {}, ["NAT108"]),
    ],
)
def test_amounts(requests: dict[str, Any], limits: dict[str, Any], codes: list[str]) -> None:
    body = copy.deepcopy(POD)
    body["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": limits}  # type: ignore[index]
    assert [f.code for f in judge(body)] == codes


@pytest.mark.parametrize(
    ("expression", "sure"),
    [
        ("device.driver == 'gpu.example.com'", None),
        ("device.attributes['gpu.example.com'].model.lowerAscii().matches('^a')", None),
        ("quantity('1Gi').isGreaterThan(quantity('1Mi'))", None),
        ("device.driver ==", True),
        ("devices.driver == 'x'", False),
        ("['a'].exists(driver, driver == device.driver)", None),
    ],
)
def test_expressions(expression: str, sure: bool | None) -> None:
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    found = judge(body)
    assert [f.confidence is Confidence.CERTAIN for f in found] == ([] if sure is None else [sure])


def definition(*versions: dict[str, Any], **spec: Any) -> list[tuple[str, str]]:
    names = {"kind": "Fake", "plural": "fakes"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "fakes.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": list(versions), **spec},
    }
    return [(finding.code, finding.path) for finding in judge(body)]


SERVED = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}


def test_versions_of_a_definition_need_schemas_and_one_is_stored() -> None:
    assert not definition(SERVED)
    assert not definition(SERVED, {**SERVED, "name": "v2", "storage": False})
    assert definition({**SERVED, "schema": {}}) == [("NAT606", "spec.versions[0].schema")]
    assert definition(SERVED, {**SERVED, "name": "v2"}) == [("NAT606", "spec.versions")]
    assert definition({**SERVED, "storage": False}) == [("NAT606", "spec.versions")]
    assert definition(SERVED, {**SERVED, "storage": False}) == [("NAT606", "spec.versions")]
    assert definition(SERVED, preserveUnknownFields=True) == [("NAT606", "spec.preserveUnknownFields")]


def test_claims_that_a_controller_makes_are_volumes() -> None:
    mount = {"name": "data", "mountPath": "/d"}
    pod = {"spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": [mount]}]}}
    claims: list[dict[str, Any]] = [{"metadata": {"name": "data"}}]
    body: dict[str, Any] = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "w"},
        "spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": pod, "volumeClaimTemplates": claims}},
    }
    assert not native(Manifest(body, Source("a.yaml")), None)
    claims[0]["metadata"]["name"] = "other"
    assert {f.code for f in native(Manifest(body, Source("a.yaml")), None)} == {"NAT104"}


@pytest.mark.parametrize(("port", "said"), [(30000, []), (32767, []), (8080, ["NAT301"]), (80000, ["NAT301"])])
def test_node_ports_are_of_the_range_that_servers_use(port: int, said: list[str]) -> None:
    ports = [{"port": 80, "nodePort": port}]
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"type": "NodePort", "ports": ports},
    }
    assert [finding.code for finding in judge(body)] == said
    assert all(finding.confidence is Confidence.LIKELY for finding in judge(body))
