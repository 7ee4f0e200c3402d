"""`python -m bench`: measure, print the table, and write BENCHMARKS.md."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench import checking, page, reviewing
from bench.peers import Peers
from bench.process import Failed
from bench.run import Result, run_size, shape_of

ROOT = Path(__file__).resolve().parent.parent

#: Objects (about) → clusters: larger platforms have more clusters, and larger ones.
SIZES = {1_000: 1, 4_000: 2, 10_000: 4}


def main() -> int:
    """Measure every size in a scratch folder; 0 measured, 1 something failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure beside the peers.")
    parser.add_argument("--runs", type=int, default=5, help="runs of each row (default 5)")
    parser.add_argument("--out", type=Path, default=ROOT / "BENCHMARKS.md", help="the page to write")
    parser.add_argument("--scratch", type=Path, help="where to work (default: the system's folder for such files)")
    parser.add_argument("--without-peers", action="store_true", help="measure this product only, and write no page")
    options = parser.parse_args()
    try:
        tools = None if options.without_peers else Peers.of(Path(os.environ.get("BLUEPRINT_TOOLS") or ROOT / ".tools"))
        with tempfile.TemporaryDirectory(prefix="blueprint-bench-", dir=options.scratch) as scratch:
            load = os.getloadavg()[0]
            results = [_measure(Path(scratch), size, options.runs, tools) for size in SIZES]
            machine = page.machine(Path(scratch), (load, os.getloadavg()[0]))
    except Failed as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    print(page.table(results))
    if tools is not None:
        large = checking.run(checking.SIZES, options.runs, checking.SECONDS)
        parts = f"{checking.section(large)}\n{reviewing.section(reviewing.run(options.runs))}"
        text = page.whole(results, machine, tools.versions(), options.runs, parts)
        options.out.write_text(text, encoding="utf-8")
        print(f"\nwritten: {options.out}")
    return 0


def _measure(scratch: Path, size: int, runs: int, tools: Peers | None) -> Result:
    shape = shape_of(size, SIZES[size], scratch)
    print(f"about {size:,} objects: {shape.clusters} clusters, {shape.teams} teams ...", file=sys.stderr, flush=True)
    folder = scratch / str(size)
    folder.mkdir()
    return run_size(shape, folder, runs, tools)


if __name__ == "__main__":
    sys.exit(main())
