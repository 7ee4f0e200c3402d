"""What a review says of a change, and what Kueue's own scheduler decides before and after it."""

from __future__ import annotations

import json
import os
import random
from typing import Any

from blueprint.catalog.schemas import SchemaPack
from blueprint.review.run import compare
from blueprint.review.sides import Library, Side, compared
from tests.conformance.kueue.oracle import Oracle
from tests.conformance.kueue.turns import QUIET, TURNS, turned
from tests.conformance.kueue.worlds import Body, Made, Maker

_LOST, _WON = "can no longer be admitted", "can be admitted from now on"
CHANGES = int(os.environ.get("BLUEPRINT_CHANGES", "60"))
_AT_ONCE = 60


def changed(made: Made) -> tuple[str, Made]:
    """The same world after one change, and what was changed."""
    chance = random.Random(f"change {made.seed}")
    copy = Made(made.seed, json.loads(json.dumps(made.objects)), json.loads(json.dumps(made.workloads)))
    kinds: dict[str, list[Body]] = {}
    for body in copy.objects:
        kinds.setdefault(body["kind"], []).append(body)
    options = [_quota, _quota, _quota, _request, _request, _selector, _cohort, _taint, _limit]
    chance.shuffle(options)
    for option in options:
        if option(kinds, copy.workloads, chance):
            return option.__name__, copy
    return "", copy


def _rows(kinds: dict[str, list[Body]]) -> list[Body]:
    found = [*kinds.get("ClusterQueue", ()), *kinds.get("Cohort", ())]
    groups = [group for body in found for group in body["spec"].get("resourceGroups", ())]
    return [row for group in groups for flavor in group["flavors"] for row in flavor["resources"]]


def _quota(kinds: dict[str, list[Body]], _: list[Body], chance: random.Random) -> bool:
    rows = _rows(kinds)
    much = chance.choice(["0", "1", "64"])
    for row in rows:
        row["nominalQuota"] = f"{much}Gi" if row["name"] == "memory" else much
    return bool(rows)


def _limit(kinds: dict[str, list[Body]], _: list[Body], chance: random.Random) -> bool:
    rows = [row for row in _rows(kinds) if "borrowingLimit" in row]
    for row in rows:
        row["borrowingLimit"] = "0"
    return bool(rows)


def _request(_: dict[str, list[Body]], workloads: list[Body], chance: random.Random) -> bool:
    factor = chance.choice([8, 0.5])
    for podset in workloads[0]["spec"]["podSets"]:
        podset["count"] = max(1, int(podset["count"] * factor))
        if "minCount" in podset:
            podset["minCount"] = min(podset["minCount"], podset["count"])
    return True


def _selector(kinds: dict[str, list[Body]], _: list[Body], chance: random.Random) -> bool:
    for queue in kinds["ClusterQueue"]:
        queue["spec"]["namespaceSelector"] = chance.choice([{}, {"matchLabels": {"team": "red"}}])
    return True


def _cohort(kinds: dict[str, list[Body]], _: list[Body], chance: random.Random) -> bool:
    queues = [queue for queue in kinds["ClusterQueue"] if queue["spec"].pop("cohortName", None)]
    for queue in queues:  # limits without a cohort are refused
        for group in queue["spec"].get("resourceGroups", ()):
            for flavor in group["flavors"]:
                for row in flavor["resources"]:
                    row.pop("borrowingLimit", None)
                    row.pop("lendingLimit", None)
    return bool(queues)


def _taint(kinds: dict[str, list[Body]], _: list[Body], chance: random.Random) -> bool:
    flavors = [flavor for flavor in kinds["ResourceFlavor"] if "topologyName" not in flavor["spec"]]
    for flavor in flavors:
        flavor["spec"]["nodeTaints"] = [{"key": "review", "value": "yes", "effect": "NoSchedule"}]
    return bool(flavors)


def reviewed(old: Made, new: Made, pack: SchemaPack) -> set[str]:
    """What the review says of jobs."""
    library = Library()
    base, head = (
        Side(name, "", {"world.json": _written(made)}, library) for name, made in (("base", old), ("head", new))
    )
    found = compare(compared(base, head), findings=False, shipped=pack)
    return {meaning.words for meaning in found.meanings if meaning.kind == "job"}


def _written(made: Made) -> bytes:
    return "".join(json.dumps(body) + "\n" for body in (*made.objects, *made.workloads)).encode()


def other(made: Made) -> Made:
    """The same world under other names, so that it finds room beside the first."""
    name = made.workloads[0]["metadata"]["name"].partition("-")[0]

    def renamed(bodies: list[Body]) -> list[Body]:
        written = json.dumps(bodies).replace(f'"{name}-', f'"x{name}-').replace(f'"{name}"', f'"x{name}"')
        found: list[Body] = json.loads(written)
        return found

    return Made(made.seed, renamed(made.objects), renamed(made.workloads))


def decided(oracle: Oracle, worlds: list[Made]) -> list[bool]:
    """Whether Kueue admits the workload of each world."""
    spaces = [body for made in worlds for body in made.objects if body["kind"] == "Namespace"]
    others = [body for made in worlds for body in made.objects if body["kind"] != "Namespace"]
    workloads = [body for made in worlds for body in made.workloads]
    oracle.create(spaces)
    oracle.create(others)
    oracle.ready()
    oracle.create(workloads)
    answers: Any = oracle.settle([body["metadata"]["name"] for body in workloads])
    oracle.delete([*workloads, *others])
    return [answers[made.workloads[0]["metadata"]["name"]].admitted for made in worlds]


def test_differences_of_meaning_are_kueues(oracle: Oracle) -> None:
    """A job that a change shuts out, or lets in, is one that Kueue no longer admits, or does; and no other."""
    pack = SchemaPack.shipped()
    pairs = [(made, *changed(made)) for made in (Maker(seed).make() for seed in range(1000, 1000 + CHANGES))]
    wrong: list[str] = []
    flips = 0
    for start in range(0, len(pairs), _AT_ONCE):
        part = pairs[start : start + _AT_ONCE]
        before = decided(oracle, [old for old, _, _ in part])
        after = decided(oracle, [other(new) for _, _, new in part])
        for (old, what, new), was, will in zip(part, before, after, strict=True):
            said = reviewed(old, new, pack)
            lost = any(_LOST in words for words in said)
            won = any(_WON in words for words in said)
            flips += was is not will
            if (lost, won) != (was and not will, will and not was):
                wrong.append(f"world {old.seed}, {what}: Kueue {was} → {will}, the review says {sorted(said)}")
    assert wrong == []
    assert flips >= CHANGES // 10, f"only {flips} of {len(pairs)} changes decide anything"


def test_each_reason_is_told_in_both_directions(oracle: Oracle) -> None:
    """Changes made for one reason each shut a job out, undone they let it in; those that only look so say nothing."""
    pack = SchemaPack.shipped()
    cases = {**TURNS, **QUIET}
    pairs = [turned(number, steps) for number, steps in enumerate(cases.values())]
    before = decided(oracle, [old for old, _ in pairs])
    after = decided(oracle, [other(new) for _, new in pairs])
    wrong: list[str] = []
    for (name, (old, new)), was, will in zip(zip(cases, pairs, strict=True), before, after, strict=True):
        if (was, will) != (True, name not in TURNS):
            wrong.append(f"{name}: Kueue {was} → {will}, which is not what the change is made for")
        for way, one, two, then, now in (("", old, new, was, will), (" undone", new, old, will, was)):
            said = reviewed(one, two, pack)
            told = [any(words in each for each in said) for words in (_LOST, _WON)]
            if told != [then and not now, now and not then]:
                wrong.append(f"{name}{way}: Kueue {then} → {now}, the review says {sorted(said)}")
    assert wrong == []
    assert len(TURNS) >= 40
