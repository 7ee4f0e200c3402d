"""The verb that proves a platform on running controllers: `conform`."""

from __future__ import annotations

import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blueprint.cli.app import Format, Output, app
from blueprint.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blueprint.conform.run import Outcome
    from blueprint.conform.stage import Suite
    from blueprint.conform.tree import Tree


class On(StrEnum):
    """Kinds of clusters to run on."""

    LOCAL = "local"
    CURRENT = "current"
    KIND = "kind"


@app.command()
def conform(
    path: Annotated[
        Path, typer.Argument(help="The platform: a folder with clusters/ apps/ policies/ argocd/.")
    ] = Path(),
    suite: Annotated[
        list[str] | None, typer.Option("--suite", metavar="NAME", help="Only this suite; may be given several times.")
    ] = None,
    cluster: Annotated[
        str, typer.Option("--cluster", help="Which cluster of the platform [default: the production one].")
    ] = "",
    on: Annotated[
        On,
        typer.Option(
            "--on",
            metavar="CLUSTER",
            help="local: our own processes; current: the kubeconfig's context, in namespaces of our own; "
            "kind: containers.",
            show_default=True,
        ),
    ] = On.LOCAL,
    yes: Annotated[bool, typer.Option("--yes", help="With --on current: write without asking.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Leave the evidence here: JUnit, log, objects, digests.")
    ] = None,
    faults: Annotated[
        bool, typer.Option("--faults", help="Seed a fault into the tree for each suite; each must turn it red.")
    ] = False,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="N", min=1, help="Run it so many times, until one run fails.")
    ] = 1,
    verify: Annotated[
        Path | None, typer.Option("--verify", metavar="DIR", help="Check evidence of an earlier run, offline.")
    ] = None,
    output: Format = Output.TEXT,
) -> None:
    """Prove a rendered cluster on real controllers, run as processes of this machine."""
    if output not in (Output.TEXT, Output.JSON):
        raise UsageError(f"a run cannot be written as {output}", hint="use -o text or -o json; --out leaves JUnit")
    if verify is not None:
        _verified(verify, output)
    from blueprint.conform.run import chosen, prove, run
    from blueprint.conform.run import repeat as repeated
    from blueprint.conform.tree import rendered
    from blueprint.report import json

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended, and its folder removed
    suites = chosen(suite or ())
    tree = rendered(path, cluster)
    if on is not On.LOCAL:
        if faults or repeat > 1:
            raise UsageError(f"--faults and --repeat are for clusters of our own, not --on {on}", hint="leave --on out")
        outcome = _elsewhere(tree, suites, on, yes)
    elif repeat > 1:
        if faults:
            raise UsageError("--faults makes a cluster for each fault, once", hint="leave --repeat out")
        outcome = repeated(tree, suites, repeat, _progress)
    else:
        outcome = (prove if faults else run)(tree, suites, _progress)
    if out is not None:
        outcome.write(out)
    if output is Output.JSON:
        print(json.dump(outcome.summary()), end="")
    else:
        print(_table(outcome, out), end="")
    raise typer.Exit(1 if outcome.failed else 3 if outcome.skipped and suite else 0)


def _elsewhere(tree: Tree, suites: Sequence[Suite], on: On, yes: bool) -> Outcome:
    """On a cluster that is not ours: asks before anything is written, unless that was answered beforehand."""
    import os

    from blueprint.conform.elsewhere import kind, visit
    from blueprint.conform.kubeconfig import current

    if on is On.KIND:
        with kind() as context:
            return visit(tree, suites, _progress, _progress, context, on=on)

    def agree(what: str) -> None:
        _progress(what)
        if yes:
            return
        if not sys.stdin.isatty():
            raise UsageError("nobody is here to agree to that", hint="say --yes")
        typer.confirm("Go on?", abort=True, err=True)

    return visit(tree, suites, _progress, agree, current(os.environ), on=on)


def _progress(text: str) -> None:
    """What happens, for whoever waits: not part of the output."""
    print(text, file=sys.stderr, flush=True)


def _verified(folder: Path, output: Output) -> None:
    """Check the evidence, say what is wrong, and end."""
    from blueprint.cli.app import write_json
    from blueprint.conform.evidence import verify
    from blueprint.finding import Report
    from blueprint.report import Totals

    report = Report.of(verify(folder))
    if output is Output.JSON:
        write_json(report, Totals())
    else:
        for finding in report.findings:
            print(f"{finding.code} {finding.source}: {finding.message}")
        if not report.failed:
            print(f"{folder}: whole, and every case passed")
    raise typer.Exit(1 if report.failed else 0)


def _table(outcome: Outcome, out: Path | None) -> str:
    """Suite, cases, negatives, passed, seconds; then faults, what was left out, and where the evidence lies."""
    rows = [("SUITE", "CASES", "NEGATIVE", "PASSED", "SECONDS")]
    rows += [(name, str(n), str(bad), str(good), f"{s:.1f}") for name, n, bad, good, s in outcome.rows()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    if outcome.record.cases:
        lines += [
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
            for row in rows
        ]
    lines += [f"fault noticed: {name}" if red else f"FAULT NOT NOTICED: {name}" for name, red in outcome.faults.items()]
    lines += [f"skipped {name}: {why}" for name, why in outcome.skipped.items()]
    failed = sum(not case.passed for case in outcome.record.cases)
    lines.append(f"{outcome.tree}: {len(outcome.record.cases)} cases, {failed} failed, {outcome.seconds} s")
    if outcome.repeats:
        taken = sorted(outcome.repeats)
        lines.append(f"{len(taken)} runs: {taken[0]} to {taken[-1]} s, {taken[len(taken) // 2]} s in the middle")
    if out is not None:
        lines.append(f"evidence: {out}")
    return "\n".join(lines) + "\n"
