"""Random worlds, decided by Kueue's own scheduler and by `blueprint.admission`: the answers must be the same.

BLUEPRINT_WORLDS is how many (150 unless set, and a tenth of it with rivals), BLUEPRINT_SEED the first seed (0). Where
they are not, a world is shrunk to what shows the difference.
"""

from __future__ import annotations

import os

import pytest

from tests.conformance.conftest import program
from tests.conformance.kueue.judges import (
    AT_ONCE,
    FAIR,
    NEXT,
    Question,
    compare,
    crds_of,
    judged,
    race,
    spoils,
)
from tests.conformance.kueue.oracle import Oracle, running
from tests.conformance.kueue.shrink import shrink, written
from tests.conformance.kueue.worlds import Body, Made, Maker

WORLDS = int(os.environ.get("BLUEPRINT_WORLDS", "150"))
SEED = int(os.environ.get("BLUEPRINT_SEED", "0"))
RIVALS = max(WORLDS // 10, 1)


def test_the_same_answer_flavors_and_nodes(oracle: Oracle) -> None:
    """Every world: admitted or not, why not, on which flavors, on which nodes."""
    agree(oracle, WORLDS)


@pytest.mark.usefixtures("oracle")
def test_the_same_answer_as_the_next_release() -> None:
    """The same worlds with Kueue 0.19.2, by the rows of the version matrix."""
    program("kueue-scheduler-next")
    with running(crds_of("kueue-0.19"), {}, "kueue-scheduler-next") as newer:
        agree(newer, max(WORLDS // 3, 1), NEXT)


def agree(oracle: Oracle, number: int, kueue: str = "") -> None:
    """Let both decide about so many worlds, without those that Kueue comes to no end with."""
    made = [Maker(seed).make() for seed in range(SEED, SEED + number)]
    calm = [each for each in made if not spoils(each, kueue)]
    parts = [calm[start : start + AT_ONCE] for start in range(0, len(calm), AT_ONCE)]
    compared = [each for part in parts for each in compare(oracle, part, kueue)]
    admitted = sum(each.theirs.admitted for each in compared)
    placed = sum(any(each.theirs.spreads.values()) for each in compared)
    wrong = {made.seed: each.differs for made, each in zip(calm, compared, strict=True) if each.differs}
    print(f"{len(compared)} worlds, {admitted} admitted, {placed} placed on nodes: {len(wrong)} differ", *wrong.items())
    assert not wrong, smallest(oracle, Question(kueue), wrong)
    assert number < 20 or len(compared) * 0.2 < admitted < len(compared) * 0.8, "the worlds decide nothing"


def test_rivals_end_up_with_the_same_places(oracle: Oracle) -> None:
    """Several workloads one after the other, with priorities, borrowing and preemption: who runs after each arrival."""
    raced(oracle, Question(rivals=True))


@pytest.mark.usefixtures("oracle")
def test_rivals_end_up_as_with_the_next_release() -> None:
    """The same with Kueue 0.19.2."""
    program("kueue-scheduler-next")
    with running(crds_of("kueue-0.19"), {}, "kueue-scheduler-next") as newer:
        raced(newer, Question(NEXT, rivals=True))


@pytest.mark.usefixtures("oracle")
def test_rivals_share_fairly(crds: list[Body]) -> None:
    """The same with fair sharing and weights."""
    with running(crds, FAIR) as fair:
        raced(fair, Question(rivals=True, fair=True))


def raced(oracle: Oracle, question: Question) -> None:
    """Let the rivals of many worlds race.

    Who is looked at while an eviction is under way depends on how long it takes, here and in a cluster: one world in
    fifty may end differently.
    """
    differences: dict[int, str] = {}
    worlds = 0
    for start in range(SEED, SEED + RIVALS, AT_ONCE):
        made = [question.made(seed) for seed in range(start, min(start + AT_ONCE, SEED + RIVALS))]
        found = race(oracle, made, question.settings, question.kueue)
        differences |= found.differences
        worlds += found.worlds
        print(
            f"{worlds} worlds, the last with {found.workloads} rivals: {len(differences)} end differently", flush=True
        )
    assert len(differences) <= max(1, worlds // 50), smallest(oracle, question, differences)


def smallest(oracle: Oracle, question: Question, differences: dict[int, str]) -> str:
    """The differences, and for the first of them the smallest world that still shows it: for tests/admission/worlds."""

    def judge(worlds: list[Made]) -> list[bool]:
        return [bool(said) for said in judged(oracle, question, worlds)]

    seed, said = next(iter(differences.items()))
    small = written(shrink(question.made(seed), judge), said)
    return "\n".join((*differences.values(), f"world {seed}, shrunk:", small))


def test_what_kueue_never_comes_to_an_end_with(oracle: Oracle) -> None:
    """Cycles of cohorts, and placements that the API server refuses: never admitted, and Kueue tries for ever.

    Last, since each of these keeps the scheduler so busy that everything else waits.
    """
    cycles = [Maker(seed, cycle=True).make() for seed in range(SEED, SEED + 4)]
    empty = [made for seed in range(SEED, SEED + WORLDS) if spoils(made := Maker(seed).make())]
    compared = compare(oracle, [*cycles, *empty[:4]], calm=False)
    assert [each.differs for each in compared if each.differs] == []
    assert not any(each.theirs.admitted for each in compared)
