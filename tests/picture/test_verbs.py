"""`graph` and `handbook` as a person calls them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from blueprint.new import copy_example


@pytest.fixture
def platform(tmp_path):
    copy_example("mig", tmp_path / "mine")
    return tmp_path


def run(folder, *arguments, code=0, given="", **environment):
    done = subprocess.run(
        [sys.executable, "-m", "blueprint", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        input=given,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "120"} | environment,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_a_platform_is_drawn_without_being_rendered_first(platform):
    assert run(platform, "graph", "mine", "--out", "all.html").stdout == "all.html\n"
    text = (platform / "all.html").read_text()
    assert text.count("<svg ") == 3 and "Quotas of slices" in text
    assert not (platform / "mine/rendered").exists()


def test_several_pictures_need_a_folder(platform):
    refused = run(platform, "graph", "mine", "-o", "svg", code=2).stderr
    assert "quota-slices, waves-slices, network-slices" in refused
    written = run(platform, "graph", "mine", "-o", "svg", "--out", "pictures").stdout.split()
    assert written == [f"pictures/{name}-slices.svg" for name in ("quota", "waves", "network")]
    one = run(platform, "graph", "mine", "--of", "quota", "-o", "svg").stdout
    assert one == (platform / written[0]).read_text()


def test_every_form_goes_into_the_file_that_is_asked_for(platform):
    for form in ("html", "svg", "mermaid", "json"):
        verb = ("graph", "mine", "--of", "quota", "-o", form)
        assert run(platform, *verb, "--out", f"one.{form}").stdout == f"one.{form}\n"
        assert (platform / f"one.{form}").read_text() == run(platform, *verb).stdout


@pytest.mark.parametrize("form", ["html", "svg", "mermaid", "json"])
def test_the_same_objects_give_the_same_bytes(platform, form):
    seen = {run(platform, "graph", "mine", "--of", "quota", "-o", form, PYTHONHASHSEED=seed).stdout for seed in "1234"}
    assert len(seen) == 1


def test_an_applications_way_names_its_spec(platform):
    document = json.loads(run(platform, "graph", "mine", "--app", "guard-1b", "-o", "json").stdout)
    (picture,) = document["pictures"]
    assert (document["schema"], picture["title"]) == (1, "The way of guard-1b on slices")
    assert picture["rows"][1] == {
        "Stage": "Written",
        "What": "Rendered file",
        "Name": "deployment-guard-1b.yaml",
        "More": "",
    }
    assert "apps/guard/guard-1b.yaml:1" in str(picture["rows"])


def test_anybodys_manifests_come_by_the_input(platform):
    queue = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: mine}\n"
        "spec:\n  namespaceSelector: {}\n"
        "  resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: a, resources: "
        "[{name: nvidia.com/gpu, nominalQuota: 8}]}]}]\n"
    )
    text = run(platform, "graph", "-", "--of", "quota", "-o", "mermaid", given=queue).stdout
    assert text == 'flowchart LR\n  q0(["queue mine<br>a gpu: 8"])\n'


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["graph", "mine", "--of", "costs"], "there is no picture of costs"),
        (["graph", "mine", "--app", "guard-2b"], "did you mean guard-1b?"),
        (["graph", "mine", "--cluster", "moon"], "no cluster is called moon"),
        (["graph", "empty"], "there are no Kubernetes objects here"),
        (["graph", "nowhere"], "no such file or folder"),
        (["graph", ""], "an empty path"),
        (["handbook", "empty"], "no platform"),
    ],
)
def test_what_is_wrong_is_told(platform, arguments, words):
    (platform / "empty").mkdir()
    assert words in run(platform, *arguments, code=2).stderr


def test_a_platform_with_mistakes_is_not_drawn(platform):
    team = platform / "mine/apps/guard/team.yaml"
    team.write_text(team.read_text().replace("weight: 2", "wieght: 2"))
    for verb in ("graph", "handbook"):
        assert "the platform has mistakes: unknown field wieght" in run(platform, verb, "mine", code=2).stderr


def test_a_handbook_is_written_where_its_links_lead_to_the_specs(platform):
    run(platform, "handbook", "mine", "--out", "mine/docs")
    text = (platform / "mine/docs/handbook.md").read_text()
    assert "(../clusters/slices.yaml)" in text
    assert (platform / "mine/docs/handbook.html").read_text().startswith("<!doctype html>")
    assert "(clusters/slices.yaml)" in run(platform, "handbook", "mine").stdout
    cards = json.loads(run(platform, "handbook", "mine", "-o", "json").stdout)["tasks"]
    assert {"Owner", "Input", "Output", "Acceptance", "Task"} == set(cards[0])


def test_the_commands_of_the_page_run_as_they_stand(tmp_path):
    """On the reference platform, with the manifests of somebody else beside it."""
    root = Path(__file__).resolve().parents[2]
    mine, other = tmp_path / "mine", tmp_path / "another/repo"
    for part in ("apps", "argocd", "clusters", "policies"):
        shutil.copytree(root / part, mine / part)
    other.mkdir(parents=True)
    (other / "app.yaml").write_text(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a, namespace: argocd}\n"
        "spec: {project: default, destination: {name: in-cluster, namespace: a}, "
        "source: {repoURL: 'https://git.example.com/a', path: a}}\n"
    )
    (other / "a").mkdir()
    (other / "a/a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: a}\n")
    page = (root / "docs/pictures.md").read_text()
    block = page.split("```\n", 2)[1]
    commands = [line.partition("#")[0].split() for line in block.splitlines()]
    assert len(commands) == 5 and all(command[0] == "blueprint" for command in commands)
    for command in commands:
        assert run(mine, *command[1:]).stdout


def test_what_is_not_there_is_said_in_words(tmp_path):
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
    plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n"
    refused = run(tmp_path, "graph", "-", "--of", "waves", code=2, given=space).stderr
    assert "nothing to draw: no Application of Argo CD holds any of these objects" in refused
    refused = run(tmp_path, "graph", "-", code=2, given=plain).stderr
    assert "no ClusterQueue and no Cohort is here" in refused and "no Namespace is here" in refused

    page = run(tmp_path, "graph", "-", given=space).stdout
    assert page.count("<svg ") == 3
    assert "No Application of Argo CD holds any of these objects, so that nothing orders them in waves." in page
    document = json.loads(run(tmp_path, "graph", "-", "-o", "json", given=space).stdout)
    quota, waves, network = document["pictures"]
    assert quota["says"].startswith("No ClusterQueue") and not quota["rows"]
    assert waves["says"].startswith("No Application") and not waves["rows"]
    assert network["says"].startswith("1 namespace")  # what is there is drawn as ever


def test_mermaid_draws_three_hundred_queues(tmp_path):
    queue = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: team-{0}-of-the-research-group}}\n"
        "spec:\n  cohortName: c{1}\n  resourceGroups:\n  - coveredResources: [nvidia.com/gpu]\n    flavors:\n"
        "    - {{name: h100, resources: [{{name: nvidia.com/gpu, nominalQuota: 8}}]}}\n"
    )
    text = "---\n".join(queue.format(number, number // 30) for number in range(300))
    drawn = run(tmp_path, "graph", "-", "--of", "quota", "-o", "mermaid", given=text).stdout
    assert drawn.count("team-") == 300 and drawn.count("-->") == 300
    assert len(drawn) < 50_000  # maxTextSize in Mermaid's defaults, which forges keep
