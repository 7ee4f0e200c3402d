"""Files of a revision are read as they were, from wherever it is asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from blueprint.check.config import Config
from blueprint.check.read import MAX_FILE
from blueprint.check.revision import revision
from blueprint.check.run import check
from blueprint.errors import EnvironmentLacks, UsageError

POD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndta: {}\n"


def git(*arguments: str, folder: Path) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A commit with a mistake in apps/a.yaml; the work tree is empty."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "repository"
    (root / "apps").mkdir(parents=True)
    (root / "apps/a.yaml").write_text(POD)
    (root / "apps/ü b.yml").write_text(POD.replace("name: a", "name: b"))
    (root / "apps/link.yaml").symlink_to("a.yaml")
    (root / "apps/out.yaml").symlink_to("/etc/hostname")
    (root / "apps/loop.yaml").symlink_to("loop.yaml")
    (root / "notes.txt").write_text("x" * 2_000_000)
    with (root / "apps/huge.yaml").open("wb") as file:
        file.truncate(MAX_FILE + 1)
    git("init", "-q", ".", folder=root)
    git("add", ".", folder=root)
    git("commit", "-q", "-m", "first", folder=root)
    git("rm", "-q", "-r", ".", folder=root)
    git("commit", "-q", "-m", "second", folder=root)
    monkeypatch.chdir(root)
    return root


def told(paths: list[str], rev: str | None = None) -> set[tuple[str, str, int]]:
    findings = check(paths, Config(), rev=rev, select=["SCH", "YML"]).findings
    return {(f.code, f.source.file, f.source.line) for f in findings if f.source}


ALL = {("SCH104", "apps/a.yaml", 5), ("SCH104", "apps/ü b.yml", 5), ("SCH104", "apps/link.yaml", 5)}


@pytest.mark.parametrize(
    ("paths", "rev"), [(["HEAD~1:"], None), (["HEAD~1:apps"], None), (["."], "HEAD~1"), (["apps"], "HEAD~1")]
)
def test_a_revision_is_read_by_either_way_of_asking(paths: list[str], rev: str | None, repository: Path) -> None:
    assert told(paths, rev) == {*ALL, ("YML103", "apps/huge.yaml", 0), ("YML101", "apps/loop.yaml", 0)}


def test_one_file_of_a_revision(repository: Path) -> None:
    assert told(["HEAD~1:apps/a.yaml"]) == {("SCH104", "apps/a.yaml", 5)}


def test_paths_count_as_git_has_it(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "apps").mkdir()
    monkeypatch.chdir(repository / "apps")
    assert told(["a.yaml"], "HEAD~1") == {("SCH104", "a.yaml", 5)}
    assert told(["HEAD~1:apps/a.yaml"]) == {("SCH104", "apps/a.yaml", 5)}


def test_a_file_with_a_colon_is_a_file(repository: Path) -> None:
    (repository / "HEAD~1:apps").write_text(POD)
    assert revision(["HEAD~1:apps"]) == (None, ["HEAD~1:apps"])
    assert revision(["none:such", "a"]) == (None, ["none:such", "a"])


@pytest.mark.parametrize(
    ("paths", "rev"),
    [(["HEAD~1:nothing"], None), (["HEAD:apps"], None), (["."], "nothing"), (["."], "--all"),
     (["HEAD:.", "HEAD~1:."], None), (["HEAD~1:apps", "apps"], None)],
)  # fmt: skip
def test_what_does_not_exist_is_wrong_usage(paths: list[str], rev: str | None, repository: Path) -> None:
    with pytest.raises(UsageError):
        told(paths, rev)


def test_without_git_the_environment_lacks_it(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentLacks, match="git is not installed"):
        told(["."], "HEAD")
