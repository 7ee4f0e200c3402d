"""The trees of the example platforms, byte for byte; `make golden` writes them again, for a person to read the diff."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from blueprint.new import FOLDERS, copy_example, examples
from blueprint.pipeline import render_platform
from blueprint.report import table

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


def test_the_readme_shows_what_rendering_ends_with(tmp_path: Path) -> None:
    platform = tmp_path / "platform"
    copy_example("reference", platform)
    rendering = render_platform(platform, tmp_path / "tree")
    assert rendering.plan is not None
    readme = (HERE.parents[1] / "README.md").read_text("utf-8")
    shown = readme.partition("What `make render` ends with:")[2].split("```")[1].strip().splitlines()
    real = table.rendered(rendering.applications).splitlines()
    real += [f"{rendering.totals.objects} objects in 2 clusters · no findings"]
    real += [f"rendered: {len(rendering.plan.added)} added, 0 changed, 0 removed"]
    real += ["next: .venv/bin/blueprint check rendered"]
    rest = iter(_plain(line) for line in real[real.index(next(each for each in real if each.startswith("prod-a"))) :])
    # In the order in which they are printed; what lies between is left out.
    assert [line for line in map(_plain, shown[3:]) if line not in ("", "…") and line not in rest] == []


def _plain(line: str) -> str:
    """A line without its columns, the cluster in front, and the seconds at the end."""
    return " ".join(re.sub(r" · [\d.]+ s$", "", line).split()).removeprefix("prod-a ").removeprefix("preprod ")


def _files(root: Path) -> dict[str, str]:
    """Every file but the lock, whose digests of inputs change with every template."""
    return {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "blueprint.lock"
    }
