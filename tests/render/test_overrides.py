"""What a user's template may replace, and what it must leave as it is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from blueprint.finding import Severity
from blueprint.new import copy_example
from blueprint.pipeline import render_platform
from blueprint.render.templates import TemplateProblem, Templates, shipped_folder

OURS = "apiVersion: v1\nkind: Thing\nmetadata:\n  name: {{ name }}\n  namespace: {{ namespace }}\n"


def _templates(folder: Path, **own: str) -> Templates:
    for side, files in (("ours", {"Thing": OURS, "Part": "a: 1\n"}), ("own", own)):
        (folder / side).mkdir()
        for name, text in files.items():
            (folder / side / f"{name}.yaml.j2").write_text(text)
    return Templates([folder / "own"], shipped=folder / "ours")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kind: Thing", "kind: Secret", "the kind is 'Secret', and 'Thing' is asked for"),
        ("{{ name }}", "other", "the name is 'other', and 'a' is asked for"),
        ("{{ namespace }}", "other", "the namespace is 'other', and 'b' is asked for"),
        ("metadata:", "spec:", "the name is None"),
    ],
)
def test_an_override_makes_the_object_that_is_asked_for(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(TemplateProblem) as caught:
        _templates(tmp_path, Thing=OURS.replace(old, new)).render("Thing", name="a", namespace="b")
    assert caught.value.finding.code == "TPL115"
    assert words in caught.value.finding.message


def test_the_rest_is_free(tmp_path: Path) -> None:
    templates = _templates(tmp_path, Thing=f"{OURS}spec: {{x: 1}}\n", Part="b: 2\n")
    for _ in range(2):
        assert templates.render("Thing", name="a", namespace="b")["spec"] == {"x": 1}
    assert templates.render("Part", name="a") == {"b": 2}


@pytest.mark.parametrize(("name", "fix"), [("thing", "Thing"), ("Things", "Thing"), ("Other", "has the names")])
def test_a_template_of_another_name_is_told(tmp_path: Path, name: str, fix: str) -> None:
    [finding] = _templates(tmp_path, **{name: OURS}).unused()
    assert (finding.code, finding.severity) == ("TPL116", Severity.WARNING)
    assert fix in finding.fix


@pytest.mark.parametrize("name", ["Thing.yaml", "Thing.j2", "below/Thing.yaml.j2", "Thing.yaml.jinja2"])
def test_a_file_that_was_meant_for_a_template_is_told(tmp_path: Path, name: str) -> None:
    templates = _templates(tmp_path, Other=OURS)
    folder = Path(templates.override("Other")).parent
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(OURS)
    (folder / "README.md").write_text("notes")
    (folder / ".hidden.yaml").write_text("x")
    found = {
        finding.source.file: finding
        for finding in Templates([folder], shipped=tmp_path / "ours").unused()
        if finding.source
    }
    assert set(found) - {str(folder / "Other.yaml.j2")} == {str(folder / name)}
    assert found[str(folder / name)].fix == "call it Thing.yaml.j2"


def test_a_namespace_is_not_given_where_none_is_asked_for(tmp_path: Path) -> None:
    ours = OURS.replace("  namespace: {{ namespace }}\n", "")
    assert ours != OURS
    (tmp_path / "ours").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "ours/Thing.yaml.j2").write_text(ours)
    (tmp_path / "own/Thing.yaml.j2").write_text(OURS.replace("{{ namespace }}", "kube-system"))
    with pytest.raises(TemplateProblem) as caught:
        Templates([tmp_path / "own"], shipped=tmp_path / "ours").render("Thing", name="a")
    assert "the namespace is 'kube-system', and none is asked for" in caught.value.finding.message


def test_what_another_template_includes_is_used(tmp_path: Path) -> None:
    own = {"Thing": OURS + "spec: {% include 'Bits.yaml.j2' %}\n", "Bits": "{x: 1}\n"}
    assert not _templates(tmp_path, **own).unused()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    os.mkfifo(tmp_path / "own/Thing.yaml.j2")
    (tmp_path / "ours").mkdir()
    [finding] = Templates([tmp_path / "own"], shipped=tmp_path / "ours").check()
    assert (finding.code, "no regular file" in finding.message) == ("TPL113", True)


def test_our_own_templates_pass_as_overrides(tmp_path: Path) -> None:
    """The identities that are read from the text of ours are those that ours render."""
    folder = tmp_path / "copy"
    shutil.copytree(shipped_folder(), folder / "templates")
    copy_example("reference", folder)
    result = render_platform(folder, folder / "rendered", check_only=True)
    assert not result.report.failed
    assert not [finding for finding in result.report.findings if finding.code.startswith("TPL")]
