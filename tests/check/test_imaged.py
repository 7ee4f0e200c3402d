"""Every image of every kind: what the table says is found, and it leaves out no image that a schema has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from blueprint.catalog.references import steps
from blueprint.catalog.schemas import Kind, SchemaPack
from blueprint.catalog.tables import table
from blueprint.check.imaged import images
from blueprint.finding import Source
from blueprint.objects import Manifest

ROWS = table("images")["kinds"]


def _within(way: tuple[str, ...], leaf: Any) -> Any:
    """The smallest object that has a leaf at the end of a path."""
    for step in reversed(way):
        leaf = [leaf] if step == "[]" else {"key" if step == "{}" else step: leaf}
    return leaf


def _merged(first: Any, second: Any) -> Any:
    if isinstance(first, dict) and isinstance(second, dict):
        both = first.keys() & second.keys()
        return first | second | {key: _merged(first[key], second[key]) for key in both}
    if isinstance(first, list) and isinstance(second, list):
        return [_merged(first[0], second[0])]
    return second


POD = {
    "containers": [{"name": "a", "image": "r/containers"}],
    "initContainers": [{"name": "b", "image": "r/init"}],
    "volumes": [{"name": "v", "image": {"reference": "r/volume", "pullPolicy": "Never"}}],
}


@pytest.mark.parametrize("kind", ROWS)
def test_every_path_of_the_table_is_read(kind: str) -> None:
    name, _, group = kind.partition(".")
    body: Any = {"apiVersion": f"{group}/v1", "kind": name, "metadata": {"name": "x"}}
    for path in ROWS[kind]["images"]:
        body = _merged(body, _within(steps(path), f"r/{path}"))
    for path in ROWS[kind]["pods"]:
        body = _merged(body, _within(steps(path), POD))
    found = [(one.path, one.text) for one in images(Manifest(body, Source("a.yaml")))]
    assert {f"r/{path}" for path in ROWS[kind]["images"]} <= {text for _, text in found}
    texts = [text for _, text in found]
    for text in ("r/containers", "r/init", "r/volume"):
        assert texts.count(text) >= len(ROWS[kind]["pods"])
    assert len({path for path, _ in found}) == len(found), "no image is told twice"
    assert ROWS[kind]["source"]


@pytest.mark.parametrize("image", [None, 5, [], {}, ""])
def test_fields_that_hold_no_text(image: object) -> None:
    body = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "x"},
        "spec": {"trainer": {"image": image}},
    }
    assert [one.text for one in images(Manifest(body, Source("a.yaml")))] == [""] * (image == "")


def test_another_group_has_other_fields() -> None:
    body = {"apiVersion": "example.com/v1", "kind": "TrainJob", "spec": {"trainer": {"image": "r/x"}}}
    assert list(images(Manifest(body, Source("a.yaml")))) == []


def test_when_an_image_is_pulled_stands_beside_it() -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "spec": POD}
    policies = [one.policy for one in images(Manifest(body, Source("a.yaml")))]
    assert policies[-1] == ("spec.volumes[0].image.pullPolicy", "Never")
    assert policies[0] == ("spec.initContainers[0].imagePullPolicy", None)


# --- the schema pack

CONTAINERS = ("containers", "initContainers", "ephemeralContainers")

#: Fields of that name that no container runs: policies that look at images, what a node has, block devices, and
#: deprecated names without a version.
NO_IMAGE = re.compile(
    r"(Node|.*Policy|ClusterPolicy|UpdateRequest|.*Report|WasmPlugin|TrafficExtension|CustomResourceDefinition) "
    r"|.*\.rbd\.image$|.*\.baseImage$|.*osImage$|status\..*"
)


def _images(kind: Kind, schema: Any, way: str, seen: tuple[int, ...] = ()) -> Iterator[str]:
    schema = kind.resolve(schema)
    if not isinstance(schema, dict) or id(schema) in seen or len(seen) > 24:
        return
    seen = (*seen, id(schema))
    for name, below in (schema.get("properties") or {}).items():
        place = f"{way}.{name}" if way else name
        if name in CONTAINERS:
            yield f"{place}[].image"
        elif re.fullmatch(r"image|\w+Image", name) and kind.resolve(below).get("type") == "string":
            yield place
        else:
            yield from _images(kind, below, place, seen)
    for key, mark in (("additionalProperties", "{}"), ("items", "[]")):
        if isinstance(schema.get(key), dict) and way:
            yield from _images(kind, schema[key], way + mark, seen)


def _examined() -> list[tuple[str, str]]:
    """Kinds that can run something: policies and reports repeat the schemas of pods without running any."""
    unlike = ("kyverno.io", "wgpolicyk8s.io", "gatekeeper.sh", "cilium.io", "istio.io", "apiextensions.k8s.io")
    return [
        (version, kind)
        for version, kind in SchemaPack.shipped().kinds()
        if not version.partition("/")[0].endswith(unlike)
    ]


@pytest.mark.parametrize(("version", "kind"), _examined())
def test_no_image_of_a_schema_is_left_out(version: str, kind: str) -> None:
    known = SchemaPack.shipped().kind(version, kind)
    assert known is not None
    ways = {
        way
        for way in _images(known, known.schema, "")
        if not NO_IMAGE.match(f"{kind} {way}") and not NO_IMAGE.match(way)
    }
    for way in ways:
        body = _merged({"apiVersion": version, "kind": kind}, _within(steps(way), "r/found"))
        assert [one.text for one in images(Manifest(body, Source("a.yaml")))] == ["r/found"], way
