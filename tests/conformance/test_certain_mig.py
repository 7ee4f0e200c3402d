"""Certain means certain about MIG: the places are those that NVIDIA's own library gives, asked as on a node.

Only of GPUs whose places NVML gives (`placed` in the table) is anything called certain: the mocks of later GPUs have
smaller sizes for some profiles than the guide, and nothing here decides between them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from blueprint.catalog.gpus import Gpu, geometry, gpu, gpus
from blueprint.check import tree_rules, validate
from blueprint.finding import Confidence
from tests.conformance.certain.replay import pack, reading
from tests.conformance.certain.table import examples
from tests.conformance.conftest import program

Place = tuple[int, int]
Nvml = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def nvml() -> Nvml:
    """The profiles of each GPU that NVIDIA's library has as a mock, by the mock."""
    done = subprocess.run([program("nvml-placements")], capture_output=True, text=True, check=True, timeout=60)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {each["mock"]: each["profiles"] for each in found}


def placed() -> list[Gpu]:
    """The GPUs whose places NVML gives."""
    return [each for each in gpus() if each.placed]


def known(of: Gpu, nvml: Nvml) -> list[dict[str, Any]]:
    """The profiles of a GPU as NVML has them."""
    (found,) = (profiles for mock, profiles in nvml.items() if f"nvml {mock}" in of.source)
    return found


def places(of: Gpu, name: str, nvml: Nvml) -> list[Place]:
    """Where NVML lets an instance of a profile start: the one with its slices and the memory nearest to its name."""
    profile = of.profile(name)
    assert profile
    rows = [row for row in known(of, nvml) if row["slices"] == profile.shape.g]
    row = min(rows, key=lambda each: abs(each["memory"] / 1024 - profile.memory_gb))
    return [(each["start"], each["size"]) for each in row["places"]]


def arranged(wish: Sequence[list[Place]], taken: frozenset[int] = frozenset()) -> Iterator[frozenset[int]]:
    """Every way to put the instances into places that do not overlap."""
    if not wish:
        yield taken
        return
    for start, size in wish[0]:
        slots = frozenset(range(start, start + size))
        if not slots & taken:
            yield from arranged(wish[1:], taken | slots)


@pytest.mark.parametrize("of", placed(), ids=lambda of: of.name)
def test_the_table_has_the_places_of_nvml(of: Gpu, nvml: Nvml) -> None:
    for profile in of.profiles:
        shape = profile.shape
        assert places(of, profile.name, nvml) == [(start, shape.size) for start in shape.starts], profile.name
    assert {row["slices"] for row in known(of, nvml)} == {profile.shape.g for profile in of.profiles}


def test_no_places_of_nvml_hold_the_instances(nvml: Nvml) -> None:
    for text, feasible in zip(examples("KQ602"), (False, True), strict=True):
        (pool,) = reading(text).aside
        wish = [name for name, number in pool.body["spec"]["mig"]["geometry"].items() for _ in range(number)]
        card = gpu(pool.body["spec"]["gpu"])
        assert card and card.placed
        assert any(arranged([places(card, name, nvml) for name in wish])) is feasible
        found = validate([pool], pack(), tree_rules=tree_rules()).findings
        assert [each.confidence for each in found if each.code == "KQ602"] == [Confidence.CERTAIN] * (not feasible)


def test_what_only_the_guide_says_is_called_likely() -> None:
    text = examples("KQ602")[0].replace("NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3")
    text = text.replace("3g.20gb", "3g.40gb").replace("1g.5gb", "1g.10gb")
    found = validate(reading(text).aside, pack(), tree_rules=tree_rules()).findings
    assert [each.confidence for each in found if each.code == "KQ602"] == [Confidence.LIKELY]


@pytest.mark.parametrize("of", placed(), ids=lambda of: of.name)
def test_every_wish_is_judged_as_the_places_have_it(of: Gpu, nvml: Nvml) -> None:
    """All wishes of up to four instances of the plain profiles."""
    names = [each.name for each in of.profiles if not each.media]

    def wishes(rest: Sequence[str], length: int) -> Iterator[list[str]]:
        yield []
        if length:
            for index, name in enumerate(rest):
                for more in wishes(rest[index:], length - 1):
                    yield [name, *more]

    for wish in filter(None, wishes(names, 4)):
        fits = any(arranged([places(of, name, nvml) for name in wish]))
        assert geometry(of, wish).fits is fits, wish
