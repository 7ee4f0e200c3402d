"""Files that a test of chainsaw or kuttl compares with a cluster are not objects to apply."""

from __future__ import annotations

from pathlib import Path

from blueprint.check.expectations import expected
from blueprint.check.read import read

TEST = """\
apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata: {name: t}
spec:
  steps:
  - try:
    - apply:
        file: policy.yaml
    - assert:
        timeout: 1m
        file: ready.yaml
    - error:
        file: 'gone-*.yaml'
    - delete:
        file: ./policy-ref.yaml # by name
"""
PART = "apiVersion: v1\nkind: Pod\nspec: {containers: [{}]}\n"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def test_what_is_compared_is_passed_over_and_what_is_applied_is_read(tmp_path: Path) -> None:
    (tmp_path / "chainsaw-test.yaml").write_text(TEST)
    for name in ("ready.yaml", "gone-1.yaml", "policy-ref.yaml", "01-assert.yaml", "02-errors.yaml"):
        (tmp_path / name).write_text(PART)
    (tmp_path / "policy.yaml").write_text(MAP)
    reading = read([tmp_path])
    assert [manifest.kind for manifest in reading.manifests] == ["ConfigMap"]
    assert [(f.code, f.fails) for f in reading.findings] == [("YML303", False)]
    assert "5 files say" in reading.findings[0].message
    assert [m.kind for m in read([tmp_path / "ready.yaml"]).manifests] == ["Pod"]  # asked for by itself


def test_other_files_of_such_a_name_are_objects() -> None:
    assert expected(["x/assert.yaml", "x/errors.yaml", "x/deploy.yaml"], Path()) == set()
