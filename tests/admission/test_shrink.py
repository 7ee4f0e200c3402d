"""Shrinking a world in which two deciders disagree: with a disagreement that is put in, the smallest cause is left."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from blueprint.admission.decide import Decision, decide
from blueprint.admission.world import world
from blueprint.finding import Source
from blueprint.objects import Manifest
from tests.conformance.kueue.shrink import prefix, renamed, shrink, size, written
from tests.conformance.kueue.worlds import Body, Made, Maker


def decided(made: Made) -> Decision:
    manifests = [Manifest(body, Source("world", n)) for n, body in enumerate([*made.objects, *made.workloads])]
    return decide(world(manifests), manifests[-1])


def without(made: Made, kind: str, field: str) -> Made:
    """What a decider reads that overlooks a field."""
    objects: list[Body] = copy.deepcopy(made.objects)
    for body in objects:
        if body["kind"] == kind:
            body.get("spec", {}).pop(field, None)
    return Made(made.seed, objects, made.workloads)


def overlooks(kind: str, field: str) -> Any:
    """A judge between us and a decider with that fault."""

    def judge(worlds: list[Made]) -> list[bool]:
        return [decided(made).admissible is not decided(without(made, kind, field)).admissible for made in worlds]

    return judge


@pytest.mark.parametrize(
    ("kind", "field", "kinds"),
    [
        ("ResourceFlavor", "nodeTaints", {"Namespace", "ResourceFlavor", "ClusterQueue", "LocalQueue"}),
        ("ClusterQueue", "stopPolicy", {"Namespace", "ClusterQueue", "LocalQueue"}),
    ],
)
def test_the_smallest_cause_is_left(kind: str, field: str, kinds: set[str]) -> None:
    judge = overlooks(kind, field)
    made = next(made for seed in range(2000) if judge([made := Maker(seed).make()]) == [True])
    small = shrink(made, judge)
    assert judge([small]) == [True]
    assert size(small) < size(made) / 2
    assert {body["kind"] for body in small.objects} <= kinds
    assert field in yaml.safe_dump(small.objects)
    assert shrink(small, judge) == small, "nothing more can go"
    assert yaml.safe_load(written(small, "why"))["objects"] == small.objects


def test_only_the_workloads_that_matter_are_left() -> None:
    made = Maker(3, rivals=True).make()
    wanted = made.workloads[2]["metadata"]["name"]

    def judge(worlds: list[Made]) -> list[bool]:
        return [any(body["metadata"]["name"] == wanted for body in each.workloads) for each in worlds]

    small = shrink(made, judge)
    assert [body["metadata"]["name"] for body in small.workloads] == [wanted]
    assert [body["kind"] for body in small.objects] == ["Namespace"]


def test_another_name_is_another_name_everywhere() -> None:
    made = Maker(7, rivals=True, fair=True).make()
    other = renamed(made, "s1", 1)
    assert prefix(other) == "s1"
    assert prefix(made) not in yaml.safe_dump(other.objects + other.workloads)
    assert renamed(other, prefix(made), made.seed) == made
