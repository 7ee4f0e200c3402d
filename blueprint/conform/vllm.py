"""A served model that answers nobody: it exposes the series that an analysis asks for, as if requests were answered."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from blueprint.conform.exporter import Exporter, fixed, named, selected, written
from blueprint.promql import Select

_REQUESTS = 20.0
"""Answers in a second."""


class Mode(StrEnum):
    """How a version answers."""

    GOOD = "good"
    SLOW = "slow"
    FAILING = "failing"
    IDLE = "idle"


_SHARE_IN_TIME = {Mode.GOOD: 0.995, Mode.SLOW: 0.5, Mode.FAILING: 0.995}
_SHARE_FAILED = {Mode.GOOD: 0.0, Mode.SLOW: 0.0, Mode.FAILING: 0.3}


@dataclass(slots=True)
class Version:
    """One version that runs: the labels of its pods, how it answers, and since when (monotonic seconds)."""

    labels: dict[str, str]
    mode: Mode
    since: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class Simulator(Exporter):
    """The series that the queries select, of every version that runs."""

    queries: tuple[str, ...] = ()
    versions: list[Version] = field(default_factory=list)

    def text(self, now: float) -> str:
        """What is exposed at a moment, in Prometheus' text format."""
        lines: dict[str, float] = {}
        wanted = [select for query in self.queries for select in selected(query)]
        for version in list(self.versions):
            if version.mode is not Mode.IDLE:
                answered = _REQUESTS * (now - version.since)
                for select in wanted:
                    lines |= dict(_samples(select, version, answered))
        return written(lines)


def _samples(select: Select, version: Version, answered: float) -> Iterable[tuple[str, float]]:
    """Counters of one metric: of histograms the bucket that is asked for, of requests those that succeed and fail."""
    labels = {**fixed(select), **version.labels}
    if select.metric.endswith("_bucket"):
        within = answered * _SHARE_IN_TIME[version.mode]
        yield named(select.metric, labels), within
        yield named(select.metric, {**labels, "le": "+Inf"}), answered
    elif select.metric.endswith(("_count", "_sum")):
        yield named(select.metric, labels), answered
    elif select.metric == "istio_requests_total":
        failed = answered * _SHARE_FAILED[version.mode]
        yield named(select.metric, {**labels, "response_code": "200"}), answered - failed
        yield named(select.metric, {**labels, "response_code": "503"}), failed
    else:
        yield named(select.metric, labels), 1.0
