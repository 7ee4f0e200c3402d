"""The configuration: read strictly, with paths that count from its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from blueprint.check.config import EVERY_KIND, NAME, Config, codes, find, load
from blueprint.errors import UsageError
from blueprint.finding import Finding, Source

FULL = """\
versions: {kubernetes: "1.35", kueue: 0.17.0}
closed: [Namespace, LocalQueue.kueue.x-k8s.io]
inventory: ops/nodes.yaml
exclude: [vendor/**]
ignore:
  - {rules: [img104, NAM], paths: [legacy/**], reason: frozen}
  - {rules: [SIZ], reason: known}
baseline: known.json
"""


def of(tmp_path: Path, text: str) -> Config:
    (tmp_path / NAME).write_text(text)
    return load(tmp_path / NAME)


def test_everything_that_can_be_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "repo").mkdir()
    config = of(Path("repo"), FULL)
    assert config.versions == {"kubernetes": "1.35", "kueue": "0.17.0"}
    assert config.closed_kinds == ("Namespace", "LocalQueue.kueue.x-k8s.io")
    assert (config.inventory, config.baseline) == ("repo/ops/nodes.yaml", "repo/known.json")
    assert config.exclude == ("repo/vendor/**",)

    def ignored(code: str, file: str) -> bool:
        return config.ignores(Finding(code, "x", Source(file, 1)))

    assert ignored("IMG104", "repo/legacy/a/b.yaml")
    assert ignored("NAM103", "repo/legacy/b.yaml")
    assert ignored("SIZ101", "repo/b.yaml")
    assert not ignored("IMG104", "repo/b.yaml")
    assert not ignored("IMG101", "repo/legacy/b.yaml")


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    assert of(tmp_path, "# nothing\n") == Config()
    assert of(tmp_path, "closed: true\n").closed_kinds == (EVERY_KIND,)
    assert of(tmp_path, "closed: false\n").closed_kinds == ()


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("a: b: c\n", 1, "not valid YAML", ""),
        ("\nverions: {}\n", 2, "unknown field verions", "versions"),
        ("versions: {kubernetes: 1.35}\n", 1, "versions.kubernetes", 'quote it: "1.35"'),
        ("versions:\n  kube: '1'\n", 1, "no component is called kube", "kueue"),
        ("ignore:\n  - rules: [XYZ]\n    reason: x\n", 2, "no rule has the code XYZ", ""),
        ("ignore:\n  - rules: [NAM]\n", 2, "reason", ""),
        ("ignore:\n  - {rules: [NAM], reason: x, pats: []}\n", 2, "unknown field pats", "paths"),
        ("closed: 3\n", 1, "closed", ""),
        ("closed: [1]\n", 1, "closed[0]", ""),
        ("- 1\n", 0, "", ""),
    ],
)
def test_a_mistake_is_told_at_its_line(text: str, line: int, message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        of(tmp_path, text)
    where = error.value.where.removeprefix(str(tmp_path / NAME))
    assert where.startswith(f":{line}") if line else not where
    assert message in error.value.message
    assert hint in error.value.hint


def test_the_file_of_the_checked_folder_counts_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    assert find(["a", "-"]) is None
    (tmp_path / NAME).touch()
    assert find(["a"]) == Path(NAME)
    (tmp_path / "a" / NAME).touch()
    assert find(["nothing", "a"]) == Path("a", NAME)


def test_codes_may_be_cut_short_and_small() -> None:
    assert codes(["nam", "SCH104"]) == ("NAM", "SCH104")
    with pytest.raises(ValueError, match="no rule has the code NAN101; did you mean NA"):
        codes(["NAN101"])
