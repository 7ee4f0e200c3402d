"""Rules never end in an exception: any part of any object may be missing, or of the wrong type."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from blueprint.check.rules import across
from blueprint.finding import Source
from blueprint.objects import Manifest
from tests.check.rules.cases import cases, manifests

ODD: tuple[Any, ...] = (
    None,
    "",
    "x",
    "*",
    0,
    -1,
    2.5,
    True,
    [],
    {},
    [None],
    [[]],
    ["x", 1],
    {"x": None},
    {"": [1]},
    "é\n",
)

OBJECTS = [
    manifest
    for _, case in cases()
    for files in (case.objects, case.fixed, case.near)
    if files
    for manifest in manifests(files)
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a body, but the whole."""
    found: list[tuple[Any, ...]] = [path] if path else []
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        found += places(inner, (*path, key))
    return found


def broken(body: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """A copy with one to three places replaced or removed."""
    body = copy.deepcopy(body)
    for _ in range(dice.randint(1, 3)):
        path = dice.choice(places(body) or [("kind",)])
        inner: Any = body
        for step in path[:-1]:
            inner = inner[step]
        if dice.random() < 0.2:
            del inner[path[-1]]
        else:
            inner[path[-1]] = copy.deepcopy(dice.choice(ODD))
        if not body:
            body["kind"] = "x"
    return body


@pytest.mark.parametrize("seed", range(12))
def test_rules_survive_what_they_are_given(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(6):
        chosen = dice.sample(OBJECTS, min(40, len(OBJECTS)))
        tree = [
            Manifest(broken(each.body, dice), Source(f"tree/{n % 5}/x.yaml", n + 1)) for n, each in enumerate(chosen)
        ]
        for finding in across(tree):
            assert finding.message
