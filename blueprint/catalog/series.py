"""One look-up for the series of Prometheus: what exposes a name, of which type, with which labels and buckets.

vLLM's by version, those of the platform's components, and what a name alone tells by the conventions of Prometheus
(`_total` for counters, `_bucket` for histograms; prometheus.io docs/practices/naming).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from blueprint.catalog import vllm
from blueprint.catalog.metrics import ENDINGS, family_of, platform_metric

VLLM = "vllm:"

CREATED = "_created"

NATIVE = frozenset({"le", "quantile"})
_COMMON = frozenset({"vllm-http"})
"""Families whose names other programs use, too, with labels of their own."""
SCRAPED = frozenset({"job", "instance", "namespace", "pod", "container", "endpoint", "service", "cluster", "node"})
"""Labels that a scrape by the Prometheus Operator adds to every series."""


@dataclass(frozen=True, slots=True)
class Series:
    """What is known about one series. `type` is counter, gauge, histogram (the bare name, which no series has), or "".

    `part` is bucket, sum or count for the series of a histogram. `labels` are those it can have by itself, None where
    not known; `buckets` are the finite boundaries. `sure` is False where only the name speaks.
    """

    name: str
    metric: str
    type: str
    part: str = ""
    unit: str = ""
    labels: frozenset[str] | None = None
    buckets: tuple[float, ...] | None = None
    sure: bool = True
    note: str = ""
    by: str = ""

    @property
    def grows(self) -> bool:
        """Whether its value only ever grows, so that the value itself says nothing."""
        return self.type == "counter" or bool(self.part)

    @property
    def ratio(self) -> bool:
        """Whether its value lies between 0 and 1."""
        return self.unit == "ratio"


@dataclass(frozen=True, slots=True)
class Absence:
    """A name that vLLM has in none of the versions asked; `instead` is its successor, `hidden`: a flag brings it."""

    versions: tuple[str, ...]
    instead: str = ""
    hidden: bool = False


def series(name: str, versions: tuple[str, ...] = ()) -> Series | None:
    """What is known about a name; for vLLM in the first of these versions that has it, else in the newest that has."""
    return _of_vllm(name, versions) if name.startswith(VLLM) else _of_component(name)


@lru_cache(maxsize=4096)
def _of_component(name: str) -> Series | None:
    found = platform_metric(name)
    if found is not None:
        part = _part(name, found.name) if found.type in {"histogram", "summary"} else ""
        return Series(
            name=name,
            metric=found.name,
            type="counter" if part else found.type,
            part=part,
            unit=found.unit,
            labels=frozenset(found.labels) if found.labels and found.family.name not in _COMMON else None,
            buckets=found.buckets or None,
            note=found.note,
            by=found.family.name,
        )
    family = family_of(name)
    if family is not None and any(platform_metric(name + ending) for ending in ENDINGS["histogram"]):
        return Series(name, name, "histogram", by=family.name)
    return _by_name(name)


def _by_name(name: str) -> Series | None:
    if name.endswith("_total"):
        return Series(name, name, "counter", sure=False)
    if name.endswith("_bucket"):
        return Series(name, name.removesuffix("_bucket"), "counter", part="bucket", sure=False)
    return None


def _part(name: str, metric: str) -> str:
    return name.removeprefix(metric).removeprefix("_") if name != metric else ""


@lru_cache(maxsize=4096)
def _of_vllm(name: str, versions: tuple[str, ...]) -> Series | None:
    for version in (*versions, *reversed(vllm.versions())):
        answer = vllm.metric(name, version)
        rows = [metric for metric in answer.metrics if metric.engine != "v0"] or list(answer.metrics)
        if not rows:
            continue
        found = rows[0]
        part = _part(name, found.name) if found.type == "histogram" else ""
        kind = {"histogram": "counter" if part else "histogram"}.get(found.type, found.type)
        return Series(
            name=name,
            metric=found.name,
            type="gauge" if part == "created" else "" if kind == "unknown" else kind,
            part="" if part == "created" else part,
            unit="ratio" if found.name.endswith("_usage_perc") else "",
            labels=frozenset(found.labels) if found.labels is not None else None,
            buckets=found.boundaries(),
            by="vllm",
        )
    return None


def absent(name: str, versions: Iterable[str]) -> Absence | None:
    """Whether no vLLM of these versions exposes a name, None where one does or may."""
    asked = tuple(dict.fromkeys(versions))
    if not name.startswith(VLLM) or not asked:
        return None
    answers = [vllm.metric(name, version) for version in asked]
    if all(answer.presence is vllm.Presence.ABSENT for answer in answers):
        return Absence(asked, next((answer.instead for answer in answers if answer.instead), ""))
    rows = [metric for answer in answers for metric in answer.metrics]
    present = all(answer.presence is vllm.Presence.PRESENT for answer in answers)
    if present and rows and all(metric.hidden for metric in rows if metric.engine != "v0"):
        return Absence(asked, next((answer.instead for answer in answers if answer.instead), ""), hidden=True)
    return None


def label_name(key: str) -> str:
    """A label of Kubernetes as series have it: everything but letters, digits and _ is _."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", key)


def boundary(seconds: float) -> str:
    """A bucket's boundary as the label `le` writes it: a float with its point, `5.0` and not `5`."""
    return repr(float(seconds))
