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
from blueprint.conform.mutate import Label, put
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.render.platform import render
from blueprint.render.templates import Templates
from blueprint.spec.load import load

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DOCUMENT = ROOT / "docs" / "agreement.md"
SEED, EACH = 35, 8


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


def samples():
    """Objects written by hand, so that kinds that no platform of ours renders are broken too."""
    return [body for file in sorted((HERE / "samples").glob("*.yaml")) for body in yaml.safe_load_all(file.read_text())]


def rendered(pack):
    """Of each kind that the reference platform renders, the biggest object."""
    platform = load(ROOT).platform
    files = [file for cluster in platform.clusters for file in render(platform, cluster, Templates(), pack).files]
    biggest = {}
    for body in sorted((file.manifest.body for file in files), key=lambda body: (len(json.dumps(body)), str(body))):
        biggest[body["apiVersion"], body["kind"]] = body
    return list(biggest.values())


@pytest.fixture(scope="module")
def verdicts(platform_plane):
    pack = SchemaPack.shipped()
    objects = []
    for body in (*samples(), *rendered(pack)):
        if (kind := pack.kind(body["apiVersion"], body["kind"])) is None:
            continue  # a constraint: its template says what it may hold
        if kind.kind == "Namespace":  # the one of that name may be there for others
            body = put(body, ("metadata", "name"), f"{body['metadata']['name']}-anew")
        objects.append((Manifest(body, Source("sample")), kind))
    for name in {manifest.ref.namespace for manifest, _ in objects} - {""} | {"default"}:
        platform_plane.namespace(name)
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


def test_every_object_is_accepted_whole_by_both(verdicts):
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
