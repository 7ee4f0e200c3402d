"""The decision in words and in JSON, from files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from blueprint.admission.explain import document, text
from blueprint.admission.world import KINDS
from blueprint.cli import app
from blueprint.errors import UsageError
from blueprint.explain import deciding, explain_paths
from tests.admission.writing import GPU, Body, flavor, gpus, local, pods, workload

PACKAGE = Path(__file__).parents[2] / "blueprint"


def write(folder: Path, *bodies: Body) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "all.yaml").write_text(yaml.safe_dump_all(bodies))
    return folder


def world(gpu: int, name: str = "w", asked: int = 12) -> list[Body]:
    return [
        flavor("f"),
        local("lq", "a"),
        gpus("a", gpu, 4, cohort="c"),
        gpus("b", 8, cohort="c"),
        workload(pods(requests={GPU: asked}), name=name),
    ]


def test_words(tmp_path: Path) -> None:
    found = explain_paths("workload/w", [write(tmp_path, *world(4))])
    assert text(found.decision, found.change) == (
        "Workload.kueue.x-k8s.io team/w cannot be admitted on an idle cluster by quota alone, "
        "for no inventory is given (Kueue 0.17.0)\n"
        "  asks    p: 1 pods: 12 nvidia.com/gpu\n"
        "  path    LocalQueue team/lq → ClusterQueue a → cohort c\n"
        "  refused KQ202 p: 12 nvidia.com/gpu is more than the 8 that flavor f can ever give\n"
        "          binds: borrowingLimit 4 of ClusterQueue a\n"
        "  smallest change: ClusterQueue.kueue.x-k8s.io a: borrowingLimit of nvidia.com/gpu on flavor f 4 → 8\n"
    )


def test_an_inventory_is_named_where_there_is_one(tmp_path: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {GPU: "8"}}}
    found = explain_paths("workload/w", [write(tmp_path, *world(4), node)])
    assert "cannot be admitted on an idle cluster with this inventory" in text(found.decision, found.change)


@pytest.mark.parametrize("release", ["latest", "9.9", "0.16.4", "main"])
def test_a_version_of_which_nothing_is_known_is_a_wrong_call(release: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no version of Kueue") as raised:
        explain_paths("workload/w", [write(tmp_path, *world(4))], kueue=release)
    assert "0.17.0 to 0.19.x" in raised.value.hint
    assert explain_paths("workload/w", [tmp_path], kueue="v0.18.2").decision.kueue == "v0.18.2"


def test_json_is_the_contract(tmp_path: Path) -> None:
    found = explain_paths("Workload/w", [write(tmp_path, *world(4))])
    said = json.loads(json.dumps(document(found.decision, found.change)))
    assert {key: said[key] for key in ("schema", "kueueVersion", "admissible", "assignment", "topology")} == {
        "schema": 1,
        "kueueVersion": "0.17.0",
        "admissible": False,
        "assignment": [],
        "topology": [],
    }
    assert said["object"] == {"group": "kueue.x-k8s.io", "kind": "Workload", "namespace": "team", "name": "w"}
    (reason,) = said["reasons"]
    assert (reason["code"], reason["flavor"], reason["limit"]["value"]) == ("KQ202", "f", "4")
    assert reason["limit"]["object"]["name"] == "a"
    assert said["smallestChange"]["after"] == "8"


def test_an_admitted_job_shows_its_flavors(tmp_path: Path) -> None:
    found = explain_paths("Workload/w", [write(tmp_path, *world(8))])
    said = document(found.decision, found.change)
    assert (said["admissible"], said["smallestChange"]) == (True, None)
    assert said["assignment"] == [{"podset": "p", "resource": GPU, "flavor": "f"}]
    assert "  flavor  p: f (nvidia.com/gpu)\n" in text(found.decision, found.change)


def test_of_several_clusters_the_jobs_own_counts(tmp_path: Path) -> None:
    write(tmp_path / "small", *world(4, "little"))
    write(tmp_path / "large", *world(8, "big"))
    assert explain_paths("workload/little", [tmp_path]).decision.admissible is False
    assert explain_paths("workload/big", [tmp_path]).decision.admissible is True


def test_an_inventory_file_counts(tmp_path: Path) -> None:
    pool = {"name": "f", "nodes": 2, "labels": {"pool": "f"}, "allocatable": {GPU: 4}}
    topology = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": "dc"}}
    topology["spec"] = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
    bodies = [*world(100, asked=5)[1:], flavor("f", nodeLabels={"pool": "f"}, topologyName="dc"), topology]
    write(tmp_path, *bodies)
    assert explain_paths("workload/w", [tmp_path]).decision.admissible is None
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump({"kind": "Inventory", "kueue": "0.19.2", "pools": [pool]}))
    found = explain_paths("workload/w", [tmp_path]).decision
    assert (found.admissible, found.kueue) == (False, "0.19.2")


@pytest.mark.parametrize(
    ("what", "says"),
    [("workload", "is no object"), ("workload/x", "there is no workload/x"), ("job/w", "there is no job/w")],
)
def test_what_is_not_there_is_said(tmp_path: Path, what: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        explain_paths(what, [write(tmp_path, *world(4))])


def test_the_verb(tmp_path: Path) -> None:
    write(tmp_path, *world(4))
    refused = CliRunner().invoke(app, ["explain", "workload/w", str(tmp_path), "-n", "team"])
    assert (refused.exit_code, "smallest change" in refused.output) == (1, True)
    write(tmp_path / "b", *world(8))
    fine = CliRunner().invoke(app, ["explain", "workload/w", str(tmp_path / "b"), "-o", "json"])
    assert (fine.exit_code, json.loads(fine.output)["admissible"]) == (0, True)
    assert isinstance(CliRunner().invoke(app, ["explain", "workload/w", str(tmp_path)]).exception, UsageError)


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("apiVersion: v1\nkind: Namespace\n", True),
        ('{"kind" : "LocalQueue"}', True),
        ("items:\n- kind: 'ClusterQueue'\n", True),
        ("kind: pytorchjob\n", True),
        ("kind: ServiceMonitor\nspec: {x: ClusterQueue}\n", False),
        ("kind: Service\n", False),
    ],
)
def test_only_files_that_have_a_say_are_read(content: str, read: bool) -> None:
    assert bool(deciding("PyTorchJobs").search(content.encode())) is read


def test_every_kind_of_a_world_is_looked_for() -> None:
    read = (PACKAGE / "admission/world.py").read_text("utf-8")
    named = set(re.findall(r'(?:read\(f?"|by_kind\.get\(f?"|f")([A-Z]\w+)[."]', read))
    assert named <= KINDS
    assert len(named) > 10
