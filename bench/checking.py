"""Measure `blueprint check` on large trees beside kubeconform and kube-score, and write bench/CHECKING.md.

    python -m bench.checking [--documents 6000 100000] [--runs 3] [--seconds 280]

Every row is a process of its own; the page is written again after each, and what does not end in the time that is left
is said to be unmeasured. Peers that are not built are left out (`make tools-bench`).
"""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import peers, platforms
from bench.platforms import Shape
from bench.process import Failed, Series, measure
from blueprint.check.read import read
from blueprint.pipeline import render_platform

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(os.environ.get("BLUEPRINT_TOOLS") or ROOT / ".tools") / "bin"
PAGE = ROOT / "bench" / "CHECKING.md"
#: One platform of about 6,000 objects; larger trees hold it several times, each time as other clusters.
SHAPE = Shape(3, 48)
SIZES = (6_000, 100_000)
#: Documents (about) → seconds that `blueprint check` may take on two cores that have nothing else to do.
BUDGET = {6_000: 5.0}
#: Above so many documents each row is measured once, without a run before that fills caches, and kube-score left out:
#: it is given its files as arguments, for which there is no more room.
LARGE = 20_000
#: For all rows together.
SECONDS = 280.0
OURS = "blueprint check"


@dataclass(frozen=True, slots=True)
class Row:
    """One tool on one tree; `why` says why there is no figure."""

    documents: int
    name: str
    series: Series | None
    why: str = ""


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
        # Links are read as files are, and a hundred thousand of them are there at once.
        shutil.copytree(first, folder / f"site-{number:02}", copy_function=os.link)
    return folder, one * copies


def commands(scratch: Path, folder: Path, documents: int) -> Iterator[tuple[str, list[str]]]:
    """The call of each tool that is there, by the name of its row; each ends with 0 unless it failed."""
    yield OURS, [sys.executable, "-m", "blueprint", "check", folder.name]
    if (TOOLS / "kubeconform").exists():
        schemas = scratch / "schemas"
        if not schemas.exists():
            peers.write_schemas(read([scratch / "first"]).manifests, schemas)
        location = f"{schemas}/{{{{.Group}}}}_{{{{.ResourceAPIVersion}}}}_{{{{.ResourceKind}}}}.json"
        yield (
            "kubeconform",
            [str(TOOLS / "kubeconform"), "-strict", "-summary", "-schema-location", location, folder.name],
        )
    if (TOOLS / "kube-score").exists() and documents < LARGE:
        call = (
            f"{shlex.quote(str(TOOLS / 'kube-score'))} score -o ci $(find {folder.name} -name '*.yaml'); test $? -le 1"
        )
        yield "kube-score", ["sh", "-c", call]


def rows(scratch: Path, sizes: Sequence[int], runs: int, seconds: float) -> Iterator[Row]:
    """Every tool on every tree, one after the other, as long as there is time."""
    end = time.monotonic() + seconds
    for asked in sizes:
        folder, documents = tree(scratch, asked)
        large = documents > LARGE
        for name, command in commands(scratch, folder, documents):
            left = int(end - time.monotonic())
            print(f"{documents:,} documents, {name}: {max(left, 0)} s left ...", file=sys.stderr, flush=True)
            try:
                if left < 1:
                    raise Failed("no time was left")
                series = measure(command, cwd=scratch, runs=1 if large else runs, warm=not large, limit=left)
                yield Row(documents, name, series)
            except Failed as failure:
                print(f"bench: {failure}", file=sys.stderr)
                yield Row(documents, name, None, f"did not end in the {max(left, 0)} s that were left")
        shutil.rmtree(folder)


def table(results: Sequence[Row], load: tuple[float, float]) -> str:
    """Every row, beside our own of the same tree."""
    lines = ["| documents | row | wall s | CPU s | CPU ms a document | peak MiB | wall, CPU to ours | budget |"]
    lines.append("| ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for row in results:
        if row.series is None:
            lines.append(f"| {row.documents:,} | `{row.name}` | {row.why} | | | | | |")
            continue
        ours = next((each.series for each in results if (each.documents, each.name) == (row.documents, OURS)), None)
        ratio = f"{row.series.wall / ours.wall:.2f}, {row.series.cpu / ours.cpu:.2f}" if ours else ""
        lines.append(
            f"| {row.documents:,} | `{row.name}` | {row.series.wall:.2f} | {row.series.cpu:.2f} "
            f"| {1000 * row.series.cpu / row.documents:.3f} | {row.series.peak:.0f} | {ratio} | {_held(row, load)} |"
        )
    return "\n".join(lines)


def growth(results: Sequence[Row]) -> str:
    """What a document of the largest tree costs beside one of the smallest: 1 is linear."""
    ours = [(row.documents, row.series) for row in results if row.name == OURS and row.series]
    if len(ours) < 2:
        return ""
    (few, small), (many, large) = ours[0], ours[-1]
    costs = (large.cpu / many) / (small.cpu / few)
    return (
        f"A document among {many:,} costs `{OURS}` {costs:.2f} times the CPU time of one among {few:,}, "
        f"and {1024 * (large.peak - small.peak) / (many - few):.0f} KiB of memory.\n"
    )


def page(results: Sequence[Row], runs: int, load: tuple[float, float]) -> str:
    """The page."""
    return f"""# Checking, measured

Written by `python -m bench.checking` on {datetime.date.today().isoformat()}; not edited by hand.

{table(results, load)}

{growth(results)}
Medians of {runs} runs, each a fresh process, after one that does not count; above {LARGE:,} documents one run. CPU is
user and system time of all processes of a row, *peak* the largest of them. The load of the machine
({len(os.sched_getaffinity(0))} cores) was {load[0]:.1f} before and {load[1]:.1f} after: above the number of cores the
wall time tells of the neighbours, and CPU time grows by what they take from the caches.

The tree is the reference kind of platform from `bench/platforms.py`, one file an object; larger trees hold it several
times as other clusters. `blueprint check` reads and judges each object and then all of a cluster together, by two
processes. kubeconform validates each file by the same closed schemas, exported for the kinds that occur, on all cores;
it looks at no object beside another. kube-score judges pods, Services and budgets of the kinds that it knows, by best
practices; it validates no schema and reads no custom resource. kube-linter is not among them: the mirror of Go modules
refuses its module.

That no rule grows faster than the tree in one namespace of one cluster is held by `tests/check/test_growth.py`, which
counts calls.
"""


def section(results: Sequence[Row]) -> str:
    """What the page of all benchmarks says of this."""
    return f"""## Checking large trees

{table(results, os.getloadavg()[:2])}

{growth(results)}How: [bench/CHECKING.md](bench/CHECKING.md).
"""


def _held(row: Row, load: tuple[float, float]) -> str:
    """Whether a budget on the clock is held; a machine that is busy with other things cannot tell."""
    limit = next((limit for size, limit in BUDGET.items() if abs(row.documents - size) < size / 10), None)
    if row.name != OURS or limit is None or row.series is None:
        return ""
    if row.series.wall <= limit:
        return f"{limit:.1f} s: held"
    busy = max(load) > len(os.sched_getaffinity(0))
    return f"{limit:.1f} s: {'not judged, the machine was busy' if busy else 'missed'}"


def run(sizes: Sequence[int], runs: int, seconds: float, out: Path = PAGE) -> list[Row]:
    """Measure, and write the page again after each row."""
    load, results = os.getloadavg()[0], list[Row]()
    with tempfile.TemporaryDirectory(prefix="blueprint-checking-") as name:
        for row in rows(Path(name), sizes, runs, seconds):
            results.append(row)
            out.write_text(page(results, runs, (load, os.getloadavg()[0])), encoding="utf-8")
    return results


def main() -> int:
    """Measure, and write the page; 0 measured, 1 where a row has no figure."""
    parser = argparse.ArgumentParser(prog="python -m bench.checking")
    parser.add_argument("--documents", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all rows together (default 280)")
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    results = run(options.documents, options.runs, options.seconds, options.out)
    print(options.out.read_text(encoding="utf-8"))
    return 0 if all(row.series for row in results) else 1


if __name__ == "__main__":
    sys.exit(main())
