"""The generated pages: up to date, complete, and with links that lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from blueprint.catalog.rules import rules
from blueprint.spec.load import KINDS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

specification = importlib.util.spec_from_file_location("docs_pages", ROOT / "scripts" / "docs.py")
docs = importlib.util.module_from_spec(specification)
sys.modules["docs_pages"] = docs
specification.loader.exec_module(docs)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return docs.pages()


NAMES = ["architecture.md", "rules.md", "specs.md", *(f"rules/{code}.md" for code in rules())]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_up_to_date(name: str, pages: dict[str, str]) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == pages[name], "run `make docs`"


def test_every_rule_is_in_the_list_and_has_a_page(pages: dict[str, str]) -> None:
    listed = re.findall(r"\[(\w+)\]\(rules/(\w+)\.md\)", pages["rules.md"])
    assert sorted(listed) == sorted((code, code) for code in rules())
    assert {path.stem for path in (ROOT / "docs" / "rules").iterdir()} == set(rules())


def test_a_page_of_a_rule_reads_like_a_manual(pages: dict[str, str]) -> None:
    for code, rule in rules().items():
        page = pages[f"rules/{code}.md"]
        headings = re.findall(r"^## (.*)$", re.sub(r"^````.*?^````", "", page, flags=re.DOTALL | re.MULTILINE), re.M)
        shown = [name for name in ("Bad", "Good", "Near miss") if getattr(rule, name.split()[0].lower())]
        wanted = ["What happens", *shown, "Fix", "Silence it"]
        assert headings == [*wanted, *["Sources"] * bool(rule.sources)]


def test_every_kind_and_every_part_of_it_has_a_table(pages: dict[str, str]) -> None:
    page = pages["specs.md"]
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == list(KINDS)
    for place in ("Cluster `spec.nodePools[].gpus.mig`", "Team `spec.quotas[]`", "InferenceService `spec.replicas`"):
        assert place in page
    assert "`spec.slo.firstToken`, `spec.slo.latency`" in page, "a part that stands in two places is said once"


def test_every_module_and_every_layer_of_imports_is_named(pages: dict[str, str]) -> None:
    page = pages["architecture.md"]
    for path in sorted((ROOT / "blueprint").rglob("*.py")):
        section = page.partition(f"### {path.parent.relative_to(ROOT).as_posix()}/\n")[2].partition("\n### ")[0]
        assert path.stem == "__init__" or re.search(rf"^\| `{path.name}` \| .+ \|$", section, re.MULTILINE), path
    rooms = {path.parent.name for path in (ROOT / "blueprint").glob("*/__init__.py")}
    drawn = re.findall(r'^  l\d+\["(.*)"\]$', page, re.MULTILINE)
    # Reports are a leaf beside the layers.
    assert rooms - {"report"} <= {name for box in drawn for name in box.split(" · ")}


def test_files_and_commands_that_the_page_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## Rooms")[0]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", page)) <= targets
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.[a-z]+|(?:[a-z_]+/)+)`", page))
    tops = (ROOT, ROOT / "blueprint", ROOT / "blueprint" / "catalog" / "data")
    assert {name for name in named if not any((top / name).exists() for top in tops)} == set()


def test_types_units_and_defaults_are_said(pages: dict[str, str]) -> None:
    page = pages["specs.md"]
    assert "| `gpus` | number ≥ 0 | **required** |" in page
    assert "| `grace` | [duration](#duration) | `5m` |" in page
    assert "| `keep` | [duration](#duration) | `30d` |" in page
    assert "| `api` | `PyTorchJob` \\| `TrainJob` | `PyTorchJob` |" in page
    assert "| `target` | [rate](#rate) or number |  |" in page


def test_cells_cannot_break_a_table(pages: dict[str, str]) -> None:
    assert docs._cell("a | b, `c|d` and <e>, `<f>`") == "a \\| b, `c\\|d` and &lt;e>, `<f>`"
    for page in pages.values():
        for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, block


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), target
        assert not anchor or anchor in _anchors(there.read_text("utf-8")), target


def _anchors(text: str) -> set[str]:
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    given = re.findall(r'id="([^"]+)"', prose)
    return {*given, *(docs._slug(re.sub(r"<[^>]*>", "", heading)) for heading in headings)}


def test_an_old_page_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pages: dict[str, str]
) -> None:
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    monkeypatch.setattr(docs, "pages", lambda: pages)
    for arguments, code in (["--check"], 1), ([], 0), (["--check"], 0):
        monkeypatch.setattr(sys, "argv", ["docs.py", *arguments])
        assert docs.main() == code
    told, written = (
        capsys.readouterr().out.splitlines()[: len(pages)],
        {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")},
    )
    assert told == [f"docs/{name} is old: run `make docs`" for name in pages]
    assert written == set(pages)


def test_a_family_that_nobody_describes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(docs.FAMILIES, "SPC")
    with pytest.raises(SystemExit, match="SPC"):
        docs.rules_page()
