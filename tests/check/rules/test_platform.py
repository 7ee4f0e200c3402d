"""Our own platforms, read back as anybody's tree: no rule across objects has anything to say of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from blueprint.check.read import read
from blueprint.check.rules import across
from blueprint.new import FOLDERS, examples
from blueprint.pipeline import render_platform


@pytest.mark.parametrize("example", sorted(examples()))
def test_nothing_is_said_of_a_rendered_tree(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in FOLDERS:
        if (examples()[example] / folder).is_dir():
            shutil.copytree(examples()[example] / folder, tmp_path / folder)
    render_platform(tmp_path, tmp_path / "rendered")
    monkeypatch.chdir(tmp_path)
    reading = read(["rendered"])
    assert reading.manifests
    assert list(across([*reading.manifests, *reading.aside])) == []
