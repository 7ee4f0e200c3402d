"""Whatever is broken in an object, validation says so or stays silent; it never ends in an exception."""

from pathlib import Path

import pytest
import yaml

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import Validator, tree_rules
from blueprint.conform.mutate import mutations
from blueprint.finding import Source
from blueprint.objects import Manifest

SAMPLES = Path(__file__).parents[1] / "conformance" / "samples"
HERE = Source("object.yaml", 1)

RULES = tree_rules()


@pytest.fixture(scope="module")
def pack():
    return SchemaPack.shipped()


@pytest.fixture(scope="module")
def validator(pack):
    return Validator(pack)


@pytest.mark.parametrize("file", sorted(SAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_no_mutation_ends_in_an_exception(pack, validator, file):
    broken = []
    for body in yaml.safe_load_all(file.read_text("utf-8")):
        kind = pack.kind(body["apiVersion"], body["kind"])
        for mutation in mutations(body, kind, seed=11, each=6):
            manifest = Manifest(mutation.body, HERE)
            try:
                validator.create(manifest)
                validator.update(manifest, Manifest(body, HERE))
                for rule in RULES:
                    list(rule([manifest]))
            except Exception as error:
                broken.append(f"{body['kind']} {mutation}: {error!r}")
    assert broken == []
