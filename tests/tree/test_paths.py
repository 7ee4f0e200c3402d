import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.tree import paths


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/passwd", "absolute"),
        ("prod/../../x", "'..'"),
        ("prod/./x", "'.'"),
        ("prod//x", "''"),
        ("prod/", "''"),
        ("", "''"),
        ("x.yaml", "no cluster"),
        (".github/workflows/x.yaml", "dot"),
        (".git/config", "Git"),
        ("prod/.git/hooks/post-checkout", "Git"),
        ("prod/.GIT/config", "Git"),
        ("prod\\..\\x", "backslash"),
        ("prod/a\nb", "printed"),
        ("prod/a\0b", "printed"),
        ("prod/a\u202eb", "printed"),
        ("prod/" + "a" * 256, "255 bytes"),
        ("prod/" + "é" * 128, "255 bytes"),
    ],
)
def test_names_that_must_not_be_written(path, reason):
    assert reason in paths.fault(path)


@pytest.mark.parametrize(
    "path",
    [
        "prod/x",
        "prod-a/search-ai/clusterrole-system:queue-viewer.yaml",
        "prod/.hidden",
        "prod/.gitignore",
        "prod/..x",
        "prod/a b.yaml",
        "prod/" + "a" * 255,
        "prod/" + "é" * 127,
    ],
)
def test_names_that_may(path):
    assert paths.fault(path) == ""


@given(st.text(alphabet="ab./\\-é\n:G git", max_size=12))
def test_no_accepted_name_leaves_the_root(path):
    if not paths.fault(path):
        segments = path.split("/")
        assert len(segments) >= 2
        assert not {"", ".", ".."} & set(segments)
        assert not re.search(r"[\\\x00-\x1f]", path)


@given(st.from_regex(r"[a-z][a-z0-9.]{0,5}(/[a-z.][a-z0-9.]{0,5}){1,3}", fullmatch=True))
def test_the_short_cut_agrees_with_the_long_way(path):
    segments = path.split("/")
    assert bool(paths.fault(path)) == any(segment in {".", "..", ".git"} for segment in segments)


def test_twins_by_case_form_and_folder():
    assert list(paths.twins(["p/Queue.yaml", "p/queue.yaml"])) == [("p/Queue.yaml", "p/queue.yaml")]
    assert list(paths.twins(["p/e\u0301.yaml", "p/\u00e9.yaml"])) == [("p/e\u0301.yaml", "p/\u00e9.yaml")]
    assert list(paths.twins(["P/a", "p/b"])) == [("P", "p")]
    assert list(paths.twins(["p/a", "p/b", "q/a"])) == []


def test_folders():
    assert paths.folders_of(["a/b/c/x", "a/b/y", "z"]) == {"a", "a/b", "a/b/c"}
    assert list(paths.ancestors("a/b/c")) == ["a/b", "a"]


def test_pruned_folders_go_and_empty_ones_of_others_stay():
    folders = {"a", "a/pruned", "a/pruned/deep", "mine", "a/pruned2", "a/pruned2/mine"}
    removed = ["a/pruned/deep/x", "a/pruned2/x"]
    assert paths.remaining_folders(folders, ["a/kept"], removed) == {"a", "mine", "a/pruned2", "a/pruned2/mine"}
