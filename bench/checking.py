"""Measure `blueprint check` on large trees beside kubeconform, and write bench/CHECKING.md.

    python -m bench.checking [--documents 6000 100000] [--runs 3]

kubeconform is left out where it is not built. kube-linter is not to be had as a Go module.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import peers, platforms
from bench.platforms import Shape
from bench.process import Failed, Series, measure
from blueprint.check.read import read
from blueprint.pipeline import render_platform

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(os.environ.get("BLUEPRINT_TOOLS") or ROOT / ".tools") / "bin"
#: One platform of about 6,000 objects; larger trees hold it several times, each time as other clusters.
SHAPE = Shape(3, 48)
BUDGET = {6_000: 4.0}


def tree(scratch: Path, documents: int) -> tuple[Path, int]:
    """A folder with about so many documents, and how many there are."""
    first = scratch / "first"
    if not first.exists():
        platforms.write(scratch / "platform", SHAPE)
        render_platform(scratch / "platform", first)
        (first / "blueprint.lock").unlink()
        for files in list(first.rglob("node-files")):
            shutil.rmtree(files)  # no objects: configurations of kubelets
    one = sum(1 for path in first.rglob("*.yaml"))
    copies = max(1, round(documents / one))
    folder = scratch / f"tree-{documents}"
    for number in range(copies):
        shutil.copytree(first, folder / f"site-{number:02}")
    return folder, one * copies


def rows(folder: Path, scratch: Path, runs: int) -> dict[str, Series]:
    """Every tool on one tree, by the name of its row."""
    measured = {"blueprint check": measure([sys.executable, "-m", "blueprint", "check", "."], cwd=folder, runs=runs)}
    if (TOOLS / "kubeconform").exists():
        schemas = scratch / "schemas"
        if not schemas.exists():
            peers.write_schemas(read([scratch / "first"]).manifests, schemas)
        location = f"{schemas}/{{{{.Group}}}}_{{{{.ResourceAPIVersion}}}}_{{{{.ResourceKind}}}}.json"
        conform = [str(TOOLS / "kubeconform"), "-strict", "-summary", "-schema-location", location, "."]
        measured["kubeconform"] = measure(conform, cwd=folder, runs=runs)
    return measured


def page(results: Sequence[tuple[int, dict[str, Series]]], runs: int, load: tuple[float, float]) -> str:
    """The page."""
    lines = ["| documents | row | wall s | CPU s | CPU ms a document | peak MiB | budget |"]
    lines.append("| ---: | --- | ---: | ---: | ---: | ---: | --- |")
    for documents, measured in results:
        limit = next((limit for size, limit in BUDGET.items() if abs(documents - size) < size / 10), None)
        for name, series in measured.items():
            ours = name == "blueprint check" and limit is not None
            held = f"{limit:.1f} s: {_held(series, limit or 0, load)}" if ours else ""
            lines.append(
                f"| {documents:,} | `{name}` | {series.wall:.2f} | {series.cpu:.2f} "
                f"| {1000 * series.cpu / documents:.3f} | {series.peak:.0f} | {held} |"
            )
    table = "\n".join(lines)
    return f"""# Checking, measured

Written by `python -m bench.checking` on {datetime.date.today().isoformat()}; not edited by hand.

{table}

Medians of {runs} runs, each a fresh process; CPU is user and system time of all its processes. The load of the machine
({len(os.sched_getaffinity(0))} cores) was {load[0]:.1f} before and {load[1]:.1f} after: above the number of cores the
wall time tells of the neighbours, and CPU time grows by what they take from the caches.

The tree is the reference kind of platform from `bench/platforms.py`, one file an object; larger trees hold it several
times as other clusters. `blueprint check` reads and judges each object and then all of a cluster together, by two
processes. kubeconform validates each file by the same closed schemas, exported for the kinds that occur, on all cores;
it looks at no object beside another.
"""


def _held(series: Series, limit: float, load: tuple[float, float]) -> str:
    """Whether a budget on the clock is held; a machine that is busy with other things cannot tell."""
    if max(load) > len(os.sched_getaffinity(0)) and series.wall > limit:
        return "not judged, the machine was busy"
    return "held" if series.wall <= limit else "missed"


def main() -> int:
    """Measure, and write the page; 0 measured, 1 something failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.checking")
    parser.add_argument("--documents", type=int, nargs="+", default=[6_000, 100_000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "CHECKING.md")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="blueprint-checking-") as name:
            scratch, load, results = Path(name), os.getloadavg()[0], []
            for asked in options.documents:
                folder, documents = tree(scratch, asked)
                results.append((documents, rows(folder, scratch, options.runs)))
                shutil.rmtree(folder)
            text = page(results, options.runs, (load, os.getloadavg()[0]))
    except Failed as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
