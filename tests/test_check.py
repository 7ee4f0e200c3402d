"""`blueprint check` as a person meets it: what is chosen, silenced, and how it is told."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from blueprint.check.config import NAME
from blueprint.cli import Output, app
from blueprint.errors import UsageError
from blueprint.report.json import schema

from .test_cli import blueprint as in_a_process

BAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndta: {}\nsize: 1\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps/a.yaml").write_text(BAD)
    return tmp_path


@dataclass
class Done:
    returncode: int
    stdout: str


def blueprint(*arguments: str, cwd: Path) -> Done:
    """Run the command line here, without the time that a process takes to start."""
    with contextlib.chdir(cwd):
        result = CliRunner().invoke(app, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout)


def told(tree: Path, *arguments: str) -> tuple[int, list[str], int]:
    """Exit code, codes of findings, and how many are silenced."""
    done = blueprint("check", "-o", "json", *arguments, cwd=tree)
    document = json.loads(done.stdout)
    return done.returncode, [finding["code"] for finding in document["findings"]], document["silenced"]


def test_the_contract(tree: Path) -> None:
    import jsonschema_rs

    (tree / "apps/workflow.yaml").write_text("on: push\n")
    done = blueprint("check", ".", "-o", "json", cwd=tree)
    document = json.loads(done.stdout)
    jsonschema_rs.validator_for(schema()).validate(document)
    assert document["read"] == {"files": 2, "documents": 2, "objects": 1, "skipped": 1}
    first = document["findings"][0]
    assert first == {
        "code": "SCH104",
        "name": "field-unknown",
        "severity": "error",
        "confidence": "certain",
        "message": "unknown field `dta`",
        "object": {"group": "", "kind": "ConfigMap", "namespace": "", "name": "a"},
        "source": {"file": "apps/a.yaml", "line": 5},
        "fix": "did you mean `data`?",
    }


def test_rules_are_chosen_by_the_beginning_of_their_codes(tree: Path) -> None:
    assert told(tree) == (1, ["SCH104", "SCH104"], 0)
    assert told(tree, "--ignore", "sch1") == (0, [], 2)
    assert told(tree, "--ignore", "NAM,SIZ") == (1, ["SCH104", "SCH104"], 0)
    assert told(tree, "--select", "NAM", "--select", "SIZ") == (0, [], 2)
    assert told(tree, "--select", "SCH104") == (1, ["SCH104", "SCH104"], 0)


def test_a_comment_silences_and_is_counted(tree: Path) -> None:
    (tree / "apps/a.yaml").write_text(BAD.replace("dta: {}", "dta: {}  # blueprint: ignore SCH104 an old name"))
    assert told(tree) == (1, ["SCH104"], 1)
    assert "1 silenced" in blueprint("check", cwd=tree).stdout


def test_a_baseline_forgives_what_was_there(tree: Path) -> None:
    wrote = blueprint("check", "--baseline", "known.json", "--write-baseline", "apps", cwd=tree)
    assert wrote.returncode == 0
    assert "2 silenced" in wrote.stdout
    assert told(tree, "--baseline", "known.json", "apps") == (0, [], 2)
    (tree / "apps/a.yaml").write_text("# moved\n" + BAD.replace("size: 1", "sise: 1"))
    assert told(tree, "--baseline", "known.json", "apps") == (1, ["SCH104"], 1)
    assert "gone: 1 finding" in blueprint("check", "--baseline", "known.json", "apps", cwd=tree).stdout


def test_the_configuration_is_found(tree: Path) -> None:
    (tree / NAME).write_text("ignore: [{rules: [SCH104], paths: [apps/**], reason: old}]\nbaseline: known.json\n")
    (tree / "known.json").write_text('{"schema": 1, "findings": []}')
    assert told(tree) == (0, [], 2)
    assert told(tree.parent, str(tree)) == (0, [], 2)
    (tree / "other.yaml").write_text("exclude: [apps/**]\n")
    assert told(tree, "--config", "other.yaml") == (0, [], 0)
    (tree / NAME).write_text("ignor: []\n")
    with pytest.raises(UsageError) as wrong:
        told(tree)
    assert wrong.value.where.startswith(f"{NAME}:1")
    assert "ignore" in wrong.value.hint


@pytest.mark.parametrize(
    "arguments",
    [["--ignore", "XXX101"], ["--write-baseline"], ["--baseline", "none.json"], ["--rev", "none"], ["--config", "x"]],
)
def test_wrong_usage_is_one_clear_error(arguments: list[str], tree: Path) -> None:
    with pytest.raises(UsageError):
        told(tree, *arguments)


def test_a_usage_error_is_one_line_and_a_hint(tree: Path) -> None:
    wrong = in_a_process("check", "--ignore", "NAMM", cwd=tree)
    assert wrong.returncode == 2
    assert 1 <= len(wrong.stderr.strip().splitlines()) <= 2


@pytest.mark.parametrize("output", [each for each in Output if each is not Output.TEXT])
def test_every_format_is_whole_and_has_the_exit_code(output: Output, tree: Path) -> None:
    done = blueprint("check", "-o", output, cwd=tree)
    assert done.returncode == 1
    assert "SCH104" in done.stdout
    if output in (Output.JSON, Output.SARIF, Output.GITLAB):
        json.loads(done.stdout)
    if output is Output.JUNIT:
        assert ElementTree.fromstring(done.stdout).get("failures") == "2"
    if output is Output.GITHUB:
        assert done.stdout.startswith("::error title=SCH104 field-unknown,file=apps/a.yaml,line=5,col=1::")


def test_a_kustomize_root_is_read_one_way_or_the_other(tree: Path) -> None:
    (tree / "apps/kustomization.yaml").write_text("resources: [a.yaml]\n")
    assert told(tree)[1].count("SCH104") == 2
    assert told(tree, "--plain")[1].count("SCH104") == 2
    if shutil.which("kustomize") or shutil.which("kubectl"):
        assert json.loads(blueprint("check", "-o", "json", cwd=tree).stdout)["read"]["objects"] == 1


def test_placeholders_are_said_to_be_unknown(tree: Path) -> None:
    (tree / "apps/a.yaml").write_text(
        BAD.replace("dta: {}", "data: {}").replace("size: 1", "").replace("a\n", "${X}\n")
    )
    done = blueprint("check", cwd=tree)
    assert done.returncode == 0
    assert "not judged in full: 1 object" in done.stdout


@pytest.mark.parametrize("content", [b"\0\1\2\3", "a: é\n".encode("utf-16"), b"a: \xff\n"])
def test_a_folder_of_which_nothing_can_be_read_is_not_approved(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(content)
    done = blueprint("check", ".", cwd=tmp_path)
    assert (done.returncode, "error" in done.stdout) == (1, True)
    (tmp_path / "b.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    beside = blueprint("check", ".", cwd=tmp_path)
    assert (beside.returncode, "a.yaml" in beside.stdout) == (0, True)
