"""Random worlds, decided by Kueue's own scheduler and by `blueprint.admission`: the answers must be the same.

BLUEPRINT_WORLDS is how many (150 unless set, and a tenth of it with rivals), BLUEPRINT_SEED the first seed (0).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from blueprint.admission.decide import Decision, decide
from blueprint.admission.engine import Engine, submitted
from blueprint.admission.reasons import Verdict
from blueprint.admission.state import idle
from blueprint.admission.world import world
from blueprint.conform.suites.kueue import refusals
from blueprint.finding import Source
from blueprint.objects import Manifest
from tests.conformance.conftest import ROOT, program
from tests.conformance.kueue.oracle import Answer, Oracle, running
from tests.conformance.kueue.worlds import Body, Made, Maker

WORLDS = int(os.environ.get("BLUEPRINT_WORLDS", "150"))
SEED = int(os.environ.get("BLUEPRINT_SEED", "0"))
RIVALS = max(WORLDS // 10, 1)
FAIR: Body = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "fairSharing": {}}
_AT_ONCE = 60


@dataclass(frozen=True)
class Compared:
    """One workload: what was said by both."""

    name: str
    ours: Decision
    theirs: Answer

    @property
    def differs(self) -> str:
        """In what the answers differ, "" where they do not."""
        ours, theirs = self.ours, self.theirs
        if bool(ours.admissible) is not theirs.admitted:
            return f"{self.name}: Kueue says {theirs.admitted} ({theirs.message}), we say {ours.words}: {ours.reasons}"
        if theirs.admitted:
            plans = {plan.name: plan for plan in ours.podsets}
            for what, mine, yours in (
                ("flavors", {name: plan.flavors for name, plan in plans.items()}, theirs.flavors),
                ("nodes", {name: plan.spread for name, plan in plans.items()}, theirs.spreads),
                ("pods", {name: plan.count for name, plan in plans.items()}, theirs.counts),
            ):
                if mine != yours:
                    return f"{self.name}: {what} {yours} by Kueue, {mine} by us"
            return ""
        said = {reason.kind.value for reason in ours.reasons if reason.verdict is Verdict.NEVER}
        if theirs.message and not said & refusals(theirs.message):
            return f"{self.name}: Kueue refuses with {theirs.message!r}, we with {ours.reasons}"
        return ""


def decided(made: Made, kueue: str = "") -> Decision:
    """Our decision about the only workload of a world, for a version of Kueue."""
    manifests = [Manifest(body, Source("world", n)) for n, body in enumerate([*made.objects, *made.workloads])]
    return decide(world(manifests, kueue=kueue), manifests[-1])


def compare(oracle: Oracle, worlds: list[Made], kueue: str = "", *, calm: bool = True) -> list[Compared]:
    """Let both decide. In worlds that are not `calm` Kueue is too busy to tell when it has seen everything."""
    spaces = [body for made in worlds for body in made.objects if body["kind"] == "Namespace"]
    others = [body for made in worlds for body in made.objects if body["kind"] != "Namespace"]
    workloads = [body for made in worlds for body in made.workloads]
    oracle.create(spaces)
    oracle.create(others)
    if calm:
        oracle.ready()
    oracle.create(workloads)
    answers = oracle.settle([body["metadata"]["name"] for body in workloads])
    oracle.delete([*workloads, *others])
    return [
        Compared(name := made.workloads[0]["metadata"]["name"], decided(made, kueue), answers[name]) for made in worlds
    ]


def test_the_same_answer_flavors_and_nodes(oracle: Oracle) -> None:
    """Every world: admitted or not, why not, on which flavors, on which nodes."""
    agree(oracle, WORLDS)


@pytest.mark.usefixtures("oracle")
def test_the_same_answer_as_the_next_release() -> None:
    """The same worlds with Kueue 0.19.2, by the rows of the version matrix."""
    program("kueue-scheduler-next")
    with running(crds_of("kueue-0.19"), {}, "kueue-scheduler-next") as newer:
        agree(newer, max(WORLDS // 3, 1), "0.19.2")


def agree(oracle: Oracle, number: int, kueue: str = "") -> None:
    """Let both decide about so many worlds, without those that Kueue comes to no end with."""
    made = [Maker(seed).make() for seed in range(SEED, SEED + number)]
    calm = [each for each in made if not _spoils(each, kueue)]
    parts = [calm[start : start + _AT_ONCE] for start in range(0, len(calm), _AT_ONCE)]
    compared = [each for part in parts for each in compare(oracle, part, kueue)]
    admitted = sum(each.theirs.admitted for each in compared)
    placed = sum(any(each.theirs.spreads.values()) for each in compared)
    wrong = [each.differs for each in compared if each.differs]
    print(f"{len(compared)} worlds, {admitted} admitted, {placed} placed on nodes: {len(wrong)} differ")
    assert not wrong, "\n".join(wrong)
    assert number < 20 or len(compared) * 0.2 < admitted < len(compared) * 0.8, "the worlds decide nothing"


def crds_of(folder: str) -> list[Body]:
    """Kueue's CRDs as the module ships them that a folder of tools/ pins."""
    command = ["go", "mod", "download", "-json", "sigs.k8s.io/kueue"]
    environment = os.environ | {"GOTOOLCHAIN": "auto", "GOWORK": "off", "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        command, cwd=ROOT / "tools" / folder, env=environment, capture_output=True, text=True, check=True
    )
    files = sorted(Path(json.loads(done.stdout)["Dir"], "config/components/crd/bases").glob("*.yaml"))
    return [yaml.safe_load(file.read_text("utf-8")) for file in files]


def test_rivals_end_up_with_the_same_places(oracle: Oracle) -> None:
    """Several workloads one after the other, with priorities, borrowing and preemption: who runs after each arrival."""
    race(oracle, [Maker(seed, rivals=True).make() for seed in range(SEED, SEED + RIVALS)], [])


@pytest.mark.usefixtures("oracle")
def test_rivals_share_fairly(crds: list[Body]) -> None:
    """The same with fair sharing and weights."""
    with running(crds, FAIR) as fair:
        race(fair, [Maker(seed, rivals=True, fair=True).make() for seed in range(SEED, SEED + RIVALS)], [FAIR])


def race(oracle: Oracle, worlds: list[Made], settings: list[Body]) -> None:
    """Let workloads arrive turn by turn, in all worlds at once.

    Who is looked at while an eviction is under way depends on how long it takes, here and in a cluster: one world in
    fifty may end differently. Worlds in which workloads preempt each other for ever are left out.
    """
    ours = {made.seed: mine for made in worlds if (mine := list(arrivals(made, settings)))[-1] is not None}
    worlds = [made for made in worlds if made.seed in ours]
    spaces = [body for made in worlds for body in made.objects if body["kind"] == "Namespace"]
    others = [body for made in worlds for body in made.objects if body["kind"] != "Namespace"]
    oracle.create(spaces)
    oracle.create(others)
    oracle.ready()
    differences: dict[int, str] = {}
    names: list[str] = []
    for turn in range(max(len(made.workloads) for made in worlds)):
        coming = [made.workloads[turn] for made in worlds if turn < len(made.workloads)]
        names += [body["metadata"]["name"] for body in coming]
        oracle.create(coming)
        answers = oracle.rest(names)
        for made in worlds:
            if turn < len(made.workloads):
                here = [body["metadata"]["name"] for body in made.workloads]
                theirs = {
                    name: _by_resource(answers[name]) for name in here if name in answers and answers[name].admitted
                }
                mine = ours[made.seed][turn]
                if theirs != mine:
                    differences.setdefault(
                        made.seed, f"world {made.seed}, arrival {turn}: {theirs} by Kueue, {mine} by us"
                    )
    oracle.delete([*(body for made in worlds for body in made.workloads), *others])
    print(f"{len(worlds)} worlds with {len(names)} rivals: {len(differences)} end differently")
    assert len(differences) <= max(1, len(worlds) // 50), "\n".join(differences.values())


def arrivals(made: Made, settings: list[Body]) -> Iterator[dict[str, dict[str, set[str]]] | None]:
    """Who runs after each arrival by our engine, with flavors by resource; None at last where there is no end to it."""
    manifests = [Manifest(body, Source("world", n)) for n, body in enumerate([*made.objects, *made.workloads])]
    found = world(manifests, [Manifest(body, Source("settings")) for body in settings])
    engine = Engine(idle(found))
    for turn, manifest in enumerate(manifests[len(made.objects) :]):
        submission = submitted(engine.state, manifest)
        if submission is not None:
            engine.submit(*submission, created=turn)
            engine.settle(turn)
        yield {
            key.partition("/")[2]: {
                resource: {key.flavor for key in each.usage if key.resource == resource}
                for resource in {key.resource for key in each.usage}
            }
            for key, (_, each) in engine.running.items()
        }
    if engine.restless:
        yield None


def _by_resource(answer: Answer) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for flavors in answer.flavors.values():
        for resource, flavor in flavors.items():
            found.setdefault(resource, set()).add(flavor)
    return found


def test_what_kueue_never_comes_to_an_end_with(oracle: Oracle) -> None:
    """Cycles of cohorts, and placements that the API server refuses: never admitted, and Kueue tries for ever.

    Last, since each of these keeps the scheduler so busy that everything else waits.
    """
    cycles = [Maker(seed, cycle=True).make() for seed in range(SEED, SEED + 4)]
    empty = [made for seed in range(SEED, SEED + WORLDS) if _spoils(made := Maker(seed).make())]
    compared = compare(oracle, [*cycles, *empty[:4]], calm=False)
    assert [each.differs for each in compared if each.differs] == []
    assert not any(each.theirs.admitted for each in compared)


def _spoils(made: Made, kueue: str = "") -> bool:
    return any(reason.code == "KQ307" for reason in decided(made, kueue).reasons)
