"""`python -m bench.reviewing`: a review beside `diff -r` and dyff, in time and in what they notice.

Ten thousand objects of which five hundred change; then every change of tests/review/changes.yaml, of which each tool is
asked whether it shows a difference, and whether it says what is destroyed. Prints two tables for docs/review.md.
"""

from __future__ import annotations

import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml_rs

from bench.platforms import Shape, write
from blueprint.pipeline import render_platform
from blueprint.review.model import Risk
from tests.review.conftest import Bench

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests/golden/reference"
EVERY = 20
"""One file in so many changes."""
RUNS = 3


def main() -> int:
    """Measure in a scratch folder, and print both tables."""
    dyff = ROOT / ".tools/bin/dyff"
    with tempfile.TemporaryDirectory(prefix="blueprint-bench-") as folder:
        scratch = Path(folder)
        base, head, objects, changed = trees(scratch)
        print(f"{objects:,} objects, {changed} changed; seconds of processor time\n")
        print("| | seconds | what it prints |\n|---|---:|---|")
        ours = [sys.executable, "-m", "blueprint", "review", str(base), str(head)]
        print(f"| `blueprint review` | {measured(ours, RUNS)} |")
        print(f"| `diff -r` | {measured(['diff', '-r', str(base), str(head)], RUNS)} |")
        if dyff.exists():
            print(f"| `dyff between` | {measured([str(dyff), 'between', *map(str, joined(scratch, base, head))], 1)} |")
        print()
        noticed(scratch, dyff if dyff.exists() else None)
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


def measured(command: Sequence[str], runs: int) -> str:
    """Seconds of processor time, the median of some runs, and how much is printed."""
    spent = []
    lines = 0
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=600)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        lines = len(done.stdout.splitlines())
    return f"{statistics.median(spent):.2f} | {lines:,} lines"


def noticed(scratch: Path, dyff: Path | None) -> None:
    """What each tool makes of the corpus."""
    changes: Any = yaml_rs.loads((ROOT / "tests/review/changes.yaml").read_text("utf-8"))
    quiet = [change for change in changes if change.get("looks") == "frightening"]
    loud = [change for change in changes if change["class"] == "destructive"]
    shown = {"diff": 0, "dyff": 0}
    for number, change in enumerate(quiet):
        base, head = pair(change, scratch / f"change-{number}")
        shown["diff"] += bool(subprocess.run(["diff", "-rq", base, head], capture_output=True, check=False).stdout)
        if dyff:
            files = list(joined(scratch / f"change-{number}", base, head))
            command = [str(dyff), "between", "--set-exit-code", *map(str, files)]
            shown["dyff"] += subprocess.run(command, capture_output=True, check=False).returncode == 1
    print(f"| of {len(changes)} changes | `blueprint review` | `diff -r` | `dyff between` |\n|---|---:|---:|---:|")
    ours = Bench()
    risks = [ours.of(change).risk for change in (*quiet, *loud)]
    raised = sum(risk is not Risk.NONE for risk in risks[: len(quiet)])
    named = sum(risk is Risk.DESTRUCTIVE for risk in risks[len(quiet) :])
    theirs = shown["dyff"] if dyff else "–"
    print(f"| told to change something, of {len(quiet)} that mean nothing | {raised} | {shown['diff']} | {theirs} |")
    print(f"| told to destroy something, of {len(loud)} that do | {named} | 0 | 0 |")


def pair(change: dict[str, Any], folder: Path) -> tuple[Path, Path]:
    """Both sides of a change of the corpus as folders; of the reference platform only the files that it touches."""
    base, head = folder / "base", folder / "head"
    base.mkdir(parents=True)
    head.mkdir()
    if "base" in change:
        (base / "a.yaml").write_text(change["base"], "utf-8")
        (head / "a.yaml").write_text(change["head"], "utf-8")
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
