"""What a pod asks for: init containers, sidecars, overhead, LimitRanges, transformations.

Restates kueue v0.17.0 pkg/workload/resources_test.go, pkg/util/limitrange/limitrange_test.go and the rules of
k8s.io/component-helpers v0.35.3 resource/helpers.go.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from blueprint.admission.amounts import amount, shown
from blueprint.admission.requests import bounds, charged, invalid, needs
from blueprint.admission.settings import find_settings
from tests.admission.writing import Body, manifests

NONE = bounds([], "Container")


def container(cpu: Any, /, *, sidecar: bool = False, **limits: Any) -> Body:
    resources = ({"requests": {"cpu": cpu}} if cpu is not None else {}) | ({"limits": limits} if limits else {})
    return {"name": "c", "resources": resources} | ({"restartPolicy": "Always"} if sidecar else {})


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container(1), container(2)]}, 3),
        ({"containers": [container(1)], "initContainers": [container(5), container(2)]}, 5),
        ({"containers": [container(1)], "initContainers": [container(2, sidecar=True)]}, 3),
        ({"containers": [container(1)], "initContainers": [container(2, sidecar=True), container(4)]}, 6),
        ({"containers": [container(1)], "initContainers": [container(4), container(2, sidecar=True)]}, 4),
        ({"containers": [container(1)], "overhead": {"cpu": "250m"}}, Fraction(5, 4)),
        ({"containers": [container(1)], "resources": {"requests": {"cpu": 7}}}, 7),
        ({"containers": [container(1)], "resources": {"limits": {"cpu": 7}}}, 1),
        ({"containers": [container(None, cpu=3)]}, 3),
    ],
)
def test_requests_of_a_pod(spec: Body, cpu: int) -> None:
    assert needs(spec, NONE, {}).total == {"cpu": cpu}


def test_overhead_of_the_runtime_class_counts_where_the_pod_has_none() -> None:
    spec = {"containers": [container(1)]}
    assert needs(spec, NONE, {"cpu": Fraction(1)}).total == {"cpu": 2}
    assert needs(spec | {"overhead": {"cpu": 3}}, NONE, {"cpu": Fraction(1)}).total == {"cpu": 4}


def limit_range(kind: str = "Container", **item: Body) -> Body:
    meta = {"name": "l", "namespace": "a"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": [{"type": kind, **item}]}}


@pytest.mark.parametrize(
    ("item", "written", "request_", "limit"),
    [
        ({"default": {"cpu": 2}}, None, 2, 2),
        ({"defaultRequest": {"cpu": 1}}, None, 1, None),
        ({"default": {"cpu": 2}, "defaultRequest": {"cpu": 1}}, None, 1, 2),
        ({"max": {"cpu": 4}}, None, 4, 4),
        ({"min": {"cpu": 1}}, None, 1, None),
        ({"min": {"cpu": 1}, "max": {"cpu": 4}}, None, 4, 4),
        ({"default": {"cpu": 2}}, 1, 1, 2),
    ],
)
def test_limit_ranges_are_completed_on_write(item: Body, written: int | None, request_: int, limit: int | None) -> None:
    found = needs({"containers": [container(written)]}, bounds(manifests(limit_range(**item)), "Container"), {})
    assert found.containers[0].requests.get("cpu") == request_
    assert found.containers[0].limits.get("cpu") == limit


def test_a_default_request_comes_before_a_written_limit() -> None:
    found = needs(
        {"containers": [container(None, cpu=8)]},
        bounds(manifests(limit_range(defaultRequest={"cpu": 1})), "Container"),
        {},
    )
    assert found.total == {"cpu": 1}


def test_resources_that_nobody_wrote_are_told_apart() -> None:
    ranges = bounds(manifests(limit_range(defaultRequest={"ephemeral-storage": "1Gi", "cpu": 1})), "Container")
    assert set(needs({"containers": [container(2)]}, ranges, {}).hidden) == {"ephemeral-storage"}


@pytest.mark.parametrize(
    ("ranges", "body", "codes"),
    [
        ([], container(2, cpu=1), ["KQ208"]),
        ([limit_range(max={"cpu": 1})], container(2), ["KQ208", "KQ209"]),
        ([limit_range(min={"cpu": 3})], container(2, cpu=4), ["KQ209"]),
        ([limit_range("Pod", max={"cpu": 1})], container(2), ["KQ209"]),
        ([limit_range("Pod", min={"cpu": 3})], container(2), ["KQ209"]),
        ([limit_range("PersistentVolumeClaim", max={"cpu": 1})], container(2), []),
        ([limit_range(max={"memory": "1Gi"})], container(2), []),
    ],
)
def test_what_limit_ranges_refuse(ranges: list[Body], body: Body, codes: list[str]) -> None:
    given = manifests(*ranges)
    inner, whole = bounds(given, "Container"), bounds(given, "Pod")
    pod = needs({"containers": [body]}, inner, {})
    assert [reason.code for reason in invalid("p", pod, inner, whole)] == codes


def settings(resources: Body) -> Any:
    body = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "resources": resources}
    return find_settings(manifests(body), "0.17.0")


def test_excluded_prefixes_and_transformations() -> None:
    total = {
        "example.com/mig-1g": Fraction(2),
        "example.com/mig-2g": Fraction(1),
        "cpu": Fraction(1),
        "net/x": Fraction(1),
    }
    rules = settings(
        {
            "excludeResourcePrefixes": ["net/"],
            "transformations": [
                {"input": "example.com/mig-1g", "strategy": "Replace", "outputs": {"memory": "5Gi", "credits": 10}},
                {"input": "example.com/mig-2g", "strategy": "Retain", "outputs": {"memory": "10Gi"}},
            ],
        }
    )
    assert charged(total, rules) == {"memory": 20 * 2**30, "credits": 20, "example.com/mig-2g": 1, "cpu": 1}


def test_multiplied_transformations() -> None:
    rules = settings(
        {"transformations": [{"input": "gpu", "strategy": "Replace", "multiplyBy": "cpu", "outputs": {"w": 3}}]}
    )
    assert charged({"gpu": Fraction(2), "cpu": Fraction(4)}, rules) == {"w": 24, "cpu": 4}


@pytest.mark.parametrize(
    ("name", "value", "integer"), [("cpu", "1.5", 1500), ("cpu", "0.0001", 1), ("memory", "1.5", 2)]
)
def test_integers(name: str, value: str, integer: int) -> None:
    assert amount(name, Fraction(value)) == integer


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("cpu", 1500, "1500m"), ("memory", 2**31, "2Gi"), ("nvidia.com/gpu", 8, "8"), ("memory", 1000, "1k")],
)
def test_integers_as_people_write_them(name: str, value: int, text: str) -> None:
    assert shown(name, value) == text
