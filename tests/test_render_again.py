"""What rendering says comes next, and what it leaves alone the second time."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from blueprint.cli import VERBS
from blueprint.errors import UsageError
from blueprint.new import copy_example
from blueprint.pipeline import render_platform
from tests.test_cli import blueprint


def test_the_next_command_is_this_one_again(tmp_path: Path) -> None:
    folder = tmp_path / "my platform"
    copy_example("fleet", folder)
    options = ["--out", tmp_path / "a tree", "--cluster", "staging"]
    looked = blueprint("render", folder, *options, "--check", cwd=tmp_path)
    assert looked.returncode == 1
    advised = looked.stdout.splitlines()[-1].removeprefix("next: blueprint ")
    assert shlex.split(advised) == ["render", *map(str, [folder, *options])]
    rendered = blueprint(*shlex.split(advised), cwd=tmp_path)
    assert rendered.returncode == 0
    assert shlex.split(rendered.stdout.splitlines()[-1])[2:] == ["check", str(tmp_path / "a tree")]
    assert blueprint("render", folder, *options, "--check", cwd=tmp_path).returncode == 0


def test_one_cluster_of_an_unchanged_tree_is_not_rendered_again(tmp_path: Path) -> None:
    platform, tree = tmp_path / "platform", tmp_path / "tree"
    copy_example("fleet", platform)
    render_platform(platform, tree)
    (tree / "blueprint.lock").touch()
    assert render_platform(platform, tree, clusters=["staging"]).current
    assert render_platform(platform, tree, clusters=["staging", "us-east"]).totals.clusters == 2
    with pytest.raises(UsageError, match="no cluster is called 'nowhere'"):
        render_platform(platform, tree, clusters=["staging", "nowhere"])

    spec = platform / "clusters/eu-west.yaml"
    spec.write_text(spec.read_text().replace("nodes: ", "nodes: 1", 1))
    ours = render_platform(platform, tree, clusters=["eu-west"])
    assert not ours.current and ours.plan is not None and ours.plan.changed
    # The others are not asked for; what they were made from is older.
    assert render_platform(platform, tree, clusters=["eu-west"]).current
    assert not render_platform(platform, tree, clusters=["staging"]).current
    assert not render_platform(platform, tree).current


def test_a_run_that_writes_nothing_tells_the_findings_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLUEPRINT_CACHE", str(tmp_path / "cache"))
    copy_example("minimal", tmp_path / "platform")
    pool = tmp_path / "platform/clusters/lab.yaml"
    pool.write_text(pool.read_text().replace("NVIDIA-", "NVIDIAA-"))
    first = render_platform(tmp_path / "platform", tmp_path / "tree")
    assert [finding.code for finding in first.report.findings] == ["NOD103"]
    (tmp_path / "tree/blueprint.lock").touch()
    for check_only in (False, True):
        again = render_platform(tmp_path / "platform", tmp_path / "tree", check_only=check_only)
        assert again.current and again.report == first.report

    shown = blueprint("render", "platform", "--out", "tree", "--check", cwd=tmp_path)
    assert shown.returncode == 0 and "1 finding (1 warning)" in shown.stdout and "NOD103" in shown.stdout
    shutil.rmtree(tmp_path / "cache")  # a fresh clone on another machine: judged again, and not silent
    fresh = blueprint("render", "platform", "--out", "tree", "--check", cwd=tmp_path)
    assert fresh.returncode == 0 and "1 finding (1 warning)" in fresh.stdout
    monkeypatch.setenv("BLUEPRINT_CACHE", "")  # nothing is kept
    assert not render_platform(tmp_path / "platform", tmp_path / "tree").current
    pool.write_text(pool.read_text().replace("NVIDIAA-", "NVIDIA-"))
    monkeypatch.setenv("BLUEPRINT_CACHE", str(tmp_path / "cache"))
    assert not render_platform(tmp_path / "platform", tmp_path / "tree").report.findings


def test_a_tree_that_was_touched_is_rendered_again_for_one_cluster(tmp_path: Path) -> None:
    platform, tree = tmp_path / "platform", tmp_path / "tree"
    copy_example("fleet", platform)
    render_platform(platform, tree)
    (tree / "blueprint.lock").touch()
    file = next((tree / "us-east").rglob("*.yaml"))
    file.write_text(file.read_text() + "# mine\n")
    assert not render_platform(platform, tree, clusters=["staging"]).current


def test_the_help_lists_every_verb_and_group_in_the_order_of_their_use(tmp_path: Path) -> None:
    shown = blueprint("--help", cwd=tmp_path).stdout.partition("Commands:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in shown.splitlines()] == list(VERBS)
    assert VERBS.index("images") < VERBS.index("sign") < VERBS.index("credential") < VERBS.index("version")


def test_a_pipeline_that_there_is_not_begins_nothing(tmp_path: Path) -> None:
    wrong = blueprint("new", "x", "--ci", "nothing", cwd=tmp_path)
    assert wrong.returncode == 2 and "no pipeline is called nothing" in wrong.stderr
    assert not (tmp_path / "x").exists()
    (tmp_path / "y").mkdir()
    (tmp_path / "y/.gitlab-ci.yml").symlink_to("nowhere")
    taken = blueprint("new", "y", "--ci", "gitlab", cwd=tmp_path)
    assert taken.returncode == 2 and ".gitlab-ci.yml is there already" in taken.stderr
    assert [path.name for path in (tmp_path / "y").iterdir()] == [".gitlab-ci.yml"]


def test_an_example_that_is_asked_for_is_not_silently_left_out(tmp_path: Path) -> None:
    copy_example("minimal", tmp_path / "x")
    asked = blueprint("new", "x", "--ci", "gitlab", "--example", "small", cwd=tmp_path)
    assert asked.returncode == 2 and "is there already" in asked.stderr
    assert not (tmp_path / "x/.gitlab-ci.yml").exists()
    assert blueprint("new", "x", "--ci", "gitlab", cwd=tmp_path).returncode == 0


def test_a_folder_that_looks_like_an_option_can_be_copied_from_the_advice(tmp_path: Path) -> None:
    started = blueprint("new", "--", "-x", cwd=tmp_path)
    advised = shlex.split(started.stdout.splitlines()[-1].removeprefix("next: blueprint "))
    assert advised == ["render", "./-x"]
    rendered = blueprint(*advised, cwd=tmp_path)
    assert rendered.returncode == 0
    checked = blueprint(*shlex.split(rendered.stdout.splitlines()[-1].removeprefix("next: blueprint ")), cwd=tmp_path)
    assert checked.returncode == 0


def test_a_slip_in_the_call_is_told_with_what_was_meant(tmp_path: Path) -> None:
    platform = tmp_path / "platform"
    copy_example("fleet", platform)
    with pytest.raises(UsageError) as of_case:
        render_platform(platform, tmp_path / "tree", clusters=["STAGING"])
    assert of_case.value.hint == "did you mean staging?"
    with pytest.raises(UsageError) as of_folder:
        render_platform(platform / "clusters", tmp_path / "tree")
    assert of_folder.value.hint == f"name the folder above, {platform}"


def test_no_tree_is_put_into_a_tree(tmp_path: Path) -> None:
    platform = tmp_path / "platform"
    copy_example("minimal", platform)
    render_platform(platform, platform / "rendered")
    with pytest.raises(UsageError, match="in another tree"):
        render_platform(platform, platform / "rendered/lab")
    assert not (platform / "rendered/lab/blueprint.lock").exists()


def test_what_a_killed_run_left_goes_with_a_run_that_changes_nothing(tmp_path: Path) -> None:
    platform, tree = tmp_path / "platform", tmp_path / "tree"
    copy_example("fleet", platform)
    render_platform(platform, tree)
    (tree / "blueprint.lock").touch()
    mark, stage = tmp_path / ".tree.blueprint-run", tmp_path / ".tree.blueprint-stage"
    mark.touch()
    (stage / "staging").mkdir(parents=True)
    render_platform(platform, tree, check_only=True)
    assert mark.exists() and stage.exists(), "a look at the tree changes nothing"
    assert render_platform(platform, tree).current
    assert not mark.exists() and not stage.exists()
