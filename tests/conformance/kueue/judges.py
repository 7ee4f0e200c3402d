"""What Kueue's scheduler and `blueprint.admission` say of the same worlds, and in what they differ."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from blueprint.admission.decide import Decision, decide
from blueprint.admission.engine import Engine, submitted
from blueprint.admission.reasons import Verdict
from blueprint.admission.state import idle
from blueprint.admission.world import world
from blueprint.conform.suites.kueue import refusals
from blueprint.finding import Source
from blueprint.objects import Manifest
from tests.conformance.kueue.oracle import Answer, Oracle, running
from tests.conformance.kueue.shrink import renamed
from tests.conformance.kueue.worlds import Body, Made, Maker

ROOT = Path(__file__).parents[3]
FAIR: Body = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "fairSharing": {}}
NEXT = "0.19.2"
AT_ONCE = 60


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


def spoils(made: Made, kueue: str = "") -> bool:
    """Whether a placement is one that the API server refuses: Kueue comes to no end with it."""
    return any(reason.code == "KQ307" for reason in decided(made, kueue).reasons)


@dataclass(frozen=True)
class Raced:
    """How many worlds and workloads raced, and what differs, by the seed of the world."""

    worlds: int
    workloads: int
    differences: dict[int, str]


def race(oracle: Oracle, worlds: list[Made], settings: list[Body], kueue: str = "") -> Raced:
    """Let workloads arrive turn by turn, in all worlds at once.

    Worlds in which workloads preempt each other for ever are left out.
    """
    ours = {made.seed: mine for made in worlds if (mine := list(arrivals(made, settings, kueue)))[-1] is not None}
    worlds = [made for made in worlds if made.seed in ours]
    if not worlds:
        return Raced(0, 0, {})
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
    return Raced(len(worlds), len(names), differences)


def arrivals(made: Made, settings: list[Body], kueue: str = "") -> Iterator[dict[str, dict[str, set[str]]] | None]:
    """Who runs after each arrival by our engine, with flavors by resource; None at last where there is no end to it."""
    manifests = [Manifest(body, Source("world", n)) for n, body in enumerate([*made.objects, *made.workloads])]
    found = world(manifests, [Manifest(body, Source("settings")) for body in settings], kueue)
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


def crds_of(folder: str) -> list[Body]:
    """Kueue's CRDs as the module ships them that a folder of tools/ pins."""
    command = ["go", "mod", "download", "-json", "sigs.k8s.io/kueue"]
    environment = os.environ | {"GOTOOLCHAIN": "auto", "GOWORK": "off", "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        command, cwd=ROOT / "tools" / folder, env=environment, capture_output=True, text=True, check=True
    )
    files = sorted(Path(json.loads(done.stdout)["Dir"], "config/components/crd/bases").glob("*.yaml"))
    return [yaml.safe_load(file.read_text("utf-8")) for file in files]


@dataclass(frozen=True)
class Question:
    """What is asked of which release: one workload in each world, or several `rivals`, with `fair` sharing."""

    kueue: str = ""
    rivals: bool = False
    fair: bool = False

    @property
    def settings(self) -> list[Body]:
        """The configuration of Kueue."""
        return [FAIR] if self.fair else []

    def made(self, seed: int) -> Made:
        """The world of a seed."""
        return Maker(seed, rivals=self.rivals, fair=self.fair).make()


@contextmanager
def asked(question: Question) -> Iterator[Callable[[list[Made]], list[str]]]:
    """A judge for `shrink`: in what both differ about each world, "" where they do not, or where it is no world."""
    folder = "kueue-0.19" if question.kueue == NEXT else "kueue"
    name = "kueue-scheduler-next" if question.kueue == NEXT else "kueue-scheduler"
    with running(crds_of(folder), FAIR if question.fair else {}, name) as oracle:
        yield lambda worlds: judged(oracle, question, worlds)


_NUMBERS = itertools.count(1)


def judged(oracle: Oracle, question: Question, worlds: list[Made]) -> list[str]:
    """In what both differ about each world. Each gets a new name: what is deleted goes slowly."""
    fresh = [renamed(made, f"s{number}", number) for made, number in zip(worlds, _NUMBERS, strict=False)]
    said: dict[int, str] = {}
    for start in range(0, len(fresh), AT_ONCE):
        part = [made for made in fresh[start : start + AT_ONCE] if _creatable(oracle, made)]
        if question.rivals:
            said |= race(oracle, part, question.settings, question.kueue).differences
        else:
            calm = [made for made in part if not spoils(made, question.kueue)]
            said |= {
                made.seed: each.differs
                for made, each in zip(calm, compare(oracle, calm, question.kueue), strict=True)
                if each.differs
            }
    return [said.get(made.seed, "") for made in fresh]


def _creatable(oracle: Oracle, made: Made) -> bool:
    """Whether the API server takes all objects of a world: by a dry run, in a namespace that is there."""
    bodies = [body for body in (*made.objects, *made.workloads) if body["kind"] != "Namespace"]
    for body in bodies:
        where = {"namespace": "default"} if "namespace" in body["metadata"] else {}
        if not oracle.client.create({**body, "metadata": {**body["metadata"], **where}}, dry_run=True).ok:
            return False
    return True
