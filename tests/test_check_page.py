"""docs/check.md says what is true of the verb."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main
import yaml_rs

from blueprint.check.config import load
from blueprint.cli import app
from blueprint.cli.app import Output

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "check.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"^```yaml\n# (.*?)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def test_the_configuration_is_one(tmp_path: Path) -> None:
    (tmp_path / "blueprint.yaml").write_text(BLOCKS["blueprint.yaml"], "utf-8")
    config = load(tmp_path / "blueprint.yaml")
    assert config.versions["kueue"] == "0.17.0"
    assert config.closed_kinds == ("Namespace", "LocalQueue.kueue.x-k8s.io")
    assert set(yaml_rs.loads(BLOCKS["blueprint.yaml"])) == set(type(config).model_fields)


def test_options_and_formats_exist() -> None:
    command = typer.main.get_command(app)
    options = {name for parameter in command.commands["check"].params for name in parameter.opts}  # type: ignore[attr-defined]
    named = set(re.findall(r"`(--[a-z-]+)", PAGE)) | set(re.findall(r" (--[a-z-]+) ?[A-Z`]", PAGE))
    assert named <= options
    assert {name for name in options if name.startswith("--")} - named <= {"--output", "--help"}
    assert re.findall(r"^\| `(\w+)` \| ", PAGE.partition("## Formats")[2], re.MULTILINE) == [
        *("text", "json", "sarif", "github", "gitlab", "junit", "markdown")
    ]
    assert set(Output) == {"text", "json", "sarif", "github", "gitlab", "junit", "markdown"}


@pytest.mark.parametrize("name", ["blueprint-check"])
def test_the_hook_and_the_action_exist(name: str) -> None:
    hooks = yaml_rs.loads((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    used = yaml_rs.loads(BLOCKS[".pre-commit-config.yaml"])["repos"][0]["hooks"][0]
    assert used["id"] == name
    assert name in [hook["id"] for hook in hooks]
    (step,) = yaml_rs.loads(BLOCKS["a step of GitHub Actions"])
    inputs = yaml_rs.loads((ROOT / "actions" / "check" / "action.yml").read_text("utf-8"))["inputs"]
    assert set(step["with"]) <= set(inputs)
    assert (ROOT / step["uses"].partition("@")[0].split("/", 2)[2] / "action.yml").is_file()
