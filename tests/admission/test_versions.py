"""Releases of Kueue that decide differently, by small worlds; and rows of the version matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from blueprint.admission.settings import behaves, default_gate
from blueprint.catalog.tables import table
from tests.admission.writing import GPU, Body, decided, flavor, group, kueue, local, node, pods, queue, row, workload

WORLDS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("worlds").joinpath("versions.yaml").read_text())
HOST = "kubernetes.io/hostname"


def bodies(case: dict[str, Any]) -> list[Body]:
    """The objects of a world: one node, its flavor and queue, and the workload last."""
    offered = {"cpu": 8, "memory": "8Gi", GPU: 4} | case.get("node", {})
    names = ("f", "g") if case.get("split") else ("f",)
    rows = {"f": [row("cpu", 8), row("memory", "32Gi"), row(GPU, 8)]}
    groups = [group({"f": rows["f"][:2]}), group({"g": rows["f"][2:]})] if case.get("split") else [group(rows)]
    sets = [
        pods(
            each["name"],
            each["count"],
            {
                name: each[short]
                for short, name in (("cpu", "cpu"), ("memory", "memory"), ("gpu", GPU))
                if short in each
            },
            topology={"required": HOST},
        )
        for each in case["pods"]
    ]
    return [
        kueue("Topology", "t", {"levels": [{"nodeLabel": HOST}]}),
        *(flavor(name, nodeLabels={"p": "f"}, topologyName="t") for name in names),
        node("n", {"p": "f"}, offered),
        queue("q", *groups),
        local("lq", "q"),
        workload(*sets),
    ]


CASES = [(case, version, answer) for case in WORLDS for version, answer in case["admissible"].items()]


@pytest.mark.parametrize(("case", "version", "answer"), CASES, ids=[f"{c['behaviour']}-{v}" for c, v, _ in CASES])
def test_the_answer_by_version(case: dict[str, Any], version: str, answer: bool) -> None:
    decision = decided(*bodies(case), version=version)
    assert decision.admissible is answer, decision.reasons
    assert f"Kueue {version}" in decision.words


def test_rows_name_releases_in_order() -> None:
    for each in (*table("kueue")["behaviours"], *table("kueue")["gate_changes"]):
        assert each["source"]
        assert [behaves_since(each, version) for version in ("0.17.0", "99.0.0")] == [False, True], each["name"]


def behaves_since(row: dict[str, Any], version: str) -> bool:
    """Whether a release has the row's behaviour, or its gate the other default."""
    return default_gate(row["name"], version) if "value" in row else behaves(row["name"], version)


def test_a_later_patch_of_an_older_minor_has_what_was_brought_back() -> None:
    assert [behaves("tas-skips-empty", version) for version in ("0.17.0", "0.17.1", "0.18.0")] == [False, True, True]
    assert not behaves("no-candidates-last", "0.19.0")
    assert behaves("no-candidates-last", "0.18.5")
