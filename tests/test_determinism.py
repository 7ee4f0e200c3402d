"""The same specs give the same bytes: whatever the machine, the order of files and the place of the run."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from blueprint import pipeline
from blueprint.new import FOLDERS


def digest(tree: Path) -> str:
    """One digest over the names and bytes of all files, the lock among them."""
    total = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            total.update(f"{path.relative_to(tree).as_posix()}\0".encode() + path.read_bytes())
    return total.hexdigest()


def rendered(platform: Path, tree: Path, cwd: Path, **environment: str) -> str:
    subprocess.run(
        [sys.executable, "-m", "blueprint", "render", os.path.relpath(platform, cwd), "--out", tree],
        cwd=cwd,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
    )
    return digest(tree)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("platform")
    for folder in FOLDERS:
        shutil.copytree(Path(__file__).parents[1] / folder, root / folder)
    return root


@pytest.fixture(scope="module")
def expected(platform: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return rendered(platform, tmp_path_factory.mktemp("tree") / "tree", platform)


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "4242", "TZ": "Pacific/Kiritimati"},
        {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"},
        {"LC_ALL": "C.UTF-8", "TZ": "America/St_Johns"},
        {"SOURCE_DATE_EPOCH": "1", "HOME": "/nonexistent"},
    ],
    ids=lambda environment: "-".join(environment),
)
def test_environment_does_not_matter(
    environment: dict[str, str], platform: Path, expected: str, tmp_path: Path
) -> None:
    assert rendered(platform, tmp_path / "tree", platform, **environment) == expected


def test_the_place_does_not_matter(platform: Path, expected: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert rendered(platform, tmp_path / "tree", elsewhere) == expected


def test_the_order_of_files_on_disk_does_not_matter(platform: Path, expected: str, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    for path in sorted(platform.rglob("*.yaml"), reverse=True):
        target = copied / path.relative_to(platform)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    assert rendered(copied, tmp_path / "tree", copied) == expected


def test_a_second_run_changes_nothing(platform: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    first = rendered(platform, tree, platform)
    stamps = {path: path.stat().st_mtime_ns for path in tree.rglob("*")}
    assert rendered(platform, tree, platform) == first
    assert {path: path.stat().st_mtime_ns for path in tree.rglob("*")} == stamps


def test_two_processes_make_the_same_tree(
    platform: Path, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_MANY", 0)
    rendering = pipeline.render_platform(platform, tmp_path / "tree")
    assert not rendering.report.findings
    assert digest(tmp_path / "tree") == expected
