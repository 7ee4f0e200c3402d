"""Where the two sides come from, and what is read of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.errors import UsageError
from blueprint.new import copy_example
from blueprint.pipeline import render_platform
from blueprint.review import review
from blueprint.review.model import Risk
from blueprint.review.sides import Library, Side, compared, sides
from tests.review.conftest import Bench

CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: web}}
spec: {{resources: {{requests: {{storage: 1Gi}}}}, accessModes: [ReadWriteOnce]}}
"""


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a.yaml").write_text(CLAIM.format(name="a"))
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    (tmp_path / "tree/a.yaml").write_text(CLAIM.format(name="b"))
    git(tmp_path, "commit", "-q", "-a", "-m", "two")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("base", "head"),
    [("main~1", "main"), ("main~1:tree", "tree"), ("main~1", "."), ("main~1:tree", "main:tree"), ("HEAD~1", "HEAD")],
)
@pytest.mark.usefixtures("repository")
def test_revisions_and_folders(base: str, head: str) -> None:
    found = review(base, head, findings=False)
    assert found.risk is Risk.DESTRUCTIVE and found.counts.renamed == 1


@pytest.mark.usefixtures("repository")
def test_what_is_neither_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="nowhere is no folder and no revision"):
        review("nowhere", ".")


def test_files_that_are_the_same_are_not_read(bench: Bench) -> None:
    library = Library()
    old, new = (Side(name, "", dict(bench.tree), library) for name in "bh")
    new.files["prod-a/queues/cohort-shared.yaml"] += b"# changed\n"
    found = compared(old, new)
    assert found.changed == ["prod-a/queues/cohort-shared.yaml"]
    assert len(found.manifests()[0]) == 1
    assert len(library._read) == 2


def test_specs_beside_their_tree_are_not_objects(tmp_path: Path) -> None:
    for folder in ("clusters", "rendered/prod"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "rendered/blueprint.lock").write_text("{}")
    (tmp_path / "clusters/prod.yaml").write_text("apiVersion: platform.blueprint/v1alpha1\nkind: Cluster\n")
    (tmp_path / "rendered/prod/a.yaml").write_text(CLAIM.format(name="a"))
    with sides(str(tmp_path), str(tmp_path)) as opened:
        assert list(opened.head.files) == ["prod/a.yaml"]
        assert opened.head.clusters == {"prod"}


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(6)), st.integers(1, 5))
def test_how_objects_are_put_into_files_means_nothing(bench: Bench, order: list[int], cut: int) -> None:
    documents = [CLAIM.format(name=f"claim-{number}") for number in range(6)]
    shuffled = [documents[number] for number in order]
    base = {"a.yaml": "---\n".join(documents).encode()}
    head = {"a.yaml": "---\n".join(shuffled[:cut]).encode(), "b.yaml": "---\n".join(shuffled[cut:]).encode()}
    found = bench.review(base, {path: data for path, data in head.items() if data})
    assert found.risk is Risk.NONE and not found.statements
    assert found.counts.added == found.counts.removed == 0


def test_a_kustomize_root_is_built(tmp_path: Path) -> None:
    from blueprint.conform import programs
    from blueprint.errors import EnvironmentLacks

    try:
        programs.find("kustomize")
    except EnvironmentLacks:
        pytest.skip("kustomize is not built")
    for name, suffix in (("base", "a"), ("head", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "claim.yaml").write_text(CLAIM.format(name="data"))
        (tmp_path / name / "kustomization.yaml").write_text(f"resources: [claim.yaml]\nnameSuffix: -{suffix}\n")
    found = review(str(tmp_path / "base"), str(tmp_path / "head"), findings=False)
    assert found.counts.renamed == 1


@pytest.fixture
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a small platform and its tree."""
    copy_example("standard", tmp_path / "platform")
    monkeypatch.chdir(tmp_path / "platform")
    render_platform(Path(), Path("rendered"))
    git(Path(), "init", "-q", "-b", "main")
    git(Path(), "add", "-A")
    git(Path(), "commit", "-q", "-m", "one")
    return tmp_path / "platform"


def borrow_less() -> None:
    """One number of one spec."""
    spec = Path("apps/research/team.yaml")
    changed = spec.read_text().replace("borrow: 24", "borrow: 16")
    assert changed != spec.read_text()
    spec.write_text(changed)


@pytest.mark.usefixtures("platform")
def test_specs_that_nobody_rendered_are_not_taken_for_nothing() -> None:
    borrow_less()
    found = review("HEAD", ".", findings=False)
    assert found.risk is Risk.UNKNOWN
    assert [meaning.words for meaning in found.meanings] == [
        "the specs changed, and the tree was not rendered from them: run `blueprint render`, then review"
    ]
    render_platform(Path(), Path("rendered"))
    found = review("HEAD", ".", findings=False)
    assert found.risk is Risk.CAPACITY
    assert not any("render" in meaning.words for meaning in found.meanings)


@pytest.mark.usefixtures("platform")
def test_nothing_is_said_where_specs_are_as_they_were() -> None:
    found = review("HEAD", ".", findings=False)
    assert (found.risk, found.meanings) == (Risk.NONE, ())


def test_specs_without_a_tree_are_no_manifests_beside_one_that_has_it(platform: Path) -> None:
    git(platform, "rm", "-q", "-r", "--cached", "rendered")
    git(platform, "commit", "-q", "-m", "trees are not kept")
    found = review("HEAD", ".", findings=False)
    assert found.counts.removed == 0 and found.counts.added > 50
