"""Places read off the lines of a document are those that the parser finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blueprint.check import outline
from blueprint.check.goyaml import compose
from blueprint.check.locate import deepest
from blueprint.check.read import Reading, read_bytes

GOLDEN = Path(__file__).parents[1] / "golden"
Steps = tuple[str | int, ...]


def steps_of(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    """Every path of a body, and some that lead past it."""
    if isinstance(value, dict):
        yield (*steps, "missing")
        for key, member in value.items():
            yield from [(*steps, key), *steps_of(member, (*steps, key))]
    elif isinstance(value, list):
        yield (*steps, len(value))
        for index, member in enumerate(value):
            yield from [(*steps, index), *steps_of(member, (*steps, index))]
    else:
        yield (*steps, "below")


def parsed(text: str, steps: Steps) -> tuple[int, int]:
    """Where the parser finds a field, or its nearest parent."""
    node = compose(text)
    assert node is not None
    place = deepest(node, steps)
    return place.line, place.column


def agree(text: str) -> int:
    """Compare every path of a document; how many places were read off the lines."""
    if not outline.readable(text):
        return 0
    reading = Reading()
    read_bytes(text.encode(), "a.yaml", reading)
    found = 0
    for manifest in reading.manifests:
        for steps in steps_of(manifest.body):
            place = outline.place(text.split("\n"), manifest.source.line - 1, steps)
            if place is not None:
                found += 1
                assert place == parsed(text, steps), steps
    return found


FILES = sorted(GOLDEN.rglob("*.yaml"))[::7]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_golden_trees(file: Path) -> None:
    agree(file.read_text("utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    args:\n    - x\n    - y\n  - name: b\n",
        "apiVersion: v1\nkind: Pod\nspec:\n    containers:\n      - args: [a, b]\n        name: a\n    # end\n",
        'apiVersion: v1\nkind: ConfigMap\n"data":\n  \'a.b\': |\n    kind: x\n   \n    data:\n  c: "x: y"\n',
        "apiVersion: v1\nkind: ConfigMap\ndata: &all\n  a: b\nmore: *all\n",
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: one\n    two\n  b: >-\n   folded: text\n",
        "# head\napiVersion: v1\n\nkind: Pod\nmetadata:\n# here\n  labels:\n    # here\n    example.com/name: a\n",
        "apiVersion: v1\nkind: Pod\nspec:\n- - a\n  - b\n-\n  c: d\n- {e: f}\n",
        "apiVersion: v1\nkind: Pod\nspec:\nstatus:\n  a:\n  b: ~\n",
        "{apiVersion: v1, kind: Pod, spec: {a: b}}\n",
        "apiVersion: v1\nkind: Pod\nspec:\n  ? a\n  : b\n  <<: {c: d}\n",
    ],
)
def test_forms_of_yaml(text: str) -> None:
    agree(text)


@pytest.mark.parametrize("value", ["'one\n  two'", '"one\ntwo"', '"a \\"', "'it''s\n more'"])
def test_a_quoted_text_over_lines_is_left_to_the_parser(value: str) -> None:
    assert not outline.readable(f"kind: {value}\n")
    assert not outline.readable(f"list:\n- {value}\n")


@pytest.mark.parametrize("value", ["'it''s'", '"a \\" b"', "don't", '-p "x"', "[a, 'b']"])
def test_a_text_on_one_line_is_not(value: str) -> None:
    assert outline.readable(f"kind: {value}\nspec: b\n")


def test_most_places_need_no_parser() -> None:
    text = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: b\n"
    assert agree(text) > 5
