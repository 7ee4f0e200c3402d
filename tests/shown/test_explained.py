"""The examples of pages that only `blueprint explain` says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blueprint.catalog.rules import rules
from blueprint.explain import explain_paths

SHOWN = {code: rule for code, rule in rules().items() if rule.form == "explain"}


def said(text: str, folder: Path) -> set[str]:
    """The codes of the reasons that are given for the object of the first line."""
    asked = re.match(r"# blueprint explain (\S+)\n", text)
    assert asked, "no line says what is asked"
    folder.mkdir()
    (folder / "objects.yaml").write_text(text)
    return {reason.code for reason in explain_paths(asked[1], [folder]).decision.reasons}


@pytest.mark.parametrize("code", SHOWN)
def test_explained(code: str, tmp_path: Path) -> None:
    rule = SHOWN[code]
    assert code in said(rule.bad, tmp_path / "bad")
    assert not said(rule.good, tmp_path / "good")
    assert rule.near not in (rule.bad, rule.good)
    assert not said(rule.near, tmp_path / "near")
