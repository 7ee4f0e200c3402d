"""A baseline holds what is known, whatever line it stands on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blueprint.check.baseline import load, new, save
from blueprint.errors import EnvironmentLacks, UsageError
from blueprint.finding import Finding, Ref, Source

ONE = Finding("NAM101", "too long", Source("a.yaml", 3), object=Ref("", "Pod", "a", "b"), path="metadata.name")
TWO = replace(ONE, path="spec")


def test_what_was_saved_is_known(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    save(file, [ONE])
    assert new([ONE, TWO], load(file)) == [TWO]
    assert new([replace(ONE, source=Source("a.yaml", 99), message="way too long")], load(file)) == []
    assert new([ONE, replace(ONE, message="and again")], load(file)) != []


def test_the_file_has_a_line_for_each_in_a_stable_order(tmp_path: Path) -> None:
    save(tmp_path / "a", [ONE, TWO])
    save(tmp_path / "b", [TWO, ONE])
    text = (tmp_path / "a").read_text()
    assert text == (tmp_path / "b").read_text()
    assert sum("NAM101" in line for line in text.splitlines()) == 2
    save(tmp_path / "c", [])
    assert load(tmp_path / "c") == frozenset()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 2, "findings": []}', '{"schema": 1, "findings": [1]}', "\xff"]
)
def test_what_is_no_baseline_is_wrong_usage(text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text, "latin-1")
    with pytest.raises(UsageError):
        load(tmp_path / "a")


def test_a_missing_baseline_is_wrong_usage_and_an_unwritable_one_the_environment(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read") as error:
        load(tmp_path / "nothing")
    assert "--write-baseline" in error.value.hint
    with pytest.raises(EnvironmentLacks):
        save(tmp_path / "no" / "folder", [])
