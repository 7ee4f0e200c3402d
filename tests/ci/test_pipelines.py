"""Ready-made CI: each pipeline is valid, and its shell steps do what they say, run as the CI would run them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from blueprint.errors import UsageError
from blueprint.new import copy_example, copy_pipeline, pipelines
from tests.deliver.comments import forge_with_comments
from tests.deliver.forges import TOKEN
from tests.deliver.repositories import bare, files_at, git

DELIVERY = """apiVersion: platform.blueprint/v1alpha1
kind: Delivery
metadata: {{name: delivery}}
spec:
  repository: {{url: 'file://{remote}'}}
{order}"""


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A platform of three clusters in Git, a bare GitOps repository, and `blueprint` in PATH."""
    (tmp_path / "gitconfig").write_text("[user]\n  name = Render\n  email = render@example.com\n")
    for name, value in {"GIT_CONFIG_GLOBAL": tmp_path / "gitconfig", "GIT_CONFIG_NOSYSTEM": 1, "NO_COLOR": 1}.items():
        monkeypatch.setenv(name, str(value))
    programs = tmp_path / "bin"
    programs.mkdir()
    script(programs / "blueprint", f'exec "{sys.executable}" -m blueprint "$@"')
    script(programs / "python3", f'exec "{sys.executable}" "$@"')
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    remote, platform = bare(tmp_path), tmp_path / "platform"
    copy_example("fleet", platform)
    (platform / "argocd/delivery.yaml").write_text(
        DELIVERY.format(remote=remote, order="  promotion: [[staging], [eu-west, us-east]]\n")
    )
    git(platform, "init", "--quiet", "--initial-branch=main")
    keep(platform)
    return platform, remote


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def keep(platform):
    git(platform, "add", "--all")
    git(platform, "commit", "--quiet", "-m", "x")


def shell(folder, text, code=0, **environment):
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def steps(job):
    return {step["name"]: step["run"] for step in job["steps"] if "run" in step}


def workflow():
    return yaml.safe_load((pipelines()["github"] / ".github/workflows/platform.yml").read_text())["jobs"]


def changed(platform):
    spec = platform / "apps/research/sweep.yaml"
    spec.write_text(spec.read_text().replace("1200Gi", "1100Gi"))


def reviewed(platform):
    """Commit a change of a spec; the commit before it."""
    base = git(platform, "rev-parse", "HEAD")
    changed(platform)
    keep(platform)
    return base


def test_github_reviews_a_pull_request_in_one_comment(world, tmp_path):
    platform, _ = world
    base = reviewed(platform)
    job = steps(workflow()["review"])
    runner, summary = tmp_path / "runner", tmp_path / "summary"
    runner.mkdir()
    with forge_with_comments("github") as (held, api):
        names = {
            "RUNNER_TEMP": str(runner),
            "GITHUB_STEP_SUMMARY": str(summary),
            "BASE": base,
            "GITHUB_API_URL": api,
            "GH_TOKEN": TOKEN,
            "PULL_REQUEST": "https://github.com/o/r/pull/7",
        }
        held.add("looks good", "somebody")
        for name in ("Render and check", "Review", "Comment", "Comment"):
            shell(platform, job[name], **names)
    assert summary.read_text().startswith("<!-- blueprint:review -->")
    assert "sweep" in summary.read_text()
    (_, text) = held.texts()
    assert "sweep" in text and "apps/research/sweep.yaml:" in text  # with the line of the spec


def test_the_action_reviews_a_pull_request(world, tmp_path):
    platform, _ = world
    shell(platform, "blueprint render >/dev/null && git add . && git commit -qm tree")
    base = git(platform, "rev-parse", "HEAD")
    changed(platform)
    shell(platform, "blueprint render >/dev/null && git add . && git commit -qm changed")
    action = yaml.safe_load((Path(__file__).parents[2] / "actions/review/action.yml").read_text())
    program = tmp_path / "runner/blueprint/bin/blueprint"
    program.parent.mkdir(parents=True)
    program.symlink_to(tmp_path / "bin/blueprint")
    (step,) = [each for each in action["runs"]["steps"] if each.get("id") == "review"]
    assert all(value.startswith("${{ inputs.") for value in step["env"].values())
    assert all("${{" not in each["run"] for each in action["runs"]["steps"])
    output, summary = tmp_path / "output", tmp_path / "summary"
    with forge_with_comments("github") as (held, api):
        names = {
            "RUNNER_TEMP": str(tmp_path / "runner"),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_API_URL": api,
            "GH_TOKEN": TOKEN,
            "BASE": base,
            "HEAD": "HEAD",
        }
        shell(platform, step["run"], **names, FAIL_ON="", COMMENT="https://github.com/o/r/pull/7")
        (text,) = held.texts()
        shell(platform, step["run"], code=1, **names, FAIL_ON="restart", COMMENT="none")
        assert held.texts() == [text]
    assert "sweep" in text and "sweep" in summary.read_text()
    sarif = json.loads(Path(output.read_text().splitlines()[0].removeprefix("sarif=")).read_text())
    assert sarif["runs"][0]["results"]


def test_github_delivers_and_promotes(world):
    platform, remote = world
    jobs = workflow()
    shell(platform, steps(jobs["deliver"])["Commit"], GITHUB_ACTOR="someone")
    assert {name.split("/")[1] for name in files_at(remote)} == {"staging", "blueprint.lock"}
    run = steps(jobs["promote"])["Promote"]
    shell(platform, run, GITHUB_ACTOR="someone", ENVIRONMENT="production", BACK="false")
    assert {name.split("/")[1] for name in files_at(remote)} == {"staging", "eu-west", "us-east", "blueprint.lock"}
    assert git(remote, "log", "-1", "--format=%an%n%s").splitlines()[0] == "someone"
    assert git(remote, "rev-list", "--count", "main") == "2"  # both clusters of the stage in one commit
    shell(platform, run, code=2, GITHUB_ACTOR="someone", ENVIRONMENT="eu-west", BACK="true")


def test_no_step_of_github_puts_input_into_a_script():
    for job in workflow().values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            assert "uses" not in step or ("@" in step["uses"] and len(step["uses"].partition("@")[2]) == 40)


def test_gitlab_reviews_and_delivers(world):
    platform, remote = world
    jobs = yaml.safe_load((pipelines()["gitlab"] / ".gitlab-ci.yml").read_text())
    base = reviewed(platform)
    script = "set -e\n" + "\n".join(jobs["review"]["script"])
    with forge_with_comments("gitlab") as (held, api):
        names = {
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
            "CI_MERGE_REQUEST_PROJECT_URL": "https://gitlab.example.com/o/r",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_API_V4_URL": api,
        }
        shell(platform, script, **names, GITLAB_TOKEN="")
        assert held.asked == []
        shutil.rmtree(platform / "work")
        git(platform, "worktree", "prune")
        shell(platform, script, **names, GITLAB_TOKEN=TOKEN)
    (text,) = held.texts()
    assert "sweep" in text and "apps/research/sweep.yaml:" in text
    assert (platform / "review.md").read_text().startswith("<!-- blueprint:review -->")
    assert isinstance(json.loads((platform / "codequality.json").read_text()), list)
    for name in ("work", "rendered"):
        shutil.rmtree(platform / name)
    for name in ("review.md", "codequality.json"):
        (platform / name).unlink()
    names = {
        "GITLAB_USER_NAME": "someone",
        "GITLAB_USER_EMAIL": "s@example.com",
        "GITOPS_TOKEN": "t",
        "CI_SERVER_HOST": "gitlab.example.com",
    }
    shell(platform, "set -e\n" + "\n".join([*jobs[".delivery"]["before_script"], *jobs["deliver"]["script"]]), **names)
    shell(platform, "\n".join(jobs["promote"]["script"]), ENVIRONMENT="production")
    assert any("/us-east/" in name for name in files_at(remote))


def test_argo_lists_the_first_stage_and_commits_each_cluster(world, tmp_path):
    platform, remote = world
    (platform / "argocd/delivery.yaml").write_text(DELIVERY.format(remote=remote, order=""))
    keep(platform)
    document = yaml.safe_load((pipelines()["argo"] / "ci/deliver.yaml").read_text())
    templates = {each["name"]: each for each in document["spec"]["templates"]}
    specs = tmp_path / "specs"
    names = {"REPOSITORY": f"file://{platform}", "REVISION": "main", "TOKEN": "t", "HOME": str(tmp_path)}

    def pod(name, **more):
        shutil.rmtree(specs, ignore_errors=True)
        return shell(tmp_path, templates[name]["script"]["source"].replace("/tmp/specs", str(specs)), **names, **more)

    clusters = json.loads(pod("list"))
    assert clusters == ["eu-west", "staging", "us-east"]
    for cluster in clusters:
        pod("commit", CLUSTER=cluster)
    assert {name.split("/")[1] for name in files_at(remote)} == {*clusters, "blueprint.lock"}
    steps_of = templates["deliver"]["steps"]
    assert [each[0]["template"] for each in steps_of] == ["list", "commit"]
    assert document["spec"]["parallelism"] <= 8


def test_the_hook_refuses_a_tree_that_is_behind_its_specs(world):
    platform, _ = world
    copy_pipeline("git", platform)
    git(platform, "config", "core.hooksPath", "ci/hooks")
    keep(platform)
    shell(platform, "blueprint render >/dev/null && git add . && git commit -qm tree")
    changed(platform)
    git(platform, "add", "--all")
    shell(platform, "git commit -qm stale", code=1)
    shell(platform, "blueprint render >/dev/null && git add . && git commit -qm fresh")


def test_a_pipeline_comes_with_a_platform_or_to_one(tmp_path):
    assert copy_pipeline("github", tmp_path) == [".github/workflows/platform.yml"]
    with pytest.raises(UsageError, match="is there already"):
        copy_pipeline("github", tmp_path)
    with pytest.raises(UsageError, match="no pipeline is called jenkins"):
        copy_pipeline("jenkins", tmp_path)


@pytest.mark.parametrize(
    ("pipeline", "file", "options"),
    [
        ("github", ".github/workflows/platform.yml", ["--builtin-schema", "vendor.github-workflows"]),
        ("gitlab", ".gitlab-ci.yml", ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"]),
    ],
)
def test_pipelines_fit_their_schemas(pipeline, file, options):
    """The schemas are those that SchemaStore publishes, as check-jsonschema ships them."""
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    call = [sys.executable, "-m", "check_jsonschema", *options, str(pipelines()[pipeline] / file)]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["action.yml", "actions/check/action.yml", "actions/review/action.yml"])
def test_actions_fit_their_schema(name):
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    file = str(Path(__file__).parents[2] / name)
    call = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", file]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
