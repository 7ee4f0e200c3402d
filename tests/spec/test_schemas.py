"""The schemas that editors get."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from blueprint.spec import schemas
from blueprint.spec.load import KINDS
from tests.spec.conftest import BAD, VERSION

REPOSITORY = Path(__file__).parents[2]
GOOD = [
    (path, document)
    for root in (REPOSITORY, BAD / "platform")
    for folder in ("clusters", "apps", "policies", "argocd")
    for path in sorted((root / folder).rglob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
]
# Mistakes that show in one field alone: what a schema can see.
SEEN = {"SPC121", "SPC122", "SPC131", "SPC132", "SPC133", "SPC134", "SPC135", "SPC136"}
# A pattern cannot forbid "..", add up time, or look into images.lock.
UNSEEN = {
    "gate-of-docker.yaml",
    "gate-registry-authority.yaml",
    "gate-registry-by-name.yaml",
    "gate-service-by-tag.yaml",
    "gate-service-trusts-nothing.yaml",
    "gate-service-without-time.yaml",
    "image-by-tag.yaml",
    "mount-escapes.yaml",
    "path-escapes.yaml",
    "unit-endless.yaml",
}


@pytest.fixture(scope="module")
def any_spec() -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schemas.schemas()[schemas.ANY])


def test_the_files_are_up_to_date() -> None:
    folder = Path(schemas.__file__).with_name("schemas")
    written = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert written == schemas.files(), "run `make schemas`"


def test_there_is_one_for_each_kind_and_one_for_all() -> None:
    assert set(schemas.schemas()) == {*(kind.lower() for kind in KINDS), "spec"}


@pytest.mark.parametrize("name", sorted(schemas.schemas()))
def test_they_are_valid_schemas(name: str) -> None:
    jsonschema_rs.meta.validate(schemas.schemas()[name])


@pytest.mark.parametrize("name", sorted(schemas.schemas()))
def test_their_examples_and_defaults_are_valid(name: str) -> None:
    """Each part of a schema accepts what it shows."""
    root = schemas.schemas()[name]

    def walk(node: Any) -> None:
        if isinstance(node, list):
            for item in node:
                walk(item)
        if isinstance(node, dict):
            part = jsonschema_rs.validator_for({**node, "$defs": root["$defs"]})
            shown = node.get("examples", [])
            for value in [
                *(shown if isinstance(shown, list) else []),
                *([node["default"]] if "default" in node else []),
            ]:
                assert part.is_valid(value), (node, value)
            for key, item in node.items():
                if key not in ("default", "examples", "enum", "properties", "$defs"):
                    walk(item)
                elif key in ("properties", "$defs"):
                    for inner in item.values():
                        walk(inner)

    walk(root)


@pytest.mark.parametrize(("path", "document"), GOOD, ids=lambda value: value.stem if isinstance(value, Path) else "")
def test_good_specs_are_accepted(path: Path, document: dict[str, Any], any_spec: jsonschema_rs.Validator) -> None:
    any_spec.validate(document)
    jsonschema_rs.validator_for(schemas.schemas()[document["kind"].lower()]).validate(document)


def _bad() -> list[Any]:
    rows = yaml.safe_load((BAD / "specs.yaml").read_text())
    return [pytest.param(row, id=row["file"]) for row in rows if row["code"] in SEEN and row["file"] not in UNSEEN]


@pytest.mark.parametrize("row", _bad())
def test_bad_specs_are_refused_where_a_schema_can(row: dict[str, Any], any_spec: jsonschema_rs.Validator) -> None:
    document = yaml.safe_load((BAD / "specs" / row["file"]).read_text())
    assert not any_spec.is_valid(document)


def test_the_kind_decides_what_an_editor_complains_of(any_spec: jsonschema_rs.Validator) -> None:
    document = yaml.safe_load(f"{VERSION}kind: Team\nmetadata: {{name: a}}\nspec: {{members: [], quotas: []}}\n")
    paths = {tuple(error.instance_path) for error in any_spec.iter_errors(document)}
    assert paths == {("spec", "members"), ("spec", "quotas")}


def test_names_in_descriptions_are_those_that_people_write() -> None:
    assert b"maxAge`" in schemas.files()["policy.schema.json"]
    assert b"max_age" not in schemas.files()["policy.schema.json"]


def test_every_field_says_what_it_means() -> None:
    silent = [
        f"{kind}: {part}.{field}"
        for kind in KINDS
        for part, definition in schemas.schemas()[kind.lower()]["$defs"].items()
        for field, value in definition.get("properties", {}).items()
        if "description" not in value
    ]
    assert not silent, "write a text below the field in blueprint/spec"
