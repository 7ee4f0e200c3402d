"""The folder of evidence: whole when it is written, and not when anything in it changes."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from blueprint.conform import evidence
from blueprint.conform.run import Outcome
from blueprint.conform.stage import Case, Record
from blueprint.errors import UsageError


def outcome(*cases: Case) -> Outcome:
    made = Outcome("prod", "sha256:" + "a" * 64, Record(list(cases), {"order/pod.yaml": "kind: Pod\n"}))
    made.components["etcd"] = {"version": "v3.7.3", "sha256": "sha256:" + "b" * 64}
    made.logs["etcd.log"] = b"started\n"
    return made


GOOD = Case("order", "waves sync", said="ten objects", seconds=1.5)
BAD = Case("order", "a \x07 bell & <more>", negative=True, passed=False, said="it is accepted", seconds=0.5)


def test_what_was_written_is_whole(tmp_path):
    outcome(GOOD).write(tmp_path)
    assert evidence.verify(tmp_path) == []
    assert json.loads((tmp_path / "summary.json").read_text())["cluster"] == "prod"
    assert (tmp_path / "objects/order/pod.yaml").read_text() == "kind: Pod\n"


def test_a_failed_case_is_told_and_stands_in_junit(tmp_path):
    outcome(GOOD, BAD).write(tmp_path)
    [finding] = evidence.verify(tmp_path)
    assert finding.code == "CNF102"
    assert "it is accepted" in finding.message
    suite = ElementTree.fromstring((tmp_path / "junit.xml").read_bytes()).find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert suite.findall("testcase")[1].get("name") == "(must not) a ? bell & <more>"


@pytest.mark.parametrize("name", ["summary.json", "junit.xml", "run.log", "logs/etcd.log", "objects/order/pod.yaml"])
def test_every_changed_byte_is_noticed(tmp_path, name):
    outcome(GOOD).write(tmp_path)
    file = tmp_path / name
    content = file.read_bytes()
    file.write_bytes(content + b" ")
    assert [f.code for f in evidence.verify(tmp_path)][:1] == ["CNF101"]


def test_a_missing_and_an_added_file_are_noticed(tmp_path):
    outcome(GOOD).write(tmp_path)
    (tmp_path / "run.log").unlink()
    (tmp_path / "more.txt").write_text("x")
    assert {f.message for f in evidence.verify(tmp_path)} == {"it is missing", "the run did not write this file"}


def test_cases_that_were_dropped_with_their_sum_are_noticed_by_junit(tmp_path):
    made = outcome(GOOD, BAD)
    made.write(tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    summary["cases"] = summary["cases"][:1]
    files = {
        path.relative_to(tmp_path).as_posix(): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file() and path.name not in ("SHA256SUMS", "summary.json")
    }
    evidence.write(tmp_path, summary, files)
    assert [f.code for f in evidence.verify(tmp_path)] == ["CNF101"]


def test_a_folder_with_other_files_is_not_touched(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match="holds other files"):
        outcome(GOOD).write(tmp_path)


def test_a_second_run_replaces_the_first(tmp_path):
    outcome(GOOD).write(tmp_path)
    again = outcome(GOOD)
    again.record.objects.clear()
    again.write(tmp_path)
    assert evidence.verify(tmp_path) == []
    assert not (tmp_path / "objects/order/pod.yaml").exists()


@pytest.mark.parametrize("line", ["x  run.log", "0" * 64 + "  ../escape", "0" * 64 + "  /etc/passwd"])
def test_sums_name_only_files_below(tmp_path, line):
    outcome(GOOD).write(tmp_path)
    (tmp_path / "SHA256SUMS").write_text(line + "\n")
    with pytest.raises(UsageError, match="no sum of a file below it"):
        evidence.verify(tmp_path)


def test_no_evidence_is_a_usage_error(tmp_path: Path):
    with pytest.raises(UsageError, match="no evidence"):
        evidence.verify(tmp_path)
