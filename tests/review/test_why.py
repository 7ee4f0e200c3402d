"""Lines of specs and rendered lines: what depends on what, found out by rendering."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from blueprint.errors import UsageError
from blueprint.finding import Source
from blueprint.new import examples
from blueprint.pipeline import render_platform
from blueprint.review import reasons
from blueprint.review.why import Value, values, why


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("platform")
    for folder in ("clusters", "apps", "policies", "argocd"):
        if (examples()["minimal"] / folder).is_dir():
            shutil.copytree(examples()["minimal"] / folder, root / folder)
    assert not render_platform(root, root / "rendered").report.failed
    return root


def spec_with(root: Path, words: str) -> tuple[Path, int]:
    for path in sorted(root.glob("*/*.yaml")) + sorted(root.glob("*/*/*.yaml")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if words in line and "rendered" not in path.parts:
                return path, number
    raise AssertionError(words)


def test_a_spec_line_and_back(platform: Path) -> None:
    path, number = spec_with(platform, "memory:")
    found = why(f"{path}:{number}")
    assert found.lines, reasons.text(found)
    assert all(line.place.file.startswith("rendered/") for line in found.lines)
    place = Source(path.relative_to(platform).as_posix(), number)
    backs = [why(f"{platform / line.place.file}:{line.place.line}") for line in found.lines[:3]]
    assert all(back.document is not None for back in backs)
    assert any(place in [line.place for line in back.lines] for back in backs), [back.lines for back in backs]


def test_a_line_of_a_template_depends_on_nothing(platform: Path) -> None:
    job = next(path for path in (platform / "rendered").rglob("*job-*.yaml"))
    number = next(n for n, line in enumerate(job.read_text("utf-8").splitlines(), 1) if line.strip() == "spec:")
    found = why(f"{job}:{number}")
    assert found.lines == ()
    assert "it is the same for all" in reasons.text(found)


def test_specs_are_as_they_were(platform: Path) -> None:
    before = {path: path.read_bytes() for path in platform.rglob("*.yaml")}
    path, number = spec_with(platform, "memory:")
    why(f"{path}:{number}")
    assert before == {path: path.read_bytes() for path in platform.rglob("*.yaml")}


@pytest.mark.parametrize("place", ["nothing", "nothing:3", "README:x"])
def test_what_is_no_place(place: str) -> None:
    with pytest.raises(UsageError):
        why(place)


def test_a_line_that_is_not_there(platform: Path) -> None:
    path, _ = spec_with(platform, "memory:")
    with pytest.raises(UsageError, match="no line 9999"):
        why(f"{path}:9999")


def test_values_of_a_flow_map() -> None:
    text = 'apiVersion: v1\nkind: K\nspec:\n  a: {b: 1, c: "x y", d: [p, q]}\n  e: 5%  # five\n'
    assert values("f", text) == [
        Value(Source("f", 4, 10), "1"),
        Value(Source("f", 4, 16), '"x y"'),
        Value(Source("f", 4, 27), "p"),
        Value(Source("f", 4, 30), "q"),
        Value(Source("f", 5, 6), "5%"),
    ]
