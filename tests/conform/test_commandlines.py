"""What gator and kyverno say is read, and a run that judged nothing is no verdict. The programs here only print."""

import stat
from pathlib import Path

import pytest

from blueprint.conform.commandlines import gator, kyverno
from blueprint.conform.corpus import corpus
from blueprint.conform.stage import WrongAnswerError
from blueprint.conform.tree import rendered

POLICY = "internal-services"
PASSED, REFUSED = "    --- PASS: request-0\t(0.01s)\n", "    --- FAIL: request-1\t(0.01s)\n        "
VIOLATED = "unexpected number of violations: got 1 violations but want none: got messages [no]\n"


@pytest.fixture(scope="module")
def tree():
    return rendered(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def requests(tree):
    return [request for request in corpus(tree) if request.body["kind"] == "Service"][:2]


def says(folder: Path, text: str, code: int = 0) -> Path:
    program = folder / "program"
    (folder / "said").write_text(text)
    program.write_text(f"#!/bin/sh\ncat '{folder}/said'\nexit {code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def test_a_case_of_gator_that_is_violated_is_a_refusal(tree, requests, tmp_path):
    said = f"=== RUN   {POLICY}\n{PASSED}{REFUSED}{VIOLATED}--- FAIL: {POLICY}\t(0.1s)\n"
    assert gator(says(tmp_path, said, 1), tmp_path, tree, [POLICY], requests) == [False, True]


@pytest.mark.parametrize(
    "said",
    [
        "",
        PASSED,  # one of two
        f"{PASSED}{REFUSED}open namespace-a.json: no such file or directory\n",
    ],
)
def test_what_gator_did_not_judge_is_no_verdict(said, tree, requests, tmp_path):
    with pytest.raises(WrongAnswerError, match="gator does not verify"):
        gator(says(tmp_path, said, 1), tmp_path, tree, [POLICY], requests)


def test_a_result_of_kyverno_that_fails_is_a_refusal(tree, requests, tmp_path):
    rows = ["pass", "request-0"], ["fail", "request-1"]
    results = ",".join(f'{{"result":"{result}","resources":[{{"name":"{name}"}}]}}' for result, name in rows)
    assert kyverno(says(tmp_path, f'{{"results":[{results}]}}', 1), tmp_path, tree, [POLICY], requests) == [False, True]


def test_kyverno_prints_nothing_where_no_policy_matches(tree, requests, tmp_path):
    assert kyverno(says(tmp_path, ""), tmp_path, tree, [POLICY], requests) == [False, False]
    with pytest.raises(WrongAnswerError, match="kyverno does not apply"):
        kyverno(says(tmp_path, "", 1), tmp_path, tree, [POLICY], requests)
