"""Kustomize roots and Helm charts built by the real programs, where they are built (`make tools-bench`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blueprint.check.read import Reading, read
from blueprint.conform import programs
from blueprint.errors import EnvironmentLacks

pytestmark = pytest.mark.conformance

FILES = {
    "base/kustomization.yaml": "resources: [web.yaml]\nconfigMapGenerator: [{name: c, literals: [a=b]}]\n",
    "base/web.yaml": """\
# a comment
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
---
apiVersion: v1
kind: Service
metadata: {name: web}
""",
    "part/kustomization.yaml": """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
labels: [{pairs: {part: x}}]
""",
    "prod/kustomization.yaml": """\
namespace: prod
namePrefix: prod-
resources: [../base]
components: [../part]
patches: [{path: patch.yaml}]
""",
    "prod/patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n",
    "stage/kustomization.yaml": "namespace: stage\nresources: [../base]\n",
    "broken/kustomization.yaml": "resources: [gone.yaml]\n",
    "chart/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "chart/values.yaml": "replicas: 2\n",
    "chart/templates/web.yaml": """\
{{- if .Values.replicas }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-web
  namespace: {{ .Release.Namespace }}
spec:
  replicas: {{ .Values.replicas }}
{{- end }}
""",
    "chart/templates/tests/t.yaml": """\
apiVersion: v1
kind: Pod
metadata: {name: t, annotations: {helm.sh/hook: test}}
""",
    "chart/crds/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: crd}\n",
    "needy/Chart.yaml": "apiVersion: v2\nname: needy\nversion: 1.0.0\n",
    "needy/templates/a.yaml": "{{ required \"say a\" .Values.a }}\n",
}  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    monkeypatch.chdir(tmp_path / "tree")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


PATH = os.environ["PATH"]
ROOT = Path(__file__).parents[2]


def install(tree: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One program on the PATH, and no other."""
    with monkeypatch.context() as here:
        here.chdir(ROOT)
        here.setenv("PATH", PATH)
        try:
            program = programs.find(name).path.resolve()
        except EnvironmentLacks as error:
            pytest.skip(f"{error.message} ({error.hint})")
    start = tree / "bin" / name
    start.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
    start.chmod(0o755)


def found(reading: Reading) -> dict[str, tuple[str, int, str]]:
    return {
        str(manifest.ref): (manifest.source.file, manifest.source.line, manifest.folder)
        for manifest in reading.manifests
    }


@pytest.mark.parametrize("program", ["kustomize", "kubectl"])
def test_kustomize_roots(program: str, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tree, program, monkeypatch)
    reading = read(["base", "part", "prod", "stage", "broken"], build=True)
    objects = found(reading)
    assert objects["Deployment.apps prod/prod-web"] == ("base/web.yaml", 2, "prod")
    assert objects["Service stage/web"] == ("base/web.yaml", 9, "stage")
    assert sum(file == "base/kustomization.yaml" for file, _, _ in objects.values()) == 2
    assert len(objects) == 6
    deployment = next(m for m in reading.manifests if m.ref.name == "prod-web" and m.kind == "Deployment")
    assert deployment.body["spec"] == {"replicas": 3}
    assert deployment.body["metadata"] == {"name": "prod-web", "namespace": "prod", "labels": {"part": "x"}}
    (finding,) = reading.findings
    assert (finding.code, finding.source.file) == ("YML302", "broken/kustomization.yaml")
    assert finding.message.endswith("gone.yaml: no such file or directory")


def test_charts(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tree, "helm", monkeypatch)
    reading = read(["chart", "needy"], build=True)
    assert found(reading) == {
        "ConfigMap crd": ("chart/crds/c.yaml", 0, "chart"),
        "Deployment.apps namespace-of-the-release/chart-web": ("chart/templates/web.yaml", 0, "chart"),
    }
    codes = {finding.code: finding.message for finding in reading.findings}
    assert "say a" in codes["YML303"]
