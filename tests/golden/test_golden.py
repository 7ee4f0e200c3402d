"""The trees of the example platforms, byte for byte; `make golden` writes them again, for a person to read the diff."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from blueprint.new import FOLDERS, examples
from blueprint.pipeline import render_platform

HERE = Path(__file__).parent


@pytest.mark.parametrize("example", ["minimal", "reference"])
def test_tree_is_as_it_was(example: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    platform, tree, golden = tmp_path / "platform", tmp_path / "tree", HERE / example
    platform.mkdir()
    for folder in FOLDERS:
        if (examples()[example] / folder).is_dir():
            shutil.copytree(examples()[example] / folder, platform / folder)
    rendering = render_platform(platform, tree)
    assert not rendering.report.findings
    if request.config.getoption("--regenerate"):
        shutil.rmtree(golden, ignore_errors=True)
        shutil.copytree(tree, golden)
        (golden / "blueprint.lock").unlink()
    assert _files(tree) == _files(golden)


def _files(root: Path) -> dict[str, str]:
    """Every file but the lock, whose digests of inputs change with every template."""
    return {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "blueprint.lock"
    }
