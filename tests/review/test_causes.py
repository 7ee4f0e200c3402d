"""What a review says points at the line of the spec that caused it: many changes at once, told apart."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from blueprint.catalog.rules import rules
from blueprint.pipeline import render_platform
from blueprint.review import review
from blueprint.review.again import TREE
from blueprint.review.causes import causes
from blueprint.review.documents import document, sarif_document

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("clusters", "apps", "policies", "argocd")

QUEUES = "clusterqueue-search-ai"

#: Spec, what stands there, what it becomes, and a rendered file that a result on that line must be related to.
CHANGES = [
    ("apps/chat/chat-70b.yaml", "context: 32768", "context: 16384", "serve-chat-70b/"),
    ("apps/chat/chat-70b.yaml", "min: 2, max: 4", "min: 2, max: 3", "scaledobject-chat-70b.yaml"),
    ("apps/chat/chat-70b.yaml", "canary: [5%, 20%, 50%]", "canary: [5%, 50%]", "rollout-chat-70b.yaml"),
    ("apps/chat/chat-70b.yaml", "pause: 10m", "pause: 20m", "serve-chat-70b/"),
    ("apps/chat/chat-70b.yaml", "timeout: 10m", "timeout: 5m", "virtualservice-chat-70b.yaml"),
    ("apps/chat/chat-70b.yaml", "errors: 0.5%", "errors: 1.5%", "analysistemplate-chat-70b-slo.yaml"),
    ("apps/search-ai/llama3-8b-sft.yaml", "memory: 64Gi", "memory: 96Gi", "pytorchjob-llama3-8b-sft.yaml"),
    ("apps/search-ai/llama3-8b-sft.yaml", "maxRuntime: 24h", "maxRuntime: 12h", "pytorchjob-llama3-8b-sft.yaml"),
    ("apps/search-ai/llama3-8b-sft.yaml", "--nproc-per-node=2", "--nproc-per-node=1", "pytorchjob-llama3-8b-sft.yaml"),
    ("apps/search-ai/reranker-dra.yaml", "cpu: 32", "cpu: 24", "trainingruntime-reranker-dra.yaml"),
    (
        "apps/search-ai/team.yaml",
        "gpus: 64, borrow: 32, lend: 48",
        "gpus: 48, borrow: 32, lend: 48",
        f"{QUEUES}-training.yaml",
    ),
    (
        "apps/search-ai/team.yaml",
        "pool: l4, gpus: 8, borrow: 4",
        "pool: l4, gpus: 8, borrow: 2",
        f"{QUEUES}-serving.yaml",
    ),
    ("apps/search-ai/team.yaml", "weight: 2", "weight: 3", f"{QUEUES}-training.yaml"),
    (
        "apps/search-ai/team.yaml",
        'group: "oidc:search-ai", role',
        'group: "oidc:search-all", role',
        "rolebinding-tenant-developer.yaml",
    ),
    ("clusters/prod-a.yaml", "keep: 90d", "keep: 30d", "schedule-daily.yaml"),
    ("clusters/prod-a.yaml", "bucket: platform-backups-prod-a", "bucket: platform-backups-other", "backup/"),
    ("clusters/prod-a.yaml", 'platformAdmins: ["oidc:platform-admins"]', 'platformAdmins: ["oidc:admins"]', "access/"),
    ("clusters/prod-a.yaml", "domain: models.example.com", "domain: models.example.org", "serve-"),
    ("apps/research/pretrain-13b.yaml", "priority: low", "priority: normal", "trainjob-pretrain-13b.yaml"),
    ("apps/research/pretrain-13b.yaml", "required: rack", "required: block", "trainingruntime-pretrain-13b.yaml"),
    ("policies/images-by-digest.yaml", "[0-9][0-9a-z.-]*", "[0-9a-z.-]*", "policies/"),
    ("apps/chat/assist-8b.yaml", "max: 6, scaleOn", "max: 5, scaleOn", "scaledobject-assist-8b.yaml"),
]


def copied(target: Path) -> Path:
    for name in FOLDERS:
        shutil.copytree(ROOT / name, target / name)
    return target


def edited(root: Path, file: str, old: str, new: str) -> int:
    """Make a change; the line it is on."""
    path = root / file
    text = path.read_text("utf-8")
    assert text.count(old) >= 1, f"{file} holds no {old!r}"
    line = text[: text.index(old)].count("\n") + 1
    path.write_text(text.replace(old, new, 1), "utf-8")
    return line


def rendered(root: Path) -> Path:
    assert not render_platform(root, root / TREE).report.failed
    return root / TREE


def results(base: Path, head: Path) -> list[tuple[str, int, str, int]]:
    """Where each result of the SARIF stands, and what it is related to."""
    found = review(str(base), str(head), findings=False, lines=True)
    value = sarif_document(found, None, rules(), "1", causes(found, head, str(base)))
    return [_places(each) for each in value["runs"][0]["results"]]


def _places(result: dict[str, Any]) -> tuple[str, int, str, int]:
    place = result["locations"][0]["physicalLocation"]
    related = [each["physicalLocation"] for each in result.get("relatedLocations", ())]
    file, line = (related[0]["artifactLocation"]["uri"], related[0]["region"]["startLine"]) if related else ("", 0)
    return place["artifactLocation"]["uri"], place["region"]["startLine"], file, line


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[int], list[tuple[str, int, str, int]], Path]:
    """All changes at once: their lines, the results, and the head."""
    folder = tmp_path_factory.mktemp("twenty")
    base, head = copied(folder / "base"), copied(folder / "head")
    lines = [edited(head, *change[:3]) for change in CHANGES]
    return lines, results(rendered(base), rendered(head)), head


@pytest.mark.parametrize("number", range(len(CHANGES)), ids=[f"{c[0]} {c[1]}" for c in CHANGES])
def test_each_of_twenty_changes_is_pointed_at(number: int, twenty: Any) -> None:
    lines, found, head = twenty
    file, _, new, related = CHANGES[number]
    mine = [each for each in found if each[:2] == (file, lines[number])]
    assert any(related in each[2] for each in mine), [each for each in found if each[0] == file]
    assert new in (head / file).read_text("utf-8").splitlines()[lines[number] - 1]


def test_nothing_points_at_a_line_that_did_not_change(twenty: Any) -> None:
    lines, found, _ = twenty
    changed = {(change[0], line) for change, line in zip(CHANGES, lines, strict=True)}
    assert {each[:2] for each in found} <= changed
    assert len(found) > len(CHANGES)


def test_the_rendered_line_is_that_of_the_field(twenty: Any) -> None:
    lines, found, head = twenty
    places = {each[2:] for each in found if each[:2] == (CHANGES[6][0], lines[6]) and CHANGES[6][3] in each[2]}
    texts = [Path(file.removeprefix("file://")).read_text("utf-8").splitlines()[line - 1] for file, line in places]
    assert texts and all("memory: 96Gi" in text for text in texts)
    assert all(file.startswith((head / TREE).as_uri()) for file, _ in places)


def test_one_result_relates_all_clusters(tmp_path: Path) -> None:
    base, head = copied(tmp_path / "base"), copied(tmp_path / "head")
    line = edited(head, "apps/chat/chat-70b.yaml", "timeout: 10m", "timeout: 5m")
    sides = rendered(base), rendered(head)
    found = review(*map(str, sides), findings=False, lines=True)
    value = sarif_document(found, None, rules(), "1", causes(found, sides[1], str(sides[0])))
    routes = [each for each in value["runs"][0]["results"] if "timeout" in each["message"]["text"]]
    assert routes
    for each in routes:
        assert each["locations"][0]["physicalLocation"]["region"]["startLine"] == line
        files = [other["physicalLocation"]["artifactLocation"]["uri"] for other in each["relatedLocations"]]
        assert len(files) == 2 and "/preprod/" in files[0] and "/prod-a/" in files[1]


@pytest.mark.parametrize("place", [".", "platform"])
def test_places_count_from_where_the_review_runs(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a repository with the platform at its top, and with the platform in a folder; what was is a revision."""
    monkeypatch.chdir(tmp_path)
    root = copied(tmp_path / place)
    rendered(root)

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *who, *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "-m", "x")
    line = edited(root, "apps/search-ai/llama3-8b-sft.yaml", "memory: 64Gi", "memory: 96Gi")
    (root / "apps/research/pretrain-13b.yaml").unlink()
    rendered(root)
    base = "HEAD" if place == "." else "HEAD:platform"
    found = review(base, place, findings=False, lines=True)
    value = document(found, {}, causes(found, Path(place), base))
    above = "" if place == "." else f"{place}/"
    specs = {each["object"]["name"]: each["spec"] for each in value["statements"]}
    assert specs["llama3-8b-sft"] == {"file": f"{above}apps/search-ai/llama3-8b-sft.yaml", "line": line}
    assert specs["pretrain-13b"] == {"file": f"{above}apps/research/pretrain-13b.yaml", "line": 1}


def test_a_change_that_stands_only_with_another_one_is_told_by_its_document(tmp_path: Path) -> None:
    """The name of a team in two files: neither change can be taken back alone."""
    base, head = copied(tmp_path / "base"), copied(tmp_path / "head")
    for path in [*head.rglob("*.yaml")]:
        path.write_text(path.read_text("utf-8").replace("team: research", "team: science"), "utf-8")
    line = edited(head, "apps/research/team.yaml", "name: research", "name: science")
    sides = rendered(base), rendered(head)
    found = review(*map(str, sides), findings=False)
    why = causes(found, sides[1], str(sides[0]))
    spaces = {why.of(each) for each in found.statements if each.ref.kind == "Namespace" and each.new}
    assert {(place.file, place.line) for place in spaces if place} == {("apps/research/team.yaml", line)}


def test_anybodys_files_are_pointed_at_by_the_line_of_the_field(tmp_path: Path) -> None:
    text = "kind: ResourceQuota\napiVersion: v1\nmetadata: {name: a, namespace: web}\nspec:\n  hard:\n"
    text += "    cpu: 4\n    requests.nvidia.com/gpu: 8\n"
    for folder, data in (("base", text), ("head", text.replace("gpu: 8", "gpu: 4"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.yaml").write_text(data)
    ((file, line, related, _),) = results(tmp_path / "base", tmp_path / "head")
    assert file == (tmp_path / "head/a.yaml").as_uri() and line == 7 and related == ""


def test_of_a_large_platform_the_first_changed_line_of_the_document_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from blueprint.review import causes as module

    monkeypatch.setattr(module, "_MOST", 100)
    base, head = copied(tmp_path / "base"), copied(tmp_path / "head")
    first = edited(head, "apps/chat/chat-70b.yaml", "context: 32768", "context: 16384")
    edited(head, "apps/chat/chat-70b.yaml", "timeout: 10m", "timeout: 5m")
    found = results(rendered(base), rendered(head))
    assert found and {each[:2] for each in found if each[2]} == {("apps/chat/chat-70b.yaml", first)}
