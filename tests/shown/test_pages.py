"""The examples of pages that are no plain objects: each bad one gives the code of its page, and nothing else fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from blueprint.catalog.rules import FORMS, Rule, rules
from blueprint.finding import Finding
from tests.attest.sigstore import Sigstore
from tests.attest.world import Office
from tests.shown import forms
from tests.shown.record import STAGES
from tests.shown.sessions import play, told
from tests.shown.stages import COSIGN, Stages

ROOT = Path(__file__).parents[2]
SHOWN = {code: rule for code, rule in rules().items() if rule.form != "objects"}
ALSO = {"SPC113": {"SPC110"}, "SIG206": {"SIG203"}, "CRE208": {"CRE204"}}
"""What a bad example says besides: a hundred mistakes are mistakes, a twin that somebody added was not signed, and a
copy that was cut is none of the claim's data."""
SPECS = {code: rule for code, rule in SHOWN.items() if rule.form == "specs"}
TEMPLATES = {code: rule for code, rule in SHOWN.items() if rule.form == "templates"}
CLUSTERS = {code: rule for code, rule in SHOWN.items() if rule.form == "cluster"}
SESSIONS = {code: rule for code, rule in SHOWN.items() if rule.form in STAGES}


def held(code: str, bad: list[Finding], *others: list[Finding]) -> None:
    """The bad example gives the code and no other that fails; the others give neither it nor what fails."""
    assert code in {finding.code for finding in bad}
    assert {finding.code for finding in bad if finding.fails} <= {code}
    for found in others:
        assert not [finding for finding in found if finding.code == code or finding.fails]


@pytest.mark.parametrize("code", SPECS)
def test_specs(code: str, tmp_path: Path) -> None:
    rule = SPECS[code]
    whole = not code.startswith("SPC")
    parts = ("bad", "good", "near")
    held(code, *(forms.specs(getattr(rule, part), tmp_path / part, whole=whole) for part in parts))


@pytest.mark.parametrize("code", TEMPLATES)
def test_templates(code: str, tmp_path: Path) -> None:
    rule = TEMPLATES[code]
    held(code, *(forms.templates(getattr(rule, part), tmp_path / part) for part in ("bad", "good", "near")))


@pytest.mark.parametrize("code", CLUSTERS)
def test_clusters(code: str, tmp_path: Path) -> None:
    rule = CLUSTERS[code]
    for part in ("bad", "good", "near"):
        (tmp_path / part).mkdir()
    assert set(forms.cluster(rule.bad, tmp_path / "bad")) == {code} | ALSO.get(code, set())
    assert forms.cluster(rule.good, tmp_path / "good") == []
    assert forms.cluster(rule.near, tmp_path / "near") == []


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    folder = tmp_path_factory.mktemp("stages")
    with (
        Sigstore.running() as store,
        Sigstore.running() as other,
        Stages.running(folder, Office(store), Office(other)) as running,
    ):
        yield running


@pytest.mark.parametrize("part", ["bad", "good", "near"])
@pytest.mark.parametrize("code", SESSIONS)
def test_sessions(code: str, part: str, stages: Stages, tmp_path: Path) -> None:
    """What is typed today says what the page shows; `python -m tests.shown.record CODE` writes it down again."""
    rule = SESSIONS[code]
    text = getattr(rule, part)
    if "../cosign-3.1:" in text and not COSIGN.exists():
        pytest.skip("needs cosign: make tools")
    assert play(text, stages.make(rule.form, tmp_path / "stage")) == text
    assert told(text) == ({code} | ALSO.get(code, set()) if part == "bad" else set())


@pytest.mark.parametrize("code", SHOWN)
def test_pages_are_whole(code: str) -> None:
    rule: Rule = SHOWN[code]
    assert rule.form in FORMS
    assert rule.bad and rule.good and rule.near and rule.sources
    assert rule.spared, "a page says why the near miss is right"
    assert len({rule.bad, rule.good, rule.near}) == 3


@pytest.mark.parametrize("code", SHOWN)
def test_sources_of_our_own_are_there(code: str) -> None:
    for source in SHOWN[code].sources:
        name, _, anchor = source.partition(" ")[0].partition("#")
        if not name.startswith(("docs/", "blueprint/")):
            continue
        assert (ROOT / name).is_file(), name
        text = (ROOT / name).read_text()
        titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
        assert not anchor or anchor in slugs or f'<a id="{anchor}">' in text, source


WHOLE = ("SPC", "SIG", "CRE", "TPL", "TRE", "SIM", "CNF", "REV", "VER", "NOD", "STO", "SIZ")
"""Families of which every rule has a page with examples."""


def test_whole_families() -> None:
    assert [code for code, rule in rules().items() if code.startswith(WHOLE) and not rule.near] == []
