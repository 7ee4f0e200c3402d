"""The corpus: every change has the class and the sentence that changes.yaml says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml_rs

from blueprint.review.entries import entries
from blueprint.review.model import Review
from tests.review.conftest import Bench

HERE = Path(__file__).parent


def _rows(text: str) -> list[dict[str, Any]]:
    found: Any = yaml_rs.loads(text)
    return [dict(each) for each in found]


CHANGES, FOREIGN, HOSTILE, *OTHERS = (
    _rows((HERE / f"{name}.yaml").read_text("utf-8"))
    for name in (
        *("changes", "foreign", "hostile", "near", "order", "serving"),
        *("guards", "lists", "servers", "small"),
    )
)
EVERY = [*CHANGES, *FOREIGN, *HOSTILE, *(change for rows in OTHERS for change in rows)]


def said(review: Review) -> str:
    """Every sentence of a review, one a line."""
    return "\n".join([*(e.words for e in entries(review)), *review.radius, *(w.words for w in review.waves)])


@pytest.mark.parametrize("change", EVERY, ids=lambda change: change["name"])
def test_class_and_sentence(change: dict[str, Any], bench: Bench) -> None:
    review = bench.of(change)
    everything = said(review)
    assert review.risk.short == change["class"], everything
    for sentence in change.get("says", ()):
        assert sentence in everything
    for sentence in change.get("never", ()):
        assert sentence not in everything


def test_there_are_enough_of_each() -> None:
    looks = Counter(change.get("looks") for change in CHANGES)
    classes = Counter(change["class"] for change in CHANGES)
    assert len(CHANGES) >= 60
    assert looks["frightening"] >= 10
    assert looks["small"] >= 10
    assert all(classes[name] >= 4 for name in ("none", "restart", "capacity", "traffic", "security", "destructive"))
    assert len(FOREIGN) > 20 and len(HOSTILE) >= 100
    assert not [change["name"] for change in HOSTILE if change["class"] in ("none", "unknown", "restart")]
    assert len({change["name"] for change in EVERY}) == len(EVERY)
