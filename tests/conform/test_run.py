"""Which suites run, what an outcome says, and the verb as a person meets it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from blueprint.conform.run import Outcome, chosen, line, repeat, run
from blueprint.conform.stage import (
    Case,
    Record,
    Stage,
    WrongAnswerError,
    condition,
    holds,
)
from blueprint.conform.suites import ALL
from blueprint.conform.tree import Tree
from blueprint.errors import EnvironmentLacks, UsageError

ROOT = Path(__file__).parents[2]


def verb(*words):
    command = [sys.executable, "-m", "blueprint", "conform", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_suites_run_in_their_order_whatever_is_asked():
    assert [suite.name for suite in chosen(["rules", "order"])] == ["order", "rules"]
    assert chosen([]) == list(ALL)
    assert len({suite.name for suite in ALL}) == len(ALL)


def test_an_unknown_suite_names_those_that_are_there():
    with pytest.raises(UsageError) as refused:
        chosen(["orders"])
    assert "kueue" in refused.value.hint


def test_an_outcome_is_red_for_one_case_or_one_fault():
    good = Outcome("prod", "", Record([Case("order", "x", seconds=1.0)]))
    assert not good.failed
    assert list(good.rows()) == [("order", 1, 0, 1, 0.0)]
    assert Outcome("prod", "", Record([Case("order", "x", passed=False)])).failed
    assert Outcome("prod", "", faults={"order: x": False}).failed


def test_a_line_says_what_must_not():
    assert line(Case("order", "x", negative=True, said="held")) == "ok   order: must not: x [0.0 s] held"
    assert line(Case("order", "x", passed=False)).startswith("FAIL order: x")


@pytest.mark.parametrize("error", [WrongAnswerError("wrong"), EnvironmentLacks("late"), LookupError("none")])
def test_a_case_ends_with_what_it_met(tmp_path, error):
    heard = []
    record = Record(heard=heard.append)
    stage = Stage("order", Tree("prod", {}, (), {}), None, record, tmp_path)
    with stage.case("x"):
        raise error
    assert [(case.passed, case.said) for case in heard] == [(False, str(error))]


def test_a_mistake_of_ours_is_no_failed_case(tmp_path):
    stage = Stage("order", Tree("prod", {}, (), {}), None, Record(), tmp_path)
    with pytest.raises(ZeroDivisionError), stage.case("x"):
        raise ZeroDivisionError


def test_conditions():
    body = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Good"}]}}
    assert condition(body, "Ready")["reason"] == "Good"
    assert condition({}, "Ready") == {}
    assert holds(body, "Ready")
    assert not holds(body, "Ready", "False")


def test_missing_packages_are_said_in_one_line(monkeypatch):
    monkeypatch.setattr("blueprint.conform.run.find_spec", lambda name: None if name == "lupa" else object())
    monkeypatch.setattr("blueprint.conform.run.equipped", lambda suites, _: list(suites))
    with pytest.raises(EnvironmentLacks) as lacking:
        run(Tree("prod", {}, (), {}), chosen(["drift"]), lambda _: None)
    assert lacking.value.diagnostics() == "conform needs Python packages that are not installed: pip install lupa"


def test_every_suite_says_what_can_be_shown_elsewhere():
    assert all(suite.elsewhere for suite in ALL)
    assert {suite.name for suite in ALL if not isinstance(suite.elsewhere, str)} == {"drift", "access", "rules"}


def test_kind_needs_an_engine_and_says_so_in_one_line(tmp_path):
    environment = {**os.environ, "PATH": str(tmp_path), "BLUEPRINT_TOOLS": str(tmp_path)}
    command = [sys.executable, "-m", "blueprint", "conform", "--on", "kind"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "needs a container engine" in done.stderr
    engine = tmp_path / "docker"
    engine.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2; exit 1\n")
    engine.chmod(0o755)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "docker: Cannot connect" in done.stderr


def test_faults_are_for_our_own_clusters():
    assert verb("--on", "current", "--faults").returncode == 2


def test_the_verb_refuses_in_plain_words(tmp_path):
    unknown = verb("--suite", "orders")
    assert unknown.returncode == 2
    assert "no suite is called orders" in unknown.stderr
    assert verb("-o", "sarif").returncode == 2
    nothing = verb("--verify", tmp_path)
    assert nothing.returncode == 2
    assert "Traceback" not in nothing.stderr


def test_the_verb_checks_evidence(tmp_path):
    Outcome("prod", "", Record([Case("order", "x")])).write(tmp_path)
    assert verb("--verify", tmp_path).returncode == 0
    (tmp_path / "run.log").write_text("other")
    changed = verb("--verify", tmp_path, "-o", "json")
    assert changed.returncode == 1
    assert [finding["code"] for finding in json.loads(changed.stdout)["findings"]] == ["CNF101"]


def test_repeating_ends_with_the_first_failure(monkeypatch):
    runs = []

    def once(tree, suites, say):
        runs.append(1)
        return Outcome("prod", "", Record([Case("order", "x", passed=len(runs) < 3)]), seconds=float(len(runs)))

    monkeypatch.setattr("blueprint.conform.run.run", once)
    heard = []
    outcome = repeat(None, [], 5, heard.append)
    assert outcome.repeats == [1.0, 2.0, 3.0]
    assert outcome.failed
    assert heard[-1] == "FAIL order: x [0.0 s] "
    runs.clear()
    assert repeat(None, [], 2, heard.append).repeats == [1.0, 2.0]
