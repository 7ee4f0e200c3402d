"""Streams of workloads that arrive and end: Kueue's scheduler admits at each instant what `simulate` says.

BLUEPRINT_STREAMS is how many (8 unless set), BLUEPRINT_SEED the first seed (0).
"""

from __future__ import annotations

import json
import os
import random
import time
from datetime import timedelta

from blueprint.admission.state import idle
from blueprint.admission.world import world
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.simulate.arrivals import Arrival
from blueprint.simulate.run import Outcome, simulate
from blueprint.simulate.stream import Reader
from tests.conformance.kueue.oracle import Oracle
from tests.conformance.kueue.worlds import Made, Maker

STREAMS = int(os.environ.get("BLUEPRINT_STREAMS", "8"))
SEED = int(os.environ.get("BLUEPRINT_SEED", "0"))
_TURNS = 9


def simulated(made: Made, until: float) -> Outcome:
    """One workload arrives each second, and runs for one to four."""
    dice = random.Random(made.seed)
    manifests = [Manifest(body, Source("world", n)) for n, body in enumerate([*made.objects, *made.workloads])]
    reader = Reader(idle(world(manifests)))
    rows = [
        Arrival(
            job=f"Workload/{body['metadata']['name']}",
            at=timedelta(seconds=turn),
            duration=timedelta(seconds=dice.randint(1, 4)),
        )
        for turn, body in enumerate(made.workloads)
    ]
    streams = reader.streams([(row, Source("rows", n)) for n, row in enumerate(rows)])
    return simulate(reader.state, streams, until)


def names(outcome: Outcome, *, ended: float | None = None) -> set[str]:
    """Who runs, or who ended at a time."""
    chosen = (r for r in outcome.runs if (r.since is not None if ended is None else r.ended == ended))
    return {run.stream.shape.ref.name for run in chosen}


def finish(oracle: Oracle, gone: set[str]) -> None:
    """End workloads as the controller of their job does."""
    for name, item in oracle.workloads().items():
        if name in gone:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            ended = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": "done"}
            item["status"]["conditions"].append({**ended, "lastTransitionTime": stamp})
            meta = item["metadata"]
            path = f"/apis/{item['apiVersion']}/namespaces/{meta['namespace']}/workloads/{name}/status"
            assert oracle.client.request("PUT", path, json.dumps(item).encode()).ok


def test_the_same_run_at_every_instant(oracle: Oracle) -> None:
    """First those end whose time has come, then somebody arrives; the sets of running workloads are compared."""
    made = [Maker(seed, rivals=True).make() for seed in range(SEED, SEED + STREAMS)]
    worlds = [each for each in made if not simulated(each, _TURNS).restless]
    objects = sorted((b for each in worlds for b in each.objects), key=lambda b: b["kind"] != "Namespace")
    oracle.create(objects)
    oracle.ready()
    differences: dict[int, str] = {}
    seen: list[str] = []
    ended: set[str] = set()
    for turn in range(_TURNS):
        outcomes = {each.seed: simulated(each, turn) for each in worlds}
        gone = {name for outcome in outcomes.values() for name in names(outcome, ended=turn)}
        if gone:
            finish(oracle, gone)
            ended |= gone
            oracle.rest([name for name in seen if name not in ended])
        coming = [each.workloads[turn] for each in worlds if turn < len(each.workloads)]
        oracle.create(coming)
        seen += [body["metadata"]["name"] for body in coming]
        answers = oracle.rest([name for name in seen if name not in ended])
        for each in worlds:
            here = {body["metadata"]["name"] for body in each.workloads} - ended
            theirs = {name for name in here if name in answers and answers[name].admitted}
            if theirs != (mine := names(outcomes[each.seed])):
                differences.setdefault(each.seed, f"world {each.seed}, second {turn}: {theirs} by Kueue, {mine} by us")
    oracle.delete([*(body for each in worlds for body in each.workloads), *objects])
    print(f"{len(worlds)} streams of {len(seen)} workloads, {len(ended)} of which end: {len(differences)} differ")
    assert len(differences) <= max(1, len(worlds) // 50), "\n".join(differences.values())
