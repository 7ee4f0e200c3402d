"""A draft of the CNCF's Kubernetes AI Conformance: what a run shows of each requirement, and what it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml_rs

from blueprint import __version__
from blueprint.conform.stage import Case
from blueprint.render.emit import emit

NOT_SHOWN = "not shown here"

#: The words that a submission may use (docs/AIConformance-1.35.md), for what a run of ours shows.
_STATUS = {"proven": "Implemented", "simulated": "Partially Implemented", NOT_SHOWN: "Not Implemented"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement: what the run shows of it (proven, simulated, not shown here), why, and the cases behind it."""

    id: str
    category: str
    level: str
    shows: str
    note: str
    cases: tuple[str, ...]


def requirements(cases: Sequence[Case]) -> Iterator[Requirement]:
    """Each requirement; one whose cases did not all run and pass is not shown, whatever could have been."""
    text = resources.files("blueprint.conform").joinpath("data/ai_conformance.yaml").read_text("utf-8")
    rows: Any = yaml_rs.loads(text, parse_datetime=False)
    for row in rows:
        found: list[Case] = []
        whole = True
        for suite, beginnings in row.get("cases", {}).items():
            for beginning in beginnings:
                mine = [case for case in cases if case.suite == suite and case.name.startswith(beginning)]
                whole = whole and bool(mine) and all(case.passed for case in mine)
                found += mine
        shows = row["shows"] if whole else NOT_SHOWN
        note = row["note"] if whole else "The cases that would show it did not all pass in this run."
        names = tuple(f"{case.suite}: {case.name}" for case in found if whole)
        yield Requirement(row["id"], row["category"], row["level"], shows, note, names)


def draft(cases: Sequence[Case], kubernetes: str, cluster: str) -> str:
    """PRODUCT.yaml in the form of a submission, as a draft: names and addresses of a vendor are left empty."""
    spec: dict[str, list[dict[str, Any]]] = {}
    for each in requirements(cases):
        row = {"id": each.id, "level": each.level, "status": _STATUS[each.shows], "notes": f"{each.shows}: {each.note}"}
        evidence = ["junit.xml"] if each.cases else []
        spec.setdefault(each.category, []).append({**row, "evidence": evidence})
    minor = ".".join(kubernetes.split(".")[:2])
    metadata = {
        "kubernetesVersion": minor,
        "platformName": cluster,
        "platformVersion": f"{kubernetes}+blueprint.{__version__}",
        "vendorName": "",
        "websiteUrl": "",
        "documentationUrl": "",
        "description": "A draft, written by a conformance run on one machine; no submission.",
    }
    return emit({"metadata": metadata, "spec": spec})
