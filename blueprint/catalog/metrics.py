"""Metrics that the components of a platform expose, vllm's own aside (blueprint.catalog.vllm has those, by version)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from blueprint.catalog.slips import meant
from blueprint.catalog.tables import table

ENDINGS = {
    "counter": ("",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("", "_sum", "_count"),
}
"""The series of a metric of each type, as endings to its name."""


@dataclass(frozen=True, slots=True)
class Family:
    """The metrics of one component. `complete`: a name that matches and is not listed does not exist."""

    name: str
    match: re.Pattern[str]
    complete: bool
    source: str


@dataclass(frozen=True, slots=True)
class PlatformMetric:
    """One metric. `labels` are those that it can have, besides the scrape's; `unit` is "" where the name says it.

    `buckets` are the finite boundaries of a histogram, () where they are not known. `optional`: off unless asked for.
    """

    name: str
    type: str
    unit: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...]
    optional: bool
    note: str
    family: Family


@cache
def families() -> tuple[Family, ...]:
    """The families, in the order of the table."""
    return tuple(
        Family(row["name"], re.compile(row["match"]), row["complete"], row["source"])
        for row in table("metrics")["families"]
    )


@cache
def _series() -> dict[str, PlatformMetric]:
    found: dict[str, PlatformMetric] = {}
    for family, group in zip(families(), table("metrics")["families"], strict=True):
        for name, row in group["metrics"].items():
            one = PlatformMetric(
                name=name,
                type=row["type"],
                unit=row.get("unit", ""),
                labels=(*group["labels"], *row.get("labels", ())),
                buckets=tuple(float(b) for b in row.get("buckets", ())),
                optional=row.get("optional", False),
                note=row.get("note", ""),
                family=family,
            )
            for ending in ENDINGS[one.type]:
                found[name + ending] = one
    return found


def platform_metric(series: str) -> PlatformMetric | None:
    """The metric behind a series name (`istio_request_bytes_bucket`), or None if it is not in the table."""
    return _series().get(series)


@lru_cache(maxsize=4096)
def family_of(series: str) -> Family | None:
    """The family that a name belongs to by its look, also where no such metric is known; None for any other name."""
    return next((family for family in families() if family.match.fullmatch(series)), None)


@lru_cache(maxsize=4096)
def slip(series: str) -> str:
    """The series of a known family that a name is a slip of the pen away from, "" where there is none."""
    return meant(series, _series()) if family_of(series) else ""
