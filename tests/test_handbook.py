"""The handbook says what is true: its specs load and render, and its tables hold in what comes out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest
import typer.main
import yaml

from blueprint.catalog.schemas import SchemaPack
from blueprint.cli import app
from blueprint.finding import Report
from blueprint.new import FOLDERS, copy_example
from blueprint.pipeline import render_platform
from blueprint.render.capacity import canary_peak
from blueprint.render.emit import emit
from blueprint.render.platform import RenderedCluster, render
from blueprint.render.templates import Templates
from blueprint.report.json import schema
from blueprint.spec.load import load

REPOSITORY = Path(__file__).parents[1]
TEXT = (REPOSITORY / "docs" / "handbook.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
FILES = {
    body.partition("\n")[0].removeprefix("# "): body
    for _, body in BLOCKS
    if re.match(rf"# ({'|'.join(FOLDERS)}|templates)/\S+\n", body)
}
SECTIONS = re.findall(r"^##+ (.*?)\n(.*?)(?=^##+ |\Z)", TEXT, re.DOTALL | re.MULTILINE)


def _write(root: Path, *, templates: bool) -> Path:
    for name, body in FILES.items():
        if templates or not name.startswith("templates/"):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, "utf-8")
    return root


def _render(root: Path) -> RenderedCluster:
    loaded = load(root)
    assert not loaded.findings
    own = [root / "templates"] if (root / "templates").is_dir() else []
    (cluster,) = loaded.platform.clusters
    rendered = render(loaded.platform, cluster, Templates(own), SchemaPack.shipped())
    assert not rendered.findings
    return rendered


def _objects(rendered: RenderedCluster) -> dict[tuple[str, str], str]:
    """Kind and name → the texts of all objects so called."""
    found: dict[tuple[str, str], str] = {}
    for file in rendered.files:
        ref = file.manifest.ref
        found[ref.kind, ref.name] = found.get((ref.kind, ref.name), "") + emit(file.manifest.body)
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> RenderedCluster:
    return _render(_write(tmp_path_factory.mktemp("plain"), templates=False))


@pytest.fixture(scope="module")
def overridden(tmp_path_factory: pytest.TempPathFactory) -> RenderedCluster:
    return _render(_write(tmp_path_factory.mktemp("overridden"), templates=True))


def test_it_has_an_example_of_each_kind() -> None:
    kinds = {document["kind"] for name, body in FILES.items() for document in _specs(name, body)}
    assert kinds == {"Cluster", "Team", "TrainingJob", "InferenceService", "Policy", "Delivery"}


def _specs(name: str, body: str) -> list[dict[str, object]]:
    return [] if name.startswith("templates/") else list(yaml.safe_load_all(body))


def test_the_examples_are_green(tmp_path: Path) -> None:
    root = _write(tmp_path, templates=True)
    rendering = render_platform(root, root / "rendered")
    assert rendering.report == Report()


def test_what_the_tables_say_comes_out(plain: RenderedCluster, overridden: RenderedCluster) -> None:
    """Each row names an object; each code in its second cell is a text of that object, or another object."""
    rows, wrong = 0, []
    for title, body in SECTIONS:
        rendered = overridden if title == "Your own templates" else plain
        objects = _objects(rendered)
        for first, second in re.findall(r"^\| `([A-Z]\w+ [a-z][^|`]*)` \| (.*) \|$", body, re.MULTILINE):
            rows += 1
            kind, _, name = first.partition(" ")
            text = " ".join(objects.get((kind, name), "").split())
            wrong += [] if text else [f"{title}: there is no {first}"]
            for code in re.findall(r"`([^`]*)`", second):
                kind, _, name = code.partition(" ")
                if code not in text and (kind, name) not in objects and code not in _folders(rendered):
                    wrong.append(f"{title}: {first} has no {code}")
    assert not wrong
    assert rows > 35


def _folders(rendered: RenderedCluster) -> set[str]:
    return {f"{file.path.split('/')[1]}/" for file in rendered.files}


def test_the_pictures_name_what_is_there(plain: RenderedCluster) -> None:
    queues, waves = (body for language, body in BLOCKS if language == "mermaid")
    objects = _objects(plain)
    named = re.findall(r"\[\"?(LocalQueue|ClusterQueue|Cohort) ([a-z\-]+)", queues)
    assert {key for key in objects if key[0] in ("LocalQueue", "ClusterQueue", "Cohort")} == set(named)
    drawn = {
        name: int(wave)
        for wave, names in re.findall(r"subgraph w(\d+)\[.*?\]\n(.*?)end", waves, re.DOTALL)
        for name in names.split()
    }
    assert drawn == {application.name: application.wave for application in plain.applications}


def test_fields_without_effect_are_named_and_have_none(plain: RenderedCluster, tmp_path: Path) -> None:
    said = re.search(r"^These fields are checked(.*?)\n\n?\Z", TEXT, re.DOTALL | re.MULTILINE)
    assert said
    assert re.findall(r"`(\w+)`", said[1]) == ["environment", "promotion", "signers"]
    root = _write(tmp_path, templates=False)
    cluster, delivery = root / "clusters/prod.yaml", root / "argocd/delivery.yaml"
    cluster.write_text(cluster.read_text().replace("environment: production", "environment: development"))
    with delivery.open("a") as file:
        file.write("  promotion: [[prod]]\n")
        file.write("  signers: [{subject: https://git.example.com/x, issuer: https://token.example.com}]\n")
    assert _render(root).contents() == plain.contents()


def test_numbers_of_an_update(plain: RenderedCluster) -> None:
    assert "here 5, which is 20 GPUs" in " ".join(TEXT.split())
    assert canary_peak(3, [5, 20, 50], dynamic=True) == 5


def test_a_mistake_is_told_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy_example("minimal", tmp_path)
    spec = tmp_path / "apps/demo/demo.yaml"
    spec.write_text(spec.read_text().replace("memory: 32Gi", "memory: 32"))
    (shown,) = (body for language, body in BLOCKS if language == "json")
    (plain,) = (body for _, body in BLOCKS if body.startswith("SPC136"))
    for output, wanted in (("json", json.loads(shown)), ("text", plain)):
        with pytest.raises(SystemExit) as ended:
            app(["render", str(tmp_path), "-o", output])
        assert ended.value.code == 1
        told = capsys.readouterr().out
        assert json.loads(told) == wanted if output == "json" else wanted in told
    jsonschema_rs.validator_for(schema()).validate(json.loads(shown))


@pytest.mark.parametrize("page", ["README.md", "docs/handbook.md"])
def test_commands_and_options_exist(page: str) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    text = (REPOSITORY / page).read_text("utf-8")
    used = re.findall(r"(?:^|`|\| |entry: )blueprint ([a-z]+)([^`\n|]*)", text, re.MULTILINE)
    assert used
    for verb, rest in used:
        assert verb in commands, verb
        options = {option for parameter in commands[verb].params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--?[a-z]+", rest)) <= options, (verb, rest)
    for option in re.findall(r"^\| `(--[a-z]+)", text, re.MULTILINE):
        assert any(option in each.opts for verb in commands.values() for each in verb.params), option


def test_the_first_example_is_as_large_as_it_says(tmp_path: Path) -> None:
    files = copy_example("minimal", tmp_path)
    assert len(files) == 3
    rendering = render_platform(tmp_path, tmp_path / "rendered")
    assert f"into {rendering.totals.objects}\nobjects below `rendered/lab/`" in TEXT
