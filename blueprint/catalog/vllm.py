"""Flags and metrics of vllm by version: what `vllm serve` of this version accepts, and what it exposes.

The tables hold the versions that were read. A version between two of them is answered when both agree, and is unknown
otherwise; an older or newer one is unknown. Nothing is said of what a plugin or a patched image adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from blueprint.catalog.tables import table
from blueprint.catalog.versions import version

ENGINE_PATIENCE = 600
"""Seconds until the server gives up on its engine by itself (vllm 0.33.0 envs.py VLLM_ENGINE_READY_TIMEOUT_S)."""

ENGINE_NOTE, VERSION_NOTE = "platform.blueprint/engine", "platform.blueprint/engine-version"
"""Annotations of a serving pod that say which engine runs in it, and which version: a digest says neither."""
MODEL_NOTE = "platform.blueprint/model"
"""The annotation with the publisher's name of the model: the server is given a folder, which says nothing of it."""

CUSTOM_BUCKETS = {
    "time_to_first_token": ("vllm:time_to_first_token_seconds",),
    "inter_token_latency": ("vllm:inter_token_latency_seconds", "vllm:request_time_per_output_token_seconds"),
    "request_latency": (
        "vllm:e2e_request_latency_seconds",
        "vllm:request_queue_time_seconds",
        "vllm:request_inference_time_seconds",
        "vllm:request_prefill_time_seconds",
        "vllm:request_decode_time_seconds",
    ),
    "iteration_tokens": ("vllm:iteration_tokens_total",),
}
"""Which histograms a key of --custom-histogram-buckets is for (vllm 0.33.0 v1/metrics/buckets.py)."""

SERIES = {
    "histogram": ("_bucket", "_sum", "_count", "_created"),
    "counter": ("", "_created"),
    "gauge": ("",),
    "unknown": ("", "_total", "_bucket", "_sum", "_count", "_created"),
}
"""The series of a metric of each type, as endings; prometheus_client adds `_created` to counters and histograms."""


class Presence(StrEnum):
    """Whether a version has a flag or metric."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of `vllm serve` in one version.

    `takes` is switch, boolean (--x and --no-x), value, values, optional (bare or with a value) or repeated. `type` is
    str, int, float, bool, json, list or size (an integer that may be written 32k or 1G). `settled` is False where the
    default is computed, and `default` then means nothing. `choices` is empty where any value of the type parses.
    """

    name: str
    takes: str
    type: str
    settled: bool
    default: Any
    choices: tuple[str | int, ...]
    folds: bool
    aliases: tuple[str, ...]
    deprecated: bool

    def accepts(self, value: str) -> bool:
        """Whether the argument parser takes this value; True where that cannot be told."""
        if not self.choices:
            return True
        folded = value.lower().replace("-", "_") if self.folds else value
        return folded in {str(choice) for choice in self.choices} or (value in {"", "None"} and self.default is None)


@dataclass(frozen=True, slots=True)
class FlagAnswer:
    """What is known about an argument. `negated`: it is the --no- or --disable- form of `flag`.

    `abbreviated`: argparse completes it to `flag`, for now. `exact` is False where the two versions read around the
    asked one have the flag with different details. `added` and `removed` are the versions read that first have a flag
    of this very name and first lack it, "" where there is none; `instead` is what to write today, None if unknown.
    """

    presence: Presence
    flag: Flag | None = None
    negated: bool = False
    abbreviated: bool = False
    exact: bool = True
    added: str = ""
    removed: str = ""
    instead: str | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of vllm in one version, named as scraped (a counter with `_total`).

    `labels` is None where they are computed. `buckets` are the finite boundaries of a histogram, `"1-2-5"` for the
    series that ends at the model length, None where computed. `when` is what it needs to exist, "" if nothing; `hidden`
    metrics need --show-hidden-metrics-for-version. `engine` is v0 for the old engine, which versions up to 0.10 have
    beside the new one.
    """

    name: str
    type: str
    labels: tuple[str, ...] | None
    buckets: tuple[float, ...] | str | None
    when: str
    engine: str

    @property
    def hidden(self) -> bool:
        """Whether a deprecated metric is off by default."""
        return "hidden" in self.when

    def boundaries(self, max_model_len: int | None = None) -> tuple[float, ...] | None:
        """The finite `le` values, in order; None where they are not known (the 1-2-5 series needs the model length)."""
        if self.buckets != "1-2-5":
            return self.buckets if isinstance(self.buckets, tuple) else None
        if max_model_len is None:
            return None
        series = (m * 10.0**e for e in range(len(str(max_model_len))) for m in (1, 2, 5))
        return tuple(b for b in series if b <= max_model_len)


@dataclass(frozen=True, slots=True)
class MetricAnswer:
    """What is known about a metric or series name; more than one metric only while two engines existed.

    `exact` is False where the two versions read around the asked one have it with different details.
    """

    presence: Presence
    metrics: tuple[Metric, ...] = ()
    exact: bool = True
    instead: str | None = None


def versions() -> tuple[str, ...]:
    """The versions that the tables were read from, oldest first."""
    return tuple(table("vllm_flags")["versions"])


def newest() -> str:
    """The newest version that the tables were read from."""
    return versions()[-1]


@cache
def known_flag(argument: str) -> Flag | None:
    """A flag as the newest version that has it knows it, None for one that no version read has."""
    name = option_name(argument)
    return next((hit[0] for at in reversed(versions()) if (hit := _match(name, at))), None)


@cache
def _span(of: str) -> tuple[str, ...]:
    """The version itself where it was read, else its two neighbours, () outside of what was read."""
    wanted = version(of)
    known = [(key, name) for name in versions() if (key := version(name))]
    if wanted is None:
        return ()
    # a post-release repairs the package, not the program
    exact = [name for key, name in known if key == wanted or (key[:4] == wanted[:4] and wanted[3] == 0)]
    below, above = [n for k, n in known if k < wanted], [n for k, n in known if k > wanted]
    return (exact[0],) if exact else (below[-1], above[0]) if below and above else ()


@cache
def _index(name: str) -> int:
    return versions().index(name)


def _holds(row: Mapping[str, Any], at: str) -> bool:
    return _index(row["first"]) <= _index(at) <= _index(row.get("last", versions()[-1]))


@cache
def _options(at: str) -> dict[str, tuple[Flag, bool]]:
    """Every option string of a version that was read → its flag, and whether it is the negative form."""
    found: dict[str, tuple[Flag, bool]] = {}
    pairs = at in table("vllm_flags")["pairs"]
    for name, rows in table("vllm_flags")["flags"].items():
        for row in rows:
            if _holds(row, at):
                one = _flag(name, row)
                for option in (name, *one.aliases):
                    found[option] = (one, False)
                    if one.takes == "boolean" and option.startswith("--"):
                        found[f"--no-{option[2:]}"] = (one, True)
                        for this, other in (("--enable-", "--disable-"), ("--disable-", "--enable-")):
                            if pairs and option.startswith(this):
                                found.setdefault(other + option.removeprefix(this), (one, True))
    return found


def _flag(name: str, row: Mapping[str, Any]) -> Flag:
    return Flag(
        name=name,
        takes=row["takes"],
        type=row["type"],
        settled="default" in row,
        default=row.get("default"),
        choices=tuple(row.get("choices", ())),
        folds=row.get("folds", False),
        aliases=tuple(row.get("aliases", ())),
        deprecated=row.get("deprecated", False),
    )


def option_name(argument: str) -> str:
    """The option of a command-line word: `--kv_cache_dtype=fp8` and `--compilation-config.level` without what follows.

    Source: vllm utils FlexibleArgumentParser.parse_args, which reads _ as - up to the first dot.
    """
    name = argument.partition("=")[0]
    return name.partition(".")[0].replace("_", "-") if name.startswith("--") else name


def options(of: str) -> tuple[str, ...]:
    """Every long option that a version takes for certain, () for a version outside of what was read."""
    known = [set(_options(at)) for at in _span(of)]
    return tuple(sorted(name for name in set.intersection(*known) if name.startswith("--"))) if known else ()


@cache
def flag(argument: str, of: str) -> FlagAnswer:
    """What vllm of version `of` makes of an argument such as `--tensor-parallel-size`, `-tp`, `--no-enable-lora`."""
    name = option_name(argument)
    found = [_match(name, at) for at in _span(of)]
    instead = table("vllm_renames")["flags"].get(name)
    added, removed = _bounds(name)
    if not found or any((hit is None) != (found[0] is None) for hit in found):
        return FlagAnswer(Presence.UNKNOWN, added=added, removed=removed, instead=instead)
    if found[0] is None:
        return FlagAnswer(Presence.ABSENT, added=added, removed=removed, instead=instead)
    one, negated, abbreviated = found[0]
    exact = found[0] == found[-1]
    return FlagAnswer(Presence.PRESENT, one, negated, abbreviated, exact, added, removed, instead)


def _match(name: str, at: str) -> tuple[Flag, bool, bool] | None:
    options = _options(at)
    if name in options:
        return (*options[name], False)
    longer = [option for option in options if name.startswith("--") and option.startswith(name)]
    return (*options[longer[0]], True) if len(longer) == 1 else None


def _bounds(name: str) -> tuple[str, str]:
    """The first version that has a flag of this name, and the first later one that lacks it; "" where there is none."""
    rows = table("vllm_flags")["flags"].get(name) or table("vllm_flags")["flags"].get(name.replace("--no-", "--", 1))
    if not rows:
        return "", ""
    first, last = _index(rows[0]["first"]), _index(rows[-1].get("last", versions()[-1]))
    return (versions()[first] if first else ""), (versions()[last + 1] if last + 1 < len(versions()) else "")


@cache
def _series(at: str) -> dict[str, tuple[Metric, ...]]:
    """Every series name of a version that was read → the metrics that expose it."""
    found: dict[str, tuple[Metric, ...]] = {}
    for name, rows in table("vllm_metrics")["metrics"].items():
        for row in rows:
            if _holds(row, at):
                one = _metric(name, row)
                base = name.removesuffix("_total") if one.type == "counter" else name
                for ending in SERIES[one.type]:
                    series = f"{base}{ending}" if ending == "_created" else f"{name}{ending}"
                    found[series] = (*found.get(series, ()), one)
                if one.type == "histogram":
                    found.setdefault(name, (one,))
    return found


def _metric(name: str, row: Mapping[str, Any]) -> Metric:
    buckets = row.get("buckets")
    return Metric(
        name=name,
        type=row["type"],
        labels=tuple(row["labels"]) if "labels" in row else None,
        buckets=tuple(buckets) if isinstance(buckets, list) else buckets,
        when=row.get("when", ""),
        engine=row.get("engine", ""),
    )


@cache
def metric(name: str, of: str) -> MetricAnswer:
    """What vllm of version `of` knows of a metric by its name or that of one of its series (`..._bucket`, `..._count`).

    A histogram's plain name is answered too, although no series has it.
    """
    found = [_series(at).get(name, ()) for at in _span(of)]
    base = name
    for ending in ("_bucket", "_sum", "_count", "_created"):
        base = base.removesuffix(ending)
    renames = table("vllm_renames")["metrics"]
    instead = renames.get(base, renames.get(name))
    if not found or any(bool(hit) != bool(found[0]) for hit in found):
        return MetricAnswer(Presence.UNKNOWN, instead=instead)
    if not found[0]:
        return MetricAnswer(Presence.ABSENT, instead=instead)
    return MetricAnswer(Presence.PRESENT, found[0], found[0] == found[-1], instead)
