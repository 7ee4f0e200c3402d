"""Certain means certain: a real program refuses the bad example of each such rule, and takes the good one.

`certain/judges.yaml` says which program that is. A rule without a judge fails here: it is replayed, or called likely.
"""

from __future__ import annotations

import copy
import json
import subprocess
from functools import cache
from pathlib import Path

from blueprint.catalog.rules import rules
from blueprint.check import tree_rules, validate
from blueprint.check.aside import aside
from blueprint.conform.client import Client, Target
from blueprint.finding import Confidence
from blueprint.render.emit import emit
from tests.check.rules.cases import cases as unit_cases
from tests.check.rules.cases import findings
from tests.conformance.certain.replay import ids, pack, reading
from tests.conformance.certain.table import ROOT, Case, cases, certain, examples, judge_of, rows
from tests.conformance.certain.worlds import World, world
from tests.conformance.conftest import program
from tests.conformance.kueue.oracle import Answer as Decided
from tests.conformance.kueue.oracle import Oracle
from tests.conformance.test_certain_released import RELEASED
from tests.conformance.test_kueue_verdicts import ask, body_of

RUN = (
    "apiserver",
    "text",
    "kueue",
    "scheduler",
    "gator",
    "rollouts",
    "vllm",
    "kubernetes",
    "manager",
    *RELEASED,
    "warning",
)
JUDGES = {*RUN, "test", "itself"}


@cache
def everything() -> str:
    """The tests of this repository as one text, but for these."""
    files = [path for path in sorted((ROOT / "tests").rglob("*")) if path.suffix in (".py", ".yaml", ".json")]
    return "".join(path.read_text("utf-8", "replace") for path in files if "certain" not in path.parts)


# The table itself


def test_every_certain_rule_has_a_judge() -> None:
    assert [code for code in certain() if judge_of(code) is None] == []
    assert {row.judge for row in rows()} <= JUDGES


def test_no_row_is_about_nothing() -> None:
    starts = [(start, row.judge) for row in rows() for start in row.codes]
    assert [start for start, _ in starts if not any(code.startswith(start) for code in certain())] == []
    assert len({start for start, _ in starts}) == len(starts)


def test_no_finding_is_surer_than_its_rule() -> None:
    sure = {Confidence.CERTAIN: 2, Confidence.LIKELY: 1, Confidence.STYLE: 0}
    for name, case in unit_cases():
        for finding in findings(case.objects, closed=case.closed, versions=case.versions):
            assert sure[finding.confidence] <= sure[Confidence(rules()[finding.code].confidence)], (name, finding)


def test_the_pages_count_what_is_replayed() -> None:
    number = {judge: len(cases(judge)) for judge in JUDGES}
    replayed = sum(number[judge] for judge in RUN) + number["test"]
    assert replayed + number["itself"] == len(certain())
    for page in ("docs/check.md", "docs/agreement.md"):
        text = " ".join((ROOT / page).read_text("utf-8").split())
        assert f"{len(certain())} rules are certain" in text
        assert f"{replayed} are replayed" in text
        assert f"{number['itself']} are refusals of this product itself" in text


@ids([case for judge in RUN if judge != "warning" for case in cases(judge)])
def test_check_says_it_of_the_bad_example_only(case: Case) -> None:
    def said(text: str) -> set[str]:
        found = reading(text)
        outcome = validate([*found.manifests, *found.aside], pack(), tree_rules=tree_rules())
        return {finding.code for finding in (*found.findings, *outcome.findings)}

    assert case.bad and case.good
    assert case.code in said(case.bad)
    assert case.code not in said(case.good)


@ids([*cases("test"), *cases("itself")])
def test_a_test_shows_it(case: Case) -> None:
    if case.row.judge == "test":
        file, _, name = case.row.at.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text("utf-8")
    else:
        assert case.code in everything()


# Kueue


@ids(cases("kueue"))
def test_kueue_refuses_it(case: Case) -> None:
    asked = program("kueue-verdicts")

    def refused(text: str) -> list[str]:
        found = reading(text)
        bodies = [body for manifest in (*found.manifests, *found.aside) if (body := body_of(manifest)) is not None]
        return [answer for answer in ask(asked, bodies) if answer]

    assert refused(case.good) == []
    assert refused(case.bad)


def decided(oracle: Oracle, made: World) -> list[Decided]:
    """What the scheduler says to the jobs of a world."""
    client: Client = oracle.client
    for body in made.objects:
        if body["kind"] == "Namespace":
            oracle.plane.namespace(body["metadata"]["name"])
        else:
            oracle.create([body])
    oracle.create(made.nodes)
    oracle.ready()
    oracle.create(made.workloads)
    names = [body["metadata"]["name"] for body in made.workloads]
    answers = oracle.settle(names, quiet=1.0, patience=4.0)
    for body in (*made.nodes, *(each for each in made.objects if each["kind"] == "LimitRange")):
        client.delete(Target.of(body))
    return list(answers.values())


@ids(cases("scheduler"))
def test_kueue_never_admits_it(case: Case, oracle: Oracle) -> None:
    verdicts = {}
    for name, text in (("bad", case.bad), ("good", case.good)):
        found = reading(text)
        made = world([*found.manifests, *found.aside], f"{case.code.lower()}-{name}")
        verdicts[name] = all(answer.admitted for answer in decided(oracle, made))
    assert verdicts == {"bad": False, "good": True}


def test_pods_beside_whole_slices_get_no_place(oracle: Oracle) -> None:
    places = {}
    for name, text in zip(("bad", "good"), examples("KQ306"), strict=True):
        found = reading(text)
        (answer,) = decided(oracle, world([*found.manifests, *found.aside], f"kq306-{name}"))
        assert answer.admitted
        (spread,) = answer.spreads.values()
        places[name] = sum(pods for _, pods in spread or ())
    assert places == {"bad": 4, "good": 4}  # of five pods, and of four


def test_a_strict_queue_stands_still_behind_it(oracle: Oracle) -> None:
    """KQ801: the job is never admitted, and one that comes later and asks for little is not, either."""
    later = {}
    for name, text in zip(("bad", "good"), examples("KQ801"), strict=True):
        found = reading(text)
        made = world([*found.manifests, *found.aside], f"kq801-{name}")
        assert not any(answer.admitted for answer in decided(oracle, made))
        small = copy.deepcopy(made.workloads[0])
        small["metadata"]["name"] = f"small-{name}"
        small["spec"]["podSets"][0]["count"] = 1
        oracle.create([small])
        later[name] = oracle.settle([f"small-{name}"], quiet=1.0, patience=4.0)[f"small-{name}"].admitted
    assert later == {"bad": False, "good": True}


def test_a_workload_has_eight_pod_sets_at_most(oracle: Oracle) -> None:
    answers = {}
    for name, text in zip(("bad", "good"), examples("KQ110"), strict=True):
        found = reading(text)
        (workload,) = world([*found.manifests, *found.aside], f"kq110-{name}").workloads
        oracle.plane.namespace(workload["metadata"]["namespace"])
        answers[name] = oracle.client.create(workload, dry_run=True).ok
    assert answers == {"bad": False, "good": True}


# Argo Rollouts


@ids(cases("rollouts"))
def test_argo_rollouts_refuses_it(case: Case) -> None:
    asked = program("rollouts-verdicts")
    lines = [json.dumps([manifest.body for manifest in reading(text).manifests]) for text in (case.bad, case.good)]
    done = subprocess.run([asked], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=60)
    bad, good = (json.loads(line) for line in done.stdout.splitlines())
    assert bad
    assert not good, good


# Gatekeeper


@ids(cases("gator"))
def test_gator_refuses_it(case: Case, tmp_path: Path) -> None:
    gator = program("gator")
    codes = {}
    for name, text in (("bad", case.bad), ("good", case.good)):
        file = tmp_path / f"{name}.yaml"
        file.write_text("---\n".join(emit(each.body) for each in reading(text).manifests if not aside(each)))
        codes[name] = subprocess.run(
            [gator, "test", "-f", file], capture_output=True, text=True, check=False
        ).returncode
    assert codes["bad"] != 0
    assert codes["good"] == 0
