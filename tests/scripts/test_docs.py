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


@pytest.mark.parametrize("name", ["rules.md", "specs.md"])
def test_the_page_is_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == docs.pages()[name], "run `make docs`"


def test_every_rule_has_a_heading_of_its_own() -> None:
    headings = re.findall(r"^### (\w+)$", docs.rules_page(), re.MULTILINE)
    assert sorted(headings) == sorted(rules())


def test_every_kind_and_every_part_of_it_has_a_table() -> None:
    page = docs.specs_page()
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == list(KINDS)
    for place in ("Cluster `spec.nodePools[].gpus.mig`", "Team `spec.quotas[]`", "InferenceService `spec.replicas`"):
        assert place in page
    assert "`spec.slo.firstToken`, `spec.slo.latency`" in page, "a part that stands in two places is said once"


def test_types_units_and_defaults_are_said() -> None:
    page = docs.specs_page()
    assert "| `gpus` | number ≥ 0 | **required** |" in page
    assert "| `grace` | [duration](#duration) | `5m` |" in page
    assert "| `keep` | [duration](#duration) | `30d` |" in page
    assert "| `api` | `PyTorchJob` \\| `TrainJob` | `PyTorchJob` |" in page
    assert "| `target` | [rate](#rate) or number |  |" in page


def test_cells_cannot_break_a_table() -> None:
    assert docs._cell("a | b, `c|d` and <e>, `<f>`") == "a \\| b, `c\\|d` and &lt;e>, `<f>`"
    for page in docs.pages().values():
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


def test_an_old_page_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["docs.py", "--check"])
    assert docs.main() == 1
    assert "docs/rules.md is old" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(sys, "argv", ["docs.py"])
    assert docs.main() == 0
    monkeypatch.setattr(sys, "argv", ["docs.py", "--check"])
    assert docs.main() == 0


def test_a_family_that_nobody_describes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(docs.FAMILIES, "SPC")
    with pytest.raises(SystemExit, match="SPC"):
        docs.rules_page()
