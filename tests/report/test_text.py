import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.finding import Finding, Ref, Report, Source
from blueprint.report import Totals
from blueprint.report.text import closing, printable, text, wants_colour

from .findings import REPORT

GOLDEN = """\
NAM101  error   no place, no object
SPC101  error   unknown field replica                                                 apps/0.yaml:1
        fix: replicas
        also: apps/1.yaml:2, apps/2.yaml:3, apps/3.yaml:4 and 2 more
KQ202   error   queue cannot ever admit this job                apps/search-ai/reranker-sft.yaml:14
        PyTorchJob.kubeflow.org search-ai/reranker-sft · spec.pytorchReplicaSpecs
        PyTorchJob reranker-sft asks 24 nvidia.com/gpu (3 podsets: 8 + 8 + 8)
        h100-train   16 nominal + 4 borrowable = 20   ← binds: borrowingLimit 4
        fix: borrowingLimit 4 → 8
WAV103  warning wave 4 does not wait for wave 3                            argocd/platform.yaml:9:3
TRE203  note    1 file is not in the lock and kept: x                                      rendered
"""


def test_golden():
    assert text(REPORT, width=99) == GOLDEN
    assert max(map(len, GOLDEN.splitlines())) == 99


def test_narrow_puts_the_place_below_and_wraps():
    report = Report.of(
        [Finding("KQ202", "queue cannot ever admit this job", Source("apps/job.yaml", 14), fix="a " * 20)]
    )
    assert text(report, width=40) == (
        "KQ202   error   queue cannot ever admit\n"
        "                this job\n"
        "        apps/job.yaml:14\n"
        "        fix: a a a a a a a a a a a a a a\n"
        "        a a a a a a\n"
    )


def test_nothing_to_say():
    assert text(Report()) == ""


def test_colour_changes_no_letter():
    plain, coloured = text(REPORT), text(REPORT, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31merror  \x1b[0m" in coloured
    for code in ("0", "1", "2", "33", "36", "1;31"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == plain


def test_many_of_one_code_are_counted():
    report = Report.of(
        [Finding("SCH101", f"unknown field f{n}", Source("x.yaml", n + 1)) for n in range(1234)]
        + [Finding("YML101", "unreadable", Source("y.yaml"))]
    )
    lines = text(report, each=3).splitlines()
    assert [line.split()[0] for line in lines] == ["SCH101"] * 3 + ["YML101", "SCH101"]
    assert lines[-1] == "SCH101   … and 1,231 more; -o json lists all"


def test_the_same_words_about_objects_without_a_place():
    found = [Finding("NAM101", "too long", object=Ref("", "Pod", "a", name)) for name in ("x", "y")]
    assert text(Report.of(found)) == ("NAM101  error   too long\n        Pod a/x\n        also: Pod a/y\n")


@pytest.mark.parametrize(
    ("totals", "seconds", "line"),
    [
        (Totals(1284, 2), 0.84, "1,284 objects in 2 clusters · 10 findings (8 errors, 1 warning, 1 note) · 0.8 s\n"),
        (Totals(1, 1, 3), None, "1 object in 1 cluster · 10 findings (8 errors, 1 warning, 1 note) · 3 silenced\n"),
        (Totals(), None, "10 findings (8 errors, 1 warning, 1 note)\n"),
    ],
)
def test_closing(totals, seconds, line):
    assert closing(REPORT, totals, seconds) == line


def test_closing_without_findings():
    assert closing(Report(), Totals(5)) == "5 objects · no findings\n"


class Stream(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def test_colour_only_on_a_terminal_that_wants_it():
    assert wants_colour(Stream(True), {})
    assert wants_colour(Stream(True), {"NO_COLOR": ""})
    assert not wants_colour(Stream(True), {"NO_COLOR": "1"})
    assert not wants_colour(Stream(True), {"TERM": "dumb"})
    assert not wants_colour(Stream(False), {})


evil = st.text(st.sampled_from("a \n\r\x1b\x07\u202e\u2028\ud800\x9bé"), max_size=8)


@given(evil, evil, evil, evil, evil)
def test_what_is_quoted_cannot_steer_the_terminal(message, file, path, fix, name):
    finding = Finding("SPC101", message, Source(file, 1), path=path, fix=fix, object=Ref("", "Pod", "", name))
    written = text(Report.of([finding]))
    assert all(character.isprintable() or character == "\n" for character in written)
    assert sum(line.startswith("SPC101") for line in written.splitlines()) == 1


def test_printable_keeps_what_is_harmless():
    assert printable("naïve → 日本") == "naïve → 日本"
    assert printable("a\x1b[2Jb\u202e") == "a\\x1b[2Jb\\u202e"
