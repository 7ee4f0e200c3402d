"""`python -m bench.reviewing`: a review beside `diff -r` and dyff, in time and in what they notice.

Ten thousand objects of which five hundred change; then the changes of tests/review/changes.yaml and small.yaml, of
which each tool is asked whether it shows a difference, and whether it says what is destroyed. Prints what the page has.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml_rs

from bench.platforms import Shape, write
from bench.process import Failed, Series, measure
from blueprint.pipeline import render_platform
from blueprint.review.model import Risk
from tests.review.conftest import Bench

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests/golden/reference"
TOOLS = Path(os.environ.get("BLUEPRINT_TOOLS") or ROOT / ".tools") / "bin"
EVERY = 20
"""One file in so many changes."""
BUDGET = 3.0
"""Seconds by the clock for the review."""
OURS, DIFF, DYFF = "blueprint review", "diff -r", "dyff between"
CORPORA = ("changes", "small")
_DIFFERS = 'diff -r "$0" "$1"; test $? -eq 1'
"""With exit code 0 where the folders differ, which they do."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """What was told about changes that mean nothing, and about those that destroy something, by tool."""

    changes: int
    quiet: int
    loud: int
    raised: Mapping[str, int]
    named: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What was measured: rows of time with the lines that are printed, and what each tool noticed."""

    objects: int
    changed: int
    rows: Mapping[str, tuple[Series, int]]
    noticed: Noticed


def run(runs: int) -> Reviewed:
    """Measure in a scratch folder. Raises Failed where a tool ends with an error."""
    dyff = TOOLS / "dyff"
    with tempfile.TemporaryDirectory(prefix="blueprint-bench-") as folder:
        scratch = Path(folder)
        base, head, objects, changed = trees(scratch)
        commands = {OURS: [sys.executable, "-m", "blueprint", "review", str(base), str(head)]}
        commands[DIFF] = ["sh", "-c", _DIFFERS, str(base), str(head)]
        if dyff.exists():
            commands[DYFF] = [str(dyff), "between", *map(str, joined(scratch, base, head))]
        found = {}
        for name, command in commands.items():
            series = measure(command, cwd=scratch, runs=runs)
            found[name] = series, len((scratch / "bench.out").read_bytes().splitlines())
        return Reviewed(objects, changed, found, noticed(scratch, dyff if dyff.exists() else None))


def section(found: Reviewed) -> str:
    """What the page of all benchmarks says of this."""
    ours = found.rows[OURS][0].wall
    lines = ["| row | wall s | CPU s | peak MiB | to review | prints | budget |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for name, (series, printed) in found.rows.items():
        shortest, longest = series.spread
        held = f"{BUDGET:.1f} s: {_held(series)}" if name == OURS else ""
        lines.append(
            f"| `{name}` | {series.wall:.2f} ({shortest:.2f}-{longest:.2f}) | {series.cpu:.2f} | {series.peak:.0f} "
            f"| {series.wall / ours:.2f} | {printed:,} lines | {held} |"
        )
    told, tools = found.noticed, list(found.rows)
    columns = " | ".join(f"`{name}`" for name in tools)
    raised, named = (" | ".join(str(of[name]) for name in tools) for of in (told.raised, told.named))
    table = "\n".join(lines)
    return f"""## Reviewing a change

{found.objects:,} objects, {found.changed} of them changed.

{table}

What each tool notices of {told.changes} changes of the corpus:

| | {columns} |
| --- |{" ---: |" * len(tools)}
| told to change something, of {told.quiet} that mean nothing | {raised} |
| told to destroy something, of {told.loud} that do | {named} |

`blueprint review` reads both trees, pairs objects, compares them as the API server reads them, decides jobs and quotas
on both sides, runs the checks on what changed, and prints a screen. `diff` and `dyff` show lines and fields; dyff is
given each side as one file of documents, for it compares files. How: `python -m bench.reviewing`.
"""


def _held(series: Series) -> str:
    """Whether the budget is held; a machine that is busy with other things cannot tell."""
    if series.wall > BUDGET and os.getloadavg()[0] > len(os.sched_getaffinity(0)):
        return "not judged, the machine was busy"
    return "held" if series.wall <= BUDGET else "missed"


def main() -> int:
    """Measure, and print the section; 0 measured, 1 something failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.reviewing")
    parser.add_argument("--runs", type=int, default=3)
    try:
        print(section(run(parser.parse_args().runs)))
    except Failed as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    return 0


def trees(scratch: Path) -> tuple[Path, Path, int, int]:
    """About ten thousand rendered objects, and the same with every twentieth changed."""
    platform, base, head = scratch / "platform", scratch / "base", scratch / "head"
    write(platform, Shape(2, 120))
    render_platform(platform, base)
    shutil.copytree(base, head)
    files = sorted(path for path in head.rglob("*.yaml"))
    changed = 0
    for path in files[::EVERY]:
        text = path.read_text("utf-8")
        other = touched(text)
        path.write_text(other, "utf-8")
        changed += other != text
    return base, head, len(files), changed


def touched(text: str) -> str:
    """An object with more memory, else another image, else another label."""
    other = re.sub(r"memory: (\d+)Gi", lambda match: f"memory: {int(match[1]) + 1}Gi", text, count=1)
    if other == text:
        other = text.replace("sha256:fb", "sha256:0b")
    if other == text:
        other = re.sub(r"^  labels:\n", '  labels:\n    review: "1"\n', text, count=1, flags=re.MULTILINE)
    return other


def joined(scratch: Path, *folders: Path) -> Iterator[Path]:
    """Each folder as one file of documents, which is what dyff compares."""
    for folder in folders:
        file = scratch / f"{folder.name}.yaml"
        file.write_text("---\n".join(path.read_text("utf-8") for path in sorted(folder.rglob("*.yaml"))), "utf-8")
        yield file


def noticed(scratch: Path, dyff: Path | None) -> Noticed:
    """What each tool makes of the corpus."""
    changes: list[dict[str, Any]] = []
    for name in CORPORA:
        rows: Any = yaml_rs.loads((ROOT / f"tests/review/{name}.yaml").read_text("utf-8"))
        changes += [dict(row) for row in rows]
    quiet = [change for change in changes if change["class"] == "none"]
    loud = [change for change in changes if change["class"] == "destructive"]
    ours, raised = Bench(), dict.fromkeys((OURS, DIFF, DYFF), 0)
    for number, change in enumerate(quiet):
        folder = scratch / f"change-{number}"
        base, head = pair(change, folder)
        raised[OURS] += ours.of(change).risk is not Risk.NONE
        raised[DIFF] += bool(subprocess.run(["diff", "-rq", base, head], capture_output=True, check=False).stdout)
        if dyff:
            command = [str(dyff), "between", "--set-exit-code", *map(str, joined(folder, base, head))]
            raised[DYFF] += subprocess.run(command, capture_output=True, check=False).returncode == 1
    named = {OURS: sum(ours.of(change).risk is Risk.DESTRUCTIVE for change in loud), DIFF: 0, DYFF: 0}
    return Noticed(len(changes), len(quiet), len(loud), raised, named)


def pair(change: dict[str, Any], folder: Path) -> tuple[Path, Path]:
    """Both sides of a change of the corpus as folders; of the reference platform only the files that it touches."""
    base, head = folder / "base", folder / "head"
    base.mkdir(parents=True)
    head.mkdir()
    if "base" in change:
        (base / "a.yaml").write_text(change["base"], "utf-8")
        (head / "a.yaml").write_text(edited(change.get("head", change["base"]), change), "utf-8")
        return base, head
    for edit in change["edits"]:
        for cluster in ("prod-a", "preprod") if "*" in edit["file"] else ("",):
            name = edit["file"].replace("*", cluster)
            text = (GOLDEN / name).read_text("utf-8")
            moved = edit.get("move", name).replace("*", cluster)
            for side, written, at in ((base, text, name), (head, edited(text, edit), moved)):
                target = side / at
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(written, "utf-8")
    return base, head


def edited(text: str, edit: dict[str, Any]) -> str:
    """The text after an edit."""
    if "write" in edit:
        return str(edit["write"])
    return text.replace(edit["replace"], edit["with"]) if "replace" in edit else text


if __name__ == "__main__":
    started = time.monotonic()
    code = main()
    print(f"\n{time.monotonic() - started:.0f} s in all", file=sys.stderr)
    raise SystemExit(code)
