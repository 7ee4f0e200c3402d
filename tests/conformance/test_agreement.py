"""`check` and a real API server judge the same thousands of broken objects.

Where they differ, the class of the difference is a row of docs/agreement.md, with its reason; any other fails.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import Validator
from blueprint.check.read import Reading, read_bytes
from blueprint.conform.agreement import Layer, agreement
from blueprint.conform.mutate import Label
from blueprint.finding import Source
from blueprint.objects import Manifest

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[1] / "docs" / "agreement.md"
SEED, EACH = 35, 12


class Checked:
    """What `blueprint check` says; of what is hardly an object, already its reader does."""

    def __init__(self, pack):
        self.validator = Validator(pack)

    def create(self, manifest):
        if manifest.api_version and manifest.kind:
            return self.validator.create(manifest)
        reading = Reading()
        read_bytes(json.dumps(manifest.body).encode(), "object.json", reading)
        assert reading.manifests == []
        return reading.findings

    def update(self, new, old):
        return self.validator.update(new, old)


@pytest.fixture(scope="module")
def verdicts(platform_plane):
    pack = SchemaPack.shipped()
    bodies = [
        body for file in sorted((HERE / "samples").glob("*.yaml")) for body in yaml.safe_load_all(file.read_text())
    ]
    for name in {body["metadata"].get("namespace") for body in bodies} - {None} | {"default"}:
        platform_plane.namespace(name)
    objects = [(Manifest(body, Source("sample")), pack.kind(body["apiVersion"], body["kind"])) for body in bodies]
    assert len({kind.kind for _, kind in objects}) >= 60
    return agreement(objects, Checked(pack), platform_plane.client, seed=SEED, each=EACH)


@pytest.fixture(scope="module")
def documented():
    """Direction, layer, label and kind of each row of the document's table."""
    row = re.compile(r"^\| (lax|strict) \| ([a-z]+) \| ([^|]+?) \| ([^|]+?) \|", re.MULTILINE)
    return {
        (direction, Layer(layer), Label(label), kind)
        for direction, layer, label, kinds in row.findall(DOCUMENT.read_text("utf-8"))
        for kind in kinds.split(", ")
    }


def test_every_sample_is_accepted_whole_by_both(verdicts):
    assert verdicts.spoilt == ()


def test_there_are_thousands_of_mutations_of_every_label_on_both_sides(verdicts):
    assert len(verdicts.cases) >= 2000
    counts = verdicts.verdicts()
    for label in Label:
        refused = sum(count for (said, layer), count in counts.items() if said is label and layer is not Layer.ACCEPTED)
        assert refused >= 20, label
    assert {layer for _, layer in counts} >= set(Layer) - {Layer.SCOPE, Layer.ADMISSION}


def test_nothing_that_a_crd_refuses_is_let_through(verdicts):
    shape = {Layer.DECODE, Layer.SCHEMA, Layer.LIST, Layer.CEL}
    assert [str(case) for case in verdicts.cases if case.lax and case.layer in shape and not case.kind.core] == []


def test_no_certain_error_is_accepted_by_the_server(verdicts, documented):
    assert [str(case) for case in verdicts.cases if case.strict and case.classed not in documented] == []


def test_every_class_of_disagreement_is_documented(verdicts, documented):
    assert [str(case) for case in verdicts.cases if case.lax and case.classed not in documented] == []


def test_only_a_misspelt_kind_or_version_is_unknown(verdicts):
    unknown = [case for case in verdicts.cases if case.unknown]
    assert {case.mutation.label for case in unknown} == {Label.SCOPE}
    assert {case.mutation.place for case in unknown} <= {("apiVersion",), ("kind",)}
