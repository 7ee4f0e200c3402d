"""The command line as a person meets it: exit codes, one clear error, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from blueprint.new import copy_example, examples

REPOSITORY = Path(__file__).parents[1]


def blueprint(*arguments: str | Path, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line as its own process."""
    done = subprocess.run(
        [sys.executable, "-m", "blueprint", *map(str, arguments)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120"},
        check=False,
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    copy_example("minimal", tmp_path / "platform")
    return tmp_path / "platform"


def test_the_smallest_platform_is_green_at_once(tmp_path: Path) -> None:
    started = blueprint("new", "mine", cwd=tmp_path)
    assert started.returncode == 0
    assert "next: blueprint render mine" in started.stdout
    rendered = blueprint("render", "mine", cwd=tmp_path)
    assert rendered.returncode == 0, rendered.stdout
    assert "no findings" in rendered.stdout
    assert "next: blueprint check mine/rendered" in rendered.stdout
    checked = blueprint("check", "mine/rendered", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
    specs = [path for path in (tmp_path / "mine").rglob("*.yaml") if "rendered" not in path.parts]
    assert sum(len(path.read_text().splitlines()) for path in specs) < 40


def test_new_refuses_a_folder_in_use(platform: Path) -> None:
    again = blueprint("new", platform, cwd=platform)
    assert again.returncode == 2
    assert "there already" in again.stderr


def test_new_names_the_examples(tmp_path: Path) -> None:
    wrong = blueprint("new", "x", "--example", "huge", cwd=tmp_path)
    assert wrong.returncode == 2
    assert all(name in wrong.stderr for name in examples())


def test_check_tells_whether_anything_would_change(platform: Path) -> None:
    before = blueprint("render", "--check", cwd=platform)
    assert before.returncode == 1
    assert not (platform / "rendered").exists()
    assert blueprint("render", cwd=platform).returncode == 0
    after = blueprint("render", "--check", cwd=platform)
    assert after.returncode == 0
    team = platform / "apps/demo/demo.yaml"
    team.write_text(team.read_text().replace("gpus: 8", "gpus: 6"))
    changed = blueprint("render", "--check", cwd=platform)
    assert changed.returncode == 1
    assert "~ lab/queues/clusterqueue-demo-training-plain.yaml" in changed.stdout


def test_a_mistake_in_a_spec_keeps_the_old_tree(platform: Path) -> None:
    assert blueprint("render", cwd=platform).returncode == 0
    before = {path: path.read_bytes() for path in (platform / "rendered").rglob("*") if path.is_file()}
    team = platform / "apps/demo/demo.yaml"
    team.write_text(team.read_text().replace("quotas:", "quota:"))
    failed = blueprint("render", cwd=platform)
    assert failed.returncode == 1
    assert "apps/demo/demo.yaml:6:3" in failed.stdout
    assert "quotas" in failed.stdout
    assert {path: path.read_bytes() for path in (platform / "rendered").rglob("*") if path.is_file()} == before


def test_a_hand_edit_is_never_overwritten_in_silence(platform: Path) -> None:
    assert blueprint("render", cwd=platform).returncode == 0
    owned = platform / "rendered/lab/access/clusterrole-platform-admin.yaml"
    owned.write_text(owned.read_text() + "# mine\n")
    refused = blueprint("render", cwd=platform)
    assert refused.returncode == 1
    assert "clusterrole-platform-admin.yaml" in refused.stdout
    assert "# mine" in owned.read_text()
    assert blueprint("render", "--force", cwd=platform).returncode == 0
    assert "# mine" not in owned.read_text()


def test_one_cluster_leaves_the_others_alone(tmp_path: Path) -> None:
    copy_example("reference", tmp_path)
    assert blueprint("render", cwd=tmp_path).returncode == 0
    prod = {path: path.read_bytes() for path in (tmp_path / "rendered/prod-a").rglob("*.yaml")}
    for spec in ("clusters/prod-a.yaml", "clusters/preprod.yaml"):
        file = tmp_path / spec
        file.write_text(file.read_text().replace("release: monitoring", "release: prometheus"))
    done = blueprint("render", "--cluster", "preprod", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert {path: path.read_bytes() for path in (tmp_path / "rendered/prod-a").rglob("*.yaml")} == prod
    assert blueprint("render", "--check", cwd=tmp_path).returncode == 1


def test_a_tree_without_some_cluster_is_not_up_to_date(platform: Path) -> None:
    lab = (platform / "clusters/lab.yaml").read_text()
    (platform / "clusters/next.yaml").write_text(lab.replace("name: lab", "name: next"))
    assert blueprint("render", "--cluster", "lab", cwd=platform).returncode == 0
    missing = blueprint("render", "--check", cwd=platform)
    assert missing.returncode == 1
    assert "+ next/" in missing.stdout
    assert blueprint("render", cwd=platform).returncode == 0
    assert (platform / "rendered/next").is_dir()
    assert "up to date" in blueprint("render", cwd=platform).stdout


@pytest.mark.parametrize("out", [".", "clusters", "clusters/tree", "templates/x", "apps/../argocd"])
def test_a_tree_does_not_lie_among_the_specs(platform: Path, out: str) -> None:
    before = sorted(platform.rglob("*"))
    done = blueprint("render", "--out", out, cwd=platform)
    assert done.returncode == 2
    assert "among the specs" in done.stderr
    assert sorted(platform.rglob("*")) == before


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("..", "would hold the platform itself"),
        ("../..", "would hold the platform itself"),
        (".git", "Git's own folder"),
        (".git/x/y", "Git's own folder"),
    ],
)
def test_a_tree_takes_no_folder_of_others(platform: Path, out: str, says: str) -> None:
    (platform / ".git").mkdir()
    (platform / ".git/HEAD").write_text("ref: refs/heads/main\n")
    before = sorted(platform.parent.rglob("*"))
    done = blueprint("render", "--out", out, cwd=platform)
    assert done.returncode == 2
    assert says in done.stderr
    assert sorted(platform.parent.rglob("*")) == before


def test_an_unknown_cluster_is_named(platform: Path) -> None:
    wrong = blueprint("render", "--cluster", "lap", cwd=platform)
    assert wrong.returncode == 2
    assert "lab" in wrong.stderr


def test_templates_that_are_no_folder_are_not_passed_over(platform: Path) -> None:
    (platform / "templates").write_text("kind: Namespace\n")
    done = blueprint("render", cwd=platform)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "blueprint: .: templates is no folder")
    (platform / "templates").unlink()
    (platform / "templates").symlink_to("nowhere")
    done = blueprint("render", cwd=platform)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "blueprint: .: templates is a link to nowhere")


def test_what_a_template_breaks_names_the_template(platform: Path) -> None:
    (platform / "templates").mkdir()
    ours = (REPOSITORY / "templates/ClusterQueue.yaml.j2").read_text()
    (platform / "templates/ClusterQueue.yaml.j2").write_text(ours.replace("\nspec:\n", "\nspec:\n  bogus: 1\n"))
    done = blueprint("render", cwd=platform)
    assert done.returncode == 1
    assert "unknown field `bogus` (made from templates/ClusterQueue.yaml.j2)" in done.stdout


def test_a_cluster_that_is_named_twice_is_rendered_once(platform: Path) -> None:
    done = blueprint("render", "--cluster", "lab", "--cluster", "lab", "-o", "json", cwd=platform)
    assert done.returncode == 0
    rows = [(row["cluster"], row["name"]) for row in json.loads(done.stdout)["applications"]]
    assert len(rows) == len(set(rows))


def test_another_platform_does_not_take_over_a_tree(platform: Path, tmp_path: Path) -> None:
    assert blueprint("render", platform, "--out", tmp_path / "tree", cwd=tmp_path).returncode == 0
    copy_example("minimal", tmp_path / "other")
    for file in (tmp_path / "other").rglob("*.yaml"):
        file.write_text(file.read_text().replace("lab", "sea"))
    taken = blueprint("render", "other", "--out", "tree", cwd=tmp_path)
    assert taken.returncode == 1
    assert "it holds lab, and all of it would be removed" in taken.stdout
    assert (tmp_path / "tree/lab/access").is_dir()


def test_json_is_one_document(platform: Path) -> None:
    rendered = blueprint("render", "-o", "json", cwd=platform)
    document = json.loads(rendered.stdout)
    assert document["findings"] == []
    assert (document["read"]["files"], document["read"]["documents"]) == (3, 4)
    assert document["changes"]["added"]
    checked = json.loads(blueprint("check", "rendered", "-o", "json", cwd=platform).stdout)
    assert checked["read"]["objects"] == document["read"]["objects"]
    assert json.loads(blueprint("render", "-o", "json", cwd=platform).stdout)["read"] == document["read"]


def test_check_reads_the_standard_input(tmp_path: Path) -> None:
    good = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
    assert blueprint("check", "-", cwd=tmp_path, stdin=good).returncode == 0
    bad = blueprint("check", "-", cwd=tmp_path, stdin=good + "dta: {}\n")
    assert bad.returncode == 1
    assert "<stdin>:5" in bad.stdout
    assert "data" in bad.stdout


@pytest.mark.parametrize(
    "arguments", [["render", "nowhere"], ["check", "nowhere"], ["rules", "XXX999"], ["render", "-o", "x"]]
)
def test_wrong_usage_is_one_clear_error(arguments: list[str], tmp_path: Path) -> None:
    wrong = blueprint(*arguments, cwd=tmp_path)
    assert wrong.returncode == 2
    assert wrong.stderr.strip()


def test_a_folder_without_specs_says_how_to_start(tmp_path: Path) -> None:
    empty = blueprint("render", cwd=tmp_path)
    assert empty.returncode == 2
    assert "blueprint new" in empty.stderr


def test_every_rule_has_a_page(tmp_path: Path) -> None:
    listed = blueprint("rules", cwd=tmp_path)
    codes = [line.split()[0] for line in listed.stdout.splitlines()]
    assert len(codes) == len(set(codes)) > 40
    page = blueprint("rules", codes[0].lower(), cwd=tmp_path)
    assert codes[0] in page.stdout
    assert "fix:" in page.stdout


def test_the_readme_shows_the_real_help(tmp_path: Path) -> None:
    helped = subprocess.run(
        [sys.executable, "-m", "blueprint", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80"},
        check=True,
    )
    assert helped.stdout.strip() in (REPOSITORY / "README.md").read_text()


@pytest.mark.parametrize(("verb", "streams"), [("version", "<&- >&- 2>&-"), ("render", ">&-"), ("check", "<&-")])
def test_closed_streams_change_nothing(platform: Path, verb: str, streams: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$@" {streams}', "sh", sys.executable, "-m", "blueprint", verb],
        cwd=platform,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("verb", ["version", "render"])
def test_output_that_cannot_be_written_is_one_line(platform: Path, verb: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "blueprint", verb],
            cwd=platform,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == "blueprint: No space left on device\n"


def test_new_says_what_stands_in_its_way(platform: Path) -> None:
    (platform / "dangling").symlink_to("nowhere")
    (platform / "half").mkdir()
    (platform / "half/apps").symlink_to("nowhere")
    for target, says in (
        ("clusters/lab.yaml/x", "clusters/lab.yaml is no folder"),
        ("clusters/lab.yaml", "clusters/lab.yaml is no folder"),
        ("dangling", "dangling is a link to something that is not there"),
        ("dangling/x", "dangling is a link to something that is not there"),
        ("half", "apps/ is there already"),
    ):
        done = blueprint("new", target, cwd=platform)
        assert done.returncode == 2
        assert done.stderr.startswith(f"blueprint: {target}: {says}\n")
    assert not (platform / "nowhere").exists()


def test_new_follows_a_link_to_a_folder(platform: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert blueprint("new", "link", cwd=tmp_path).returncode == 0
    assert (tmp_path / "real/clusters/lab.yaml").is_file()


@pytest.mark.parametrize(
    "arguments", [["new", ""], ["render", ""], ["render", "--out", ""], ["check", ""], ["rules", ""]], ids=" ".join
)
def test_no_name_is_not_the_current_folder(arguments: list[str], platform: Path) -> None:
    before = sorted(platform.rglob("*"))
    done = blueprint(*arguments, cwd=platform)
    assert done.returncode == 2
    assert "empty" in done.stderr
    assert sorted(platform.rglob("*")) == before


def test_verbs_without_findings_have_documents_too(tmp_path: Path) -> None:
    started = json.loads(blueprint("new", "mine", "-o", "json", cwd=tmp_path).stdout)
    assert started["schema"] == 1
    assert started["files"] == sorted(
        str(path.relative_to(tmp_path / "mine")) for path in (tmp_path / "mine").rglob("*.yaml")
    )
    [rule] = json.loads(blueprint("rules", "WAV106", "-o", "json", cwd=tmp_path).stdout)["rules"]
    assert (rule["code"], rule["confidence"]) == ("WAV106", "certain")
    everything = json.loads(blueprint("rules", "-o", "json", cwd=tmp_path).stdout)["rules"]
    assert rule in everything
    assert set(json.loads(blueprint("version", "-o", "json", cwd=tmp_path).stdout)) == {
        "schema",
        "blueprint",
        "kubernetes",
    }
    assert blueprint("version", "-o", "sarif", cwd=tmp_path).returncode == 2


def test_a_check_of_nothing_is_no_approval(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "comments.yaml").write_text("# nothing here\n---\n")
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    for path in ("empty", "comments.yaml"):
        done = blueprint("check", path, cwd=tmp_path)
        assert done.returncode == 2
        assert "nothing to check" in done.stderr
    done = blueprint("check", "-", cwd=tmp_path)
    assert done.returncode == 2
    done = blueprint("check", "values.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert "nothing was judged" in done.stdout
