"""The page: what was measured, how, on what, and what each tool does for its time."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from bench.process import Series
from bench.run import Result
from blueprint import __version__

#: Row → what it does, and what it leaves out.
DOES = {
    "cold": ("read and validate specs, render, order into waves, validate by schema, list keys, CEL, names, sizes, "
             "PodSecurity and built-in rules, write the tree and its lock", "no cluster is asked"),
    "unchanged": ("compare all inputs and every file of the tree with the lock", "nothing is rendered"),
    "one spec changed": ("all of *cold*; only files that differ are written", "no part of the rendering is kept"),
    "check": ("read anybody's YAML as Kubernetes does, then the checks of *cold*", "specs, waves"),
    "explain": ("decide about one job as Kueue's scheduler does, and find the smallest change", "no cluster is asked"),
    "simulate": ("let 10,000 workloads of four teams arrive, wait, be placed and preempted, and end (measured once)",
                 "node failures, admission checks"),
    "helm template | kubeconform": ("render, validate by the same closed schemas",
                                    "specs, order, list keys, CEL, names, built-in rules, files, lock"),
    "helm template": ("render to one stream", "every check, files, lock"),
    "kubeconform": ("validate the files by the same closed schemas",
                    "rendering, list keys, CEL, names, built-in rules"),
    "kustomize build": ("read, index and write resources to one stream", "templates, every check, files, lock"),
}  # fmt: skip
#: Row → objects (about) → seconds.
BUDGETS = {
    "cold": {1_000: 1.0, 10_000: 4.0},
    "unchanged": {1_000: 0.5, 10_000: 0.5},
    "explain": {1_000: 0.5},
    "simulate": {1_000: 10.0},
}
CALLS = {name: f"blueprint {name}" for name in ("check", "explain", "simulate")}


def table(results: Sequence[Result]) -> str:
    """Every measurement as a Markdown table."""
    return "\n".join(_rows(results))


def whole(
    results: Sequence[Result], machine: Mapping[str, str], versions: Mapping[str, str], runs: int, large: str
) -> str:
    """The page; `large` is what it says of checking large trees and of reviewing changes."""
    sizes = "\n".join(
        f"- **{result.objects:,} objects** ({result.megabytes:.1f} MB of YAML): {result.shape.clusters} "
        f"cluster{'s' * (result.shape.clusters > 1)}, {result.shape.teams} teams with two training jobs and a model"
        for result in results
    )
    tools = {"blueprint": __version__, "Python": platform.python_version(), **versions}
    tools |= {name: importlib.metadata.version(name) for name in ("pydantic", "Jinja2", "yaml-rs", "jsonschema-rs")}
    does = "\n".join(f"| {_name(row)} | {what} | {not_} |" for row, (what, not_) in DOES.items() if _has(results, row))
    return f"""# Benchmarks

Written by `make bench` on {datetime.date.today().isoformat()}; not edited by hand.

{table(results)}

*wall* is the median of {runs} runs with the shortest and the longest, *CPU* the median of user and system time, *peak*
the largest resident memory; a pipe adds up the CPU and the peaks of its two processes. *to cold* compares the wall time
with that of *{_name("cold")}* at the same size: 2.0 takes twice as long.

## Growth

{_growth(results)}

{large}
## What each row does, and does not do

| row | does | does not |
| --- | --- | --- |
{does}

## Method

Every run is a fresh process; *cold* also means that no tree is there (the one of the run before was moved away, not
deleted: ext4 creates files slowly just after many were). Files of programs and specs are in the page
cache, and Python's modules are compiled, as after an installation; each row begins with a run that does not count.
Nothing is kept between runs but the tree itself.

{sizes}

The platforms come from `bench/platforms.py`, and are the same at every run. The chart holds one template for each
object of the rendered tree, with texts that occur in most of them taken from values; before anything is measured, its
output (and that of kustomize) is compared with the tree, object by object. kubeconform validates by the schemas of our
own pack, exported for the kinds that occur, from the local disk. It works on all cores at once; `blueprint` on one,
and on two where several clusters hold many objects.
kustomize is measured at the smaller size only: its time grows faster than its input.

## Machine

{_list(machine)}

## Versions

{_list(tools)}
"""


def machine(scratch: Path, load: tuple[float, float]) -> dict[str, str]:
    """What the numbers were measured on; `load` is that of the last minute, before and after."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(scratch)], capture_output=True, text=True, check=False)
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "file system of the tree": kind.stdout.strip() or "unknown",
        "load before and after": f"{load[0]:.1f}, {load[1]:.1f}",
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _rows(results: Sequence[Result]) -> Iterator[str]:
    yield "| objects | row | wall s | CPU s | peak MiB | to cold | budget |"
    yield "| ---: | --- | ---: | ---: | ---: | ---: | --- |"
    for result in results:
        cold = result.ours["cold"].wall
        for row, series in (result.ours | result.theirs).items():
            yield (
                f"| {result.objects:,} | {_name(row)} | {_wall(series)} | {series.cpu:.2f} | {series.peak:.0f} "
                f"| {series.wall / cold:.1f} | {_budget(row, result.objects, series)} |"
            )


def _wall(series: Series) -> str:
    shortest, longest = series.spread
    return f"{series.wall:.2f} ({shortest:.2f}-{longest:.2f})"


def _budget(row: str, objects: int, series: Series) -> str:
    limits = [limit for size, limit in BUDGETS.get(row, {}).items() if abs(objects - size) < size / 10]
    return f"{limits[0]:.1f} s: {'held' if series.wall <= limits[0] else 'missed'}" if limits else ""


def _growth(results: Sequence[Result]) -> str:
    """The price of one more object between neighbouring sizes; the same price everywhere is linear growth."""
    steps = list(pairwise(results))
    spans = [f"{small.objects:,} to {large.objects:,}" for small, large in steps]
    lines = [
        "What one more object costs between neighbouring sizes; where it costs the same everywhere, growth is linear.",
        "",
        "| row | " + " | ".join(f"CPU ms, {span}" for span in spans) + " | last to first | peak KiB |",
        "| --- |" + " ---: |" * (len(steps) + 2),
    ]
    small, large = results[0], results[-1]
    for row in large.ours | large.theirs:
        series = [(result.objects, (result.ours | result.theirs)[row]) for result in results]
        costs = [1000 * (two.cpu - one.cpu) / (more - few) for (few, one), (more, two) in pairwise(series)]
        peak = 1024 * (series[-1][1].peak - series[0][1].peak) / (large.objects - small.objects)
        lines.append(
            f"| {_name(row)} | " + " | ".join(f"{cost:.3f}" for cost in costs)
            + f" | {costs[-1] / costs[0]:.2f} | {peak:.1f} |"
        )  # fmt: skip
    return "\n".join(lines)


def _has(results: Sequence[Result], row: str) -> bool:
    return any(row in result.ours or row in result.theirs for result in results)


def _name(row: str) -> str:
    if row in ("cold", "unchanged", "one spec changed"):
        return f"`blueprint render`, {row}"
    return f"`{CALLS.get(row, row)}`".replace("|", "\\|")


def _list(facts: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in facts.items())
