"""Kustomize roots and Helm charts with stand-ins for the programs; the real ones are in tests/conformance."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from blueprint.check.read import Reading, read
from blueprint.finding import Severity
from blueprint.objects import EVERYTHING

BASE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: first}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
"""
FILES = {
    "base/kustomization.yaml": "resources: [settings.yaml]\nsecretGenerator: [{name: s, files: [a=key.json]}]\n",
    "base/settings.yaml": BASE,
    "base/key.json": '{"apiVersion": "v1", "kind": "Secret"}',
    "prod/kustomization.yml": "resources: [../base]\nnamePrefix: prod-\npatches: [{path: patch.yaml}]\n",
    "prod/patch.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndta: {}\n",
    "plain.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n",
}

PROGRAM = """\
#!{python}
import json, pathlib, sys
answer = json.loads(pathlib.Path({answers!r}).read_text())[pathlib.Path(sys.argv[0]).name]
print(answer["out"])
print(answer.get("error", ""), file=sys.stderr)
sys.exit(1 if "error" in answer else 0)
"""


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to check, with nothing on the PATH."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path / "tree")
    return tmp_path / "tree"


def install(tree: Path, **answers: dict[str, str]) -> None:
    """Programs that answer the same whatever they are asked."""
    file = tree.parent / "answers.json"
    file.write_text(json.dumps(answers))
    for name in answers:
        program = tree.parent / "bin" / name
        program.write_text(PROGRAM.format(python=sys.executable, answers=str(file)))
        program.chmod(0o755)


def names(reading: Reading) -> list[str]:
    return sorted(manifest.ref.name for manifest in reading.manifests)


BUILT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: prod-settings
  annotations:
    config.kubernetes.io/origin: |
      path: {base}/settings.yaml
---
apiVersion: v1
kind: Secret
metadata:
  name: prod-s-1
  annotations:
    keep: me
    config.kubernetes.io/origin: |
      configuredIn: {base}/kustomization.yaml
      configuredBy: {{apiVersion: builtin, kind: SecretGenerator}}
"""


@pytest.mark.parametrize("program", ["kustomize", "kubectl"])
def test_what_is_built_takes_the_place_of_its_files(program: str, tree: Path) -> None:
    write(tree, FILES)
    install(tree, **{program: {"out": BUILT.format(base=tree / "base")}})
    reading = read(["."], build=True)
    assert names(reading) == ["plain", "prod-s-1", "prod-settings"]
    found = {manifest.ref.name: manifest for manifest in reading.manifests}
    settings, secret, plain = found["prod-settings"], found["prod-s-1"], found["plain"]
    assert (settings.source.file, settings.source.line, settings.folder) == ("base/settings.yaml", 5, "prod")
    assert (secret.source.file, secret.folder) == ("base/kustomization.yaml", "prod")
    assert secret.body["metadata"]["annotations"] == {"keep": "me"}
    assert "annotations" not in settings.body["metadata"]
    assert (plain.source.file, plain.folder) == ("plain.yaml", "")
    assert not reading.findings
    assert reading.counts.files == len(FILES)


def test_without_the_program_resources_are_read_and_patches_are_not(tree: Path) -> None:
    write(tree, FILES)
    reading = read(["."], build=True)
    assert names(reading) == ["", "first", "plain", "settings"]
    (secret,) = (manifest for manifest in reading.manifests if manifest.kind == "Secret")
    assert secret.unknown == EVERYTHING
    (note,) = reading.findings
    assert (note.code, note.severity) == ("YML303", Severity.NOTE)
    assert "kustomize is not installed: 1 root is read" in note.message


def test_a_root_that_cannot_be_built_is_a_finding(tree: Path) -> None:
    write(tree, FILES)
    install(tree, kustomize={"out": "", "error": "warning: x\nError: no matches for patch"})
    reading = read(["."], build=True)
    (finding,) = reading.findings
    assert (finding.code, finding.source.file) == ("YML302", "prod/kustomization.yml")
    assert finding.message.endswith("no matches for patch")
    assert "settings" in names(reading)


def test_what_a_kustomization_would_change_is_a_draft(tree: Path) -> None:
    write(tree, {**FILES, "apart/kustomization.yaml": "resources: [a.yaml]\n", "apart/a.yaml": FILES["plain.yaml"]})
    drafts = {
        manifest.source.file
        for manifest in read(["."], build=True).manifests
        if manifest.draft and manifest.kind != "Secret"
    }
    assert drafts == {"base/settings.yaml"}


def test_what_stands_beside_a_kustomization_is_not_read(tree: Path) -> None:
    left = {f"base/{name}": FILES["prod/patch.yaml"] for name in ("a.yaml", "patches/b.yaml", "more/c.yaml")}
    write(tree, {**FILES, **left})
    install(tree, kustomize={"out": BUILT.format(base=tree / "base")})
    reading = read(["."], build=True)
    assert {m.source.file for m in reading.manifests if "dta" in m.body} == {"base/more/c.yaml"}
    (note,) = reading.findings
    assert (note.code, note.source.file) == ("YML303", "base/a.yaml")
    assert "not read: 2 files stand beside" in note.message


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            "accumulation err='accumulating resources from '../x': '/t/x' must resolve to a file': "
            "recursed accumulation of path '/t/x': accumulation err='accumulating resources from 'gone.yaml': "
            "evalsymlink failure on '/t/x/gone.yaml' : lstat /t/x/gone.yaml: no such file or directory': "
            "must build at directory: not a valid directory",
            "gone.yaml: no such file or directory",
        ),
        (
            "accumulation err='x': recursed accumulation of path '/t/x': nothing selected by a:b",
            "nothing selected by a:b",
        ),
    ],
)
def test_the_innermost_reason_is_told(error: str, told: str, tree: Path) -> None:
    write(tree, FILES)
    install(tree, kustomize={"out": "", "error": f"Error: {error}"})
    (finding,) = read(["."], build=True).findings
    assert finding.message == f"kustomize cannot build this folder: {told}"


@pytest.mark.parametrize(
    "line",
    [
        "resources: ['https://example.com/a.yaml']",
        "bases: ['git@example.com:a/b']",
        "helmCharts: [{name: x}]",
        "openapi: {path: https://example.com/a.json}",
    ],
)
def test_what_takes_from_elsewhere_is_not_built(line: str, tree: Path) -> None:
    write(tree, {"base/kustomization.yaml": f"{line}\n", "prod/kustomization.yaml": "resources: [../base]\n"})
    install(tree, kustomize={"out": BUILT})
    for path in (".", "prod"):
        reading = read([path], build=True)
        assert not reading.manifests
        (note,) = reading.findings
        assert (note.code, note.severity) == ("YML303", Severity.NOTE)
        assert "from elsewhere" in note.message


def test_a_kustomization_of_flux_is_an_object(tree: Path) -> None:
    text = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\n"
    write(tree, {"kustomization.yaml": text})
    assert names(read(["."], build=True)) == ["apps"]


def test_nothing_is_built_unless_asked(tree: Path) -> None:
    write(tree, FILES)
    assert {"settings", "plain"} <= set(names(read(["."])))
    assert read(["."]).counts.foreign


CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "chart/values.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-value}\n",
    "chart/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-a\n",
    "chart/crds/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: crd}\n",
    "chart/charts/sub/Chart.yaml": "name: sub\n",
    "chart/charts/sub/values.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-value}\n",
    "chart/charts/sub/templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sub}\n",
    "library/Chart.yaml": "name: help\ntype: library\n",
}
RELEASE = """\
---
# Source: web/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: chart-a
  namespace: namespace-of-the-release
---
# Source: web/charts/sub/templates/c.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: sub}
"""


def test_a_chart_is_built_with_its_own_values(tree: Path) -> None:
    write(tree, CHART)
    install(tree, helm={"out": RELEASE})
    reading = read(["."], build=True)
    first, second = sorted(reading.manifests, key=lambda m: m.ref.name)
    assert (first.source.file, first.source.line, first.folder) == ("chart/templates/a.yaml", 0, "chart")
    assert first.unknown == {("metadata", "namespace")}
    assert second.source.file == "chart/charts/sub/templates/c.yaml"
    assert not reading.findings


@pytest.mark.parametrize("installed", [False, True])
def test_a_chart_that_is_not_built_is_read_as_templates(installed: bool, tree: Path) -> None:
    write(tree, CHART)
    if installed:
        install(tree, helm={"out": "", "error": "Error: values don't meet the specifications"})
    reading = read(["."], build=True)
    assert names(reading) == ["crd", "sub", "{{ .Release.Name }}-a"]
    notes = [finding for finding in reading.findings if finding.code == "YML303"]
    assert len(notes) == 1
    assert all(finding.severity is Severity.NOTE for finding in reading.findings)
    assert ("values don't meet" if installed else "not installed") in notes[0].message


def test_the_chart_itself_may_be_what_is_checked(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree, CHART)
    install(tree, helm={"out": RELEASE})
    monkeypatch.chdir(tree / "chart")
    assert {manifest.source.file for manifest in read(["."], build=True).manifests} == {
        "templates/a.yaml",
        "charts/sub/templates/c.yaml",
    }
    assert {manifest.folder for manifest in read([str(tree / "chart")], build=True).manifests} == {str(tree / "chart")}
