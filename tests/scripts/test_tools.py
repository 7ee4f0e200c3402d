import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "tools.py"

specification = importlib.util.spec_from_file_location("build_tools", SCRIPT)
tools = importlib.util.module_from_spec(specification)
sys.modules["build_tools"] = tools
specification.loader.exec_module(tools)

GO_MOD = "module m\n\ngo 1.26\n\nrequire (\n\texample.com/other v9.9.9\n\texample.com/thing/v2 v2.1.0\n)\n"
TABLE = """
[thing]
module = "example.com/thing/v2"
package = "example.com/thing/v2/cmd/thing"
folder = "thing"
group = "conformance"
ldflags = "-X main.version={version}"
"""


@pytest.fixture
def table(tmp_path):
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing" / "go.mod").write_text(GO_MOD)
    (tmp_path / "thing" / "go.sum").write_text("example.com/thing/v2 v2.1.0 h1:abc=\n")
    file = tmp_path / "programs.toml"
    file.write_text(TABLE)
    return file


def run(*arguments, **environment):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)


def test_the_version_comes_from_go_mod(table):
    thing = tools.load(table)["thing"]
    assert thing.version == "v2.1.0"
    assert thing.ldflags == "-s -w -X main.version=v2.1.0"


def test_a_module_that_go_mod_does_not_require_ends_the_run(table):
    table.write_text(TABLE.replace("thing/v2", "thing/v3"))
    with pytest.raises(SystemExit, match="does not require"):
        tools.load(table)


@pytest.mark.parametrize("file", ["go.mod", "go.sum"])
def test_the_key_follows_every_input(table, file):
    before = tools.load(table)["thing"].key
    assert tools.load(table)["thing"].key == before
    changed = table.parent / "thing" / file
    changed.write_text(changed.read_text() + "\n// another\n")
    assert tools.load(table)["thing"].key != before


def test_a_present_program_is_linked_and_not_built(table, tmp_path, monkeypatch):
    thing = tools.load(table)["thing"]
    folder = tmp_path / "bin"
    folder.mkdir()
    thing.path(folder).write_text("built before")
    monkeypatch.setenv("PATH", "")
    assert tools.build_all([thing], folder) == 0
    assert (folder / "thing").read_text() == "built before"


def test_a_failed_build_ends_with_the_words_of_go_and_leaves_nothing(table, tmp_path, monkeypatch, capsys):
    fake = tmp_path / "fake" / "go"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'missing go.sum entry' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=os.pathsep)
    assert tools.build_all([tools.load(table)["thing"]], tmp_path / "bin") == 1
    assert "missing go.sum entry" in capsys.readouterr().err
    assert list((tmp_path / "bin").iterdir()) == []


def test_without_go_it_ends_with_3_and_one_line(tmp_path):
    done = run("build", "helm", PATH="", BLUEPRINT_TOOLS=str(tmp_path))
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "Go is missing" in done.stderr


def test_an_unknown_program_is_a_usage_error():
    done = run("build", "helmet")
    assert done.returncode == 2
    assert "no program helmet" in done.stderr


def test_the_list_shows_every_program(tmp_path):
    done = run("list", BLUEPRINT_TOOLS=str(tmp_path))
    names = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert names == list(tomllib.loads((ROOT / "tools" / "programs.toml").read_text()))
    assert "yes" not in done.stdout
