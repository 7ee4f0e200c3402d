"""The wheel carries everything: templates, schema pack and example platforms, without the repository around it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the unpacked wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(installed: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the unpacked wheel, and make sure that it is the wheel."""
    code = (
        "import blueprint, sys; assert sys.argv[1] in blueprint.__file__; "
        "from blueprint.cli import main; del sys.argv[1]; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, str(installed), *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(installed), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("example", ["minimal", "reference"])
def test_an_example_renders_from_the_wheel_alone(example: str, installed: Path, tmp_path: Path) -> None:
    started = run(installed, tmp_path, "new", "mine", "--example", example)
    assert started.returncode == 0, started.stderr
    rendered = run(installed, tmp_path, "render", "mine")
    assert rendered.returncode == 0, rendered.stdout + rendered.stderr
    assert "no findings" in rendered.stdout
    ours = subprocess.run(
        [sys.executable, "-m", "blueprint", "render", "mine", "--out", "ours"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    assert ours.returncode == 0
    assert (tmp_path / "ours/blueprint.lock").read_bytes() == (tmp_path / "mine/rendered/blueprint.lock").read_bytes()


def test_types_and_licence_are_in_it(installed: Path) -> None:
    assert (installed / "blueprint/py.typed").exists()
    assert list(installed.glob("*.dist-info/licenses/LICENSE"))


def test_examples_and_pipelines_are_in_it(installed: Path, tmp_path: Path) -> None:
    for pipeline, file in (("github", ".github/workflows/platform.yml"), ("gitlab", ".gitlab-ci.yml")):
        started = run(installed, tmp_path, "new", pipeline, "--example", "fleet", "--ci", pipeline)
        assert started.returncode == 0, started.stderr
        assert (tmp_path / pipeline / file).is_file()
        assert (tmp_path / pipeline / "clusters/eu-west.yaml").is_file()
