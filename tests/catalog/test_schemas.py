from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.catalog.schemas import SchemaPack
from blueprint.errors import EnvironmentLacks
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.quantity import QuantityError, parse_quantity

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "blueprint" / "catalog" / "data" / "schemas"
PACK = SchemaPack.shipped()


def test_every_file_has_the_digest_of_the_lock() -> None:
    files = PACK.lock()["files"]
    there = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.json")}
    assert there == {*files, "LOCK.json"}
    for name, digest in files.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name


@pytest.mark.conformance
def test_the_pack_regenerates_to_the_same_bytes(tmp_path: Path) -> None:
    if not shutil.which("go"):
        if os.environ.get("BLUEPRINT_CONFORMANCE") == "required":
            pytest.fail("regenerating the schema pack needs Go")
        pytest.skip("regenerating the schema pack needs Go")
    command = [sys.executable, str(ROOT / "scripts" / "schemas.py"), "--out", str(tmp_path / "pack")]
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode == 3 and os.environ.get("BLUEPRINT_CONFORMANCE") != "required":
        pytest.skip(f"the Go modules of the schema pack are missing: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    for name in [*PACK.lock()["files"], "LOCK.json"]:
        assert (tmp_path / "pack" / name).read_bytes() == (FOLDER / name).read_bytes(), name


def test_every_kind_loads_and_compiles() -> None:
    for api_version, name in PACK.kinds():
        kind = PACK.kind(api_version, name)
        assert kind is not None and (kind.api_version, kind.kind) == (api_version, name)
        draft = jsonschema_rs.Draft4Validator if kind.core else jsonschema_rs.Draft202012Validator
        draft(kind.schema, pattern_options=jsonschema_rs.RegexOptions())
        for path in [*kind.list_maps, *kind.sets, *(rule.path for rule in kind.rules), *kind.casts]:
            assert kind.at(path) is not None, (api_version, name, path)
        for field in kind.immutable:
            assert kind.at(field.path) is not None, (api_version, name, field)


def test_no_description_is_left() -> None:
    def words(value: object, inside_properties: bool = False) -> None:
        if isinstance(value, dict):
            if not inside_properties:
                assert not {"description", "title", "example"} & {k for k, v in value.items() if isinstance(v, str)}
            for name, child in value.items():
                words(child, name in ("properties", "$defs"))

    for api_version, name in PACK.kinds():
        kind = PACK.kind(api_version, name)
        assert kind is not None
        words(kind.schema)


def test_every_object_schema_is_closed_or_open_on_purpose() -> None:
    deployment = PACK.kind("apps/v1", "Deployment")
    assert deployment is not None
    for schema in [deployment.schema, *deployment.schema["$defs"].values()]:
        if schema.get("type") == "object":
            assert "additionalProperties" in schema


@pytest.mark.parametrize(
    ("api_version", "kind", "status", "scale", "namespaced"),
    [
        ("apps/v1", "Deployment", True, "spec.replicas", True),
        ("v1", "ConfigMap", False, "", True),
        ("v1", "Namespace", True, "", False),
        ("kueue.x-k8s.io/v1beta2", "ClusterQueue", True, "", False),
        ("kueue.x-k8s.io/v1beta2", "ResourceFlavor", False, "", False),
        ("argoproj.io/v1alpha1", "Rollout", True, "spec.replicas", True),
        ("argoproj.io/v1alpha1", "Application", False, "", True),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", True, "spec.replicas", True),
    ],
)
def test_scope_and_subresources(api_version: str, kind: str, status: bool, scale: str, namespaced: bool) -> None:
    found = PACK.kind(api_version, kind)
    assert found is not None
    assert (found.status_subresource, found.scale, found.namespaced) == (status, scale, namespaced)


def test_versions_put_storage_first() -> None:
    assert PACK.versions("kueue.x-k8s.io", "Workload") == ["v1beta2", "v1beta1"]
    assert PACK.versions("autoscaling", "HorizontalPodAutoscaler") == ["v2", "v1"]
    assert PACK.versions("", "Pod") == ["v1"]
    assert PACK.versions("snapshot.storage.k8s.io", "VolumeSnapshot") == ["v1"]  # v1beta1 is in the CRD, unserved
    assert PACK.versions("example.com", "Pod") == []


def test_index_agrees_with_the_kinds() -> None:
    for row in PACK.listed():
        kind = PACK.kind(row.api_version, row.kind)
        assert kind is not None
        assert (row.plural, row.scope, row.served, row.storage) == (kind.plural, kind.scope, kind.served, kind.storage)


def test_rules_carry_what_the_crd_says() -> None:
    queue = PACK.kind("kueue.x-k8s.io/v1beta2", "LocalQueue")
    assert queue is not None
    (rule,) = queue.rules
    assert rule.path == ("spec", "clusterQueue") and rule.transition and rule.message == "field is immutable"
    assert [field.path for field in queue.immutable] == [("spec", "clusterQueue")]


def test_a_missing_pack_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks, match="no schema pack"):
        SchemaPack(tmp_path)


def test_a_tree_brings_its_own_kinds() -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Toy", "plural": "toys"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}
            }}}],
        },
    }  # fmt: skip
    broken = crd | {"spec": {"group": "example.com"}}
    wider = PACK.with_crds([Manifest(broken, Source("b.yaml", 1)), Manifest(crd, Source("a.yaml", 1))])
    toy = wider.kind("example.com/v1", "Toy")
    assert toy is not None and toy.at(("spec", "n")) is not None and toy.at(("spec", "m")) is None
    assert wider.versions("example.com", "Toy") == ["v1"]
    assert wider.kind("apps/v1", "Deployment") is not None
    assert PACK.kind("example.com/v1", "Toy") is None
    assert PACK.with_crds([Manifest(crd, Source(f"{name}.yaml", 1)) for name in "ab"]).kind("example.com/v1", "Toy")
    other = copy.deepcopy(crd)
    other["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object"}}
    both = [Manifest(each, Source(f"{name}.yaml", 1)) for name, each in zip("ab", (crd, other), strict=True)]
    assert PACK.with_crds(both).kind("example.com/v1", "Toy") is None  # which of the two is served, nobody knows


QUANTITY = jsonschema_rs.Draft4Validator(
    (PACK.kind("v1", "PersistentVolumeClaim") or pytest.fail()).at(("spec", "resources", "requests", "{}")) or {},
    pattern_options=jsonschema_rs.RegexOptions(),
)


@given(st.text("+-.0123456789 eEinumkKMGTP\tx", max_size=8) | st.from_regex(r"[+-]?[0-9]*\.?[0-9]*[KMGTPE]?i?"))
def test_quantities_of_built_in_kinds_are_those_that_the_server_parses(text: str) -> None:
    if text.strip() != text.strip(" "):
        return  # a blank that JSON writes as an escape, which the server does not cut
    try:
        parse_quantity(text)
    except QuantityError as error:
        if "exponent is out of range" in str(error):
            return  # beyond what anybody computes with; the pattern does not count digits
        assert not QUANTITY.is_valid(text), text
    else:
        assert QUANTITY.is_valid(text), text


def test_the_documented_sources_are_those_of_the_lock() -> None:
    text = (ROOT / "docs" / "schema-sources.md").read_text()
    for module, version in PACK.lock()["modules"].items():
        assert f"| `{module}` | {version} |" in text


def test_the_lock_is_readable_json() -> None:
    lock = json.loads((FOLDER / "LOCK.json").read_text())
    assert lock["kubernetes"] == PACK.kubernetes() == "v1.35.4"
    assert PACK.digest() == hashlib.sha256((FOLDER / "LOCK.json").read_bytes()).hexdigest()
