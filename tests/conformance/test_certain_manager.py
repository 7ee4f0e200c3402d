"""Certain means certain, where Kueue's manager and Kubernetes decide together about jobs and their pods.

`certain/manager.py` submits the examples and says what became of their jobs; here it is compared with what each rule
says of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.certain.replay import ids
from tests.conformance.certain.table import ROOT, Case, cases
from tests.conformance.conftest import program

Body = dict[str, Any]
Decided = dict[tuple[str, str], Body]


@pytest.fixture(scope="module")
def decided() -> Decided:
    """What became of the one job of each example, by code and which example."""
    for name in ("kueue", "kube-controller-manager", "kube-scheduler", "kwok"):
        program(name)
    command = [sys.executable, "-m", "tests.conformance.certain.manager"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode == 3 and os.environ.get("BLUEPRINT_CONFORMANCE") != "required":
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {(each["code"], each["which"]): job for each in found for (job,) in [each["jobs"]]}


def unseen(job: Body) -> bool:
    """Kueue makes no Workload of it."""
    return not job["workload"]


def holds(job: Body, kind: str) -> bool:
    """Whether the Workload has a condition."""
    return bool(job["conditions"].get(kind, [""])[0] == "True")


def waiting(job: Body) -> bool:
    """Kueue has its Workload, and does not admit it."""
    return job["workload"] and not holds(job, "Admitted")


def unplaced(job: Body) -> bool:
    """It is admitted and runs, and its pod gets no node."""
    assert holds(job, "Admitted") and not job["suspended"]
    ((placed, _),) = job["pods"]
    return not placed


def overwritten(job: Body) -> bool:
    """It is admitted, and its pods have the node labels of one of its flavors only."""
    assert holds(job, "Admitted")
    pools = {"small": "cpu", "large": "gpu"}
    wanted = {pools[flavor.partition("-")[0]] for flavor in job["flavors"].values()}
    return wanted != {job["selector"]["example.com/pool"]}


def uncounted(job: Body) -> bool:
    """It is admitted, and its devices are charged to no quota."""
    assert holds(job, "Admitted")
    return "example.com/gpu" not in job["charged"]


def unchecked(job: Body) -> bool:
    """It is admitted, and nobody was asked; else it waits for the check."""
    assert holds(job, "QuotaReserved")
    assert bool(job.get("checks")) is not holds(job, "Admitted")
    return not job["checks"]


SAYS: dict[str, Callable[[Body], bool]] = {
    **dict.fromkeys(("KQ104", "KQ105", "KQ106"), unseen),
    **dict.fromkeys(("KQ206", "KQ501", "KQ502"), waiting),
    **dict.fromkeys(("KQ402", "KQ405"), unplaced),
    "KQ403": overwritten,
    "KQ503": uncounted,
    "KQ803": unchecked,
}


@ids(cases("manager"))
def test_the_manager_does_what_the_rule_says(case: Case, decided: Decided) -> None:
    bad, good = decided[case.code, "bad"], decided[case.code, "good"]
    assert SAYS[case.code](bad), bad
    assert not SAYS[case.code](good), good
