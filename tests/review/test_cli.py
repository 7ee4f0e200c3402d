"""The verbs `review`, `why` and `upgrade` from the outside: exit codes and messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blueprint.cli import app
from blueprint.errors import UsageError

POLICY = """\
apiVersion: v1
kind: Namespace
metadata: {{name: web, labels: {{pod-security.kubernetes.io/enforce: {level}}}}}
"""


@pytest.fixture
def trees(tmp_path: Path) -> tuple[str, str]:
    for name, level in (("base", "restricted"), ("head", "baseline")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_text(POLICY.format(level=level))
    return str(tmp_path / "base"), str(tmp_path / "head")


@pytest.mark.parametrize(("limit", "code"), [("", 0), ("destructive", 0), ("security", 1), ("restart", 1)])
def test_exit_code(trees: tuple[str, str], limit: str, code: int) -> None:
    options = ["--fail-on", limit] if limit else []
    done = CliRunner().invoke(app, ["review", *trees, *options])
    assert done.exit_code == code, done.output
    assert "SECURITY" in done.output


@pytest.mark.parametrize("output", ["text", "markdown", "summary", "json", "sarif", "junit"])
def test_every_format(trees: tuple[str, str], output: str) -> None:
    done = CliRunner().invoke(app, ["review", *trees, "-o", output])
    assert done.exit_code == 0 and "pod security is weaker" in done.output


def test_an_unknown_class(trees: tuple[str, str]) -> None:
    done = CliRunner().invoke(app, ["review", *trees, "--fail-on", "everything"])
    assert isinstance(done.exception, UsageError)


def test_upgrade(trees: tuple[str, str]) -> None:
    done = CliRunner().invoke(app, ["upgrade", "kubernetes=1.35", trees[0], "-o", "json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["moves"][0]["verdict"] == "safe"
    assert isinstance(CliRunner().invoke(app, ["upgrade", trees[0]]).exception, UsageError)


def test_what_users_get_fails_on_traffic(tmp_path: Path) -> None:
    """A shorter context restarts pods, and is no mere restart; more sequences at once are."""
    server = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: chat, namespace: web}}\nspec:\n"
        "  selector: {{matchLabels: {{app: chat}}}}\n  template:\n    metadata: {{labels: {{app: chat}}}}\n"
        "    spec:\n      containers:\n        - name: vllm\n"
        "          image: registry.example.com/vllm-openai:v0.10.1\n"
        "          args: [--model=org/a, --max-model-len={}, --max-num-seqs={}]\n"
    )
    for name, numbers in (("base", (32768, 64)), ("shorter", (16384, 64)), ("wider", (32768, 128))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_text(server.format(*numbers))
    sides = {name: [str(tmp_path / "base"), str(tmp_path / name)] for name in ("shorter", "wider")}
    done = {name: CliRunner().invoke(app, ["review", *found, "--fail-on", "traffic"]) for name, found in sides.items()}
    assert "a request may have 16384 tokens instead of 32768" in done["shorter"].output
    assert done["shorter"].exit_code == 1
    assert "restarts pods with other arguments" in done["wider"].output
    assert done["wider"].exit_code == 0, done["wider"].output
