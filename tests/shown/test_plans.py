"""The examples of pages about the order of what is rendered: objects in Applications, ordered as the renderer does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blueprint.catalog.rules import rules
from blueprint.check.read import read
from blueprint.finding import Finding, Ref
from blueprint.render.health import gates
from blueprint.render.order import order
from blueprint.render.plan import External, Item, Need
from tests.check.rules.examples import written

SHOWN = {code: rule for code, rule in rules().items() if rule.form == "plan"}
_NEEDS = re.compile(r"^# needs: (\w+)(?:\.(\S+))? (?:(\S+)/)?(\S+?)(, brought by .+)?$", re.MULTILINE)


def said(text: str, folder: Path) -> list[Finding]:
    """What is found while the objects of an example are put in order; each folder is an Application."""
    folder.mkdir()
    plan = []
    for file in written(text, folder):
        (manifest,) = read([file]).manifests
        plan.append(Item(manifest, file.parent.name, tuple(_needs(file.read_text()))))
    return list(order(plan, gates()).findings)


def _needs(text: str) -> list[Need]:
    found: list[Need] = []
    for kind, group, namespace, name, brought in _NEEDS.findall(text):
        ref = Ref(group, kind, namespace, name)
        found.append(External(ref, brought.removeprefix(", brought by ")) if brought else ref)
    return found


@pytest.mark.parametrize("code", SHOWN)
def test_plans(code: str, tmp_path: Path) -> None:
    rule = SHOWN[code]
    assert {finding.code for finding in said(rule.bad, tmp_path / "bad")} == {code}
    assert not said(rule.good, tmp_path / "good")
    assert rule.near not in (rule.bad, rule.good)
    assert not said(rule.near, tmp_path / "near")
