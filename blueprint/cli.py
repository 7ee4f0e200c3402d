"""The command line: each verb is one call, and an exit code.

0 fine · 1 findings · 2 wrong input or usage · 3 the environment lacks something.
"""

from __future__ import annotations

import gc
import io
import os
import shutil
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blueprint import __version__
from blueprint.errors import BlueprintError, EnvironmentLacks, UsageError
from blueprint.finding import Report
from blueprint.report import Application, Changes, Totals

if TYPE_CHECKING:
    from blueprint.pipeline import Checking

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Render AI platforms for Kubernetes from short specs, and prove that they will work.",
    epilog="Exit codes: 0 fine, 1 findings, 2 wrong input or usage, 3 the environment lacks something.",
)


class Output(StrEnum):
    """Formats of `-o`."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    GITLAB = "gitlab"


Format = Annotated[
    Output,
    typer.Option("-o", "--output", metavar="FORMAT", help=f"How to say it: {', '.join(Output)}.", show_default=True),
]


@app.command()
def render(
    path: Annotated[
        Path, typer.Argument(help="The platform: a folder with clusters/ apps/ policies/ argocd/.")
    ] = Path(),
    out: Annotated[Path | None, typer.Option("--out", help="The tree to write [default: PATH/rendered].")] = None,
    cluster: Annotated[
        list[str] | None, typer.Option("--cluster", help="Only this cluster; may be given several times.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if anything would change.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite rendered files that were edited by hand.")] = False,
    output: Format = Output.TEXT,
) -> None:
    """Render a platform's specs into its GitOps tree."""
    from blueprint.pipeline import render_platform

    started = time.monotonic()
    tree = out or path / "rendered"
    result = render_platform(path, tree, clusters=cluster or (), check_only=check, overwrite=force)
    planned = result.plan
    changes = Changes(planned.added, planned.changed, planned.removed, planned.lock_changed) if planned else Changes()
    if output is Output.JSON:
        _write_json(result.report, result.totals, applications=result.applications, changes=changes)
    elif output is not Output.TEXT:
        _write_as(output, result.report, result.totals)
    else:
        _write_text(result.report, result.totals, time.monotonic() - started, applications=result.applications)
        print(_next_step(path, tree, changes, check=check, failed=result.report.failed), end="")
    raise typer.Exit(1 if result.report.failed or (check and bool(changes)) else 0)


@app.command()
def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files and folders of YAML or JSON, or REVISION:PATH of Git; - is the input."),
    ] = None,
    select: Annotated[
        list[str] | None, typer.Option("--select", metavar="CODE", help="Only rules whose code starts so.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="CODE", help="Not the rules whose code starts so.")
    ] = None,
    rev: Annotated[str | None, typer.Option("--rev", help="Read the paths in this revision of Git.")] = None,
    closed: Annotated[
        bool, typer.Option("--closed", help="The tree holds everything: what it does not hold is missing.")
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Build no Kustomize roots and no Helm charts.")] = False,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Tell only findings that are not in this file.")
    ] = None,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Write today's findings into the baseline.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The configuration [default: blueprint.yaml].")
    ] = None,
    output: Format = Output.TEXT,
) -> None:
    """Check Kubernetes objects: anybody's, not only rendered ones."""
    from blueprint.pipeline import check_paths

    started = time.monotonic()
    result = check_paths(
        paths or ["."],
        config=config,
        rev=rev,
        build=not plain,
        closed=closed,
        select=_listed(select),
        ignore=_listed(ignore),
        baseline=baseline,
        write_baseline=write_baseline,
    )
    if output is Output.JSON:
        _write_json(result.report, result.totals)
    elif output is not Output.TEXT:
        _write_as(output, result.report, result.totals)
    else:
        _write_text(result.report, result.totals, time.monotonic() - started)
        for note in _blind_spots(result):
            print(note)
    raise typer.Exit(1 if result.report.failed else 0)


@app.command()
def explain(
    job: Annotated[str, typer.Argument(metavar="KIND/NAME", help="The job, such as PyTorchJob/llama3-8b-sft.")],
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files and folders with the job, the queues and the nodes; - is the input."),
    ] = None,
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="The namespace of the job.")] = "",
    kueue: Annotated[
        str, typer.Option("--kueue", help="Version of Kueue [default: the inventory's, else 0.17.0].")
    ] = "",
    output: Format = Output.TEXT,
) -> None:
    """Decide whether Kueue can admit a job, where, why not, and what would change that."""
    from blueprint.admission.explain import document, text
    from blueprint.explain import explain_paths
    from blueprint.report import json

    if output not in (Output.TEXT, Output.JSON):
        raise UsageError(f"a decision cannot be written as {output}", hint="use -o text or -o json")
    found = explain_paths(job, paths or ["."], namespace=namespace, kueue=kueue)
    if output is Output.JSON:
        print(json.dump(document(found.decision, found.change)), end="")
    else:
        print(text(found.decision, found.change), end="")
    raise typer.Exit(1 if found.decision.admissible is False else 0)


@app.command()
def new(
    path: Annotated[Path, typer.Argument(help="The folder to start the platform in.")],
    example: Annotated[str, typer.Option("--example", help="What to start from: minimal or reference.")] = "minimal",
) -> None:
    """Start a platform: a small one that is green at once."""
    from blueprint.new import copy_example

    for file in copy_example(example, path):
        print(path / file)
    print(f"\nnext: {_program()} render {path}")


@app.command()
def rules(
    code: Annotated[str | None, typer.Argument(help="A code such as WAV106; all rules without it.")] = None,
) -> None:
    """Explain the rules behind the codes of findings."""
    from blueprint.catalog.rules import describe, overview

    print(describe(code) if code else overview(), end="")


@app.command()
def version() -> None:
    """Print the version, and that of the Kubernetes API it knows."""
    from blueprint.catalog.schemas import SchemaPack

    print(f"blueprint {__version__} (Kubernetes {SchemaPack.shipped().kubernetes()})")


def main() -> None:
    """Run the command line; every known failure is one message, never a traceback."""
    gc.disable()  # a run is short, and what it makes lives to its end: looking for garbage finds none
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Closed by the caller (`>&-`): a file of the tree must not become our standard output.
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character shows "?"; it must not end the run.
            stream.reconfigure(errors="replace")
    try:
        try:
            app(prog_name="blueprint")
        finally:
            sys.stdout.flush()
    except BlueprintError as error:
        print(f"blueprint: {error.diagnostics()}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _drop_output()
        sys.exit(141)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"blueprint: {where}{error.strerror or error}", file=sys.stderr)
        _drop_output()
        sys.exit(EnvironmentLacks.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def _drop_output() -> None:
    """Nobody can read our output (`| head`, a full disk): the interpreter must not complain about it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_text(report: Report, totals: Totals, seconds: float, *, applications: tuple[Application, ...] = ()) -> None:
    from blueprint.report import table, text

    width = shutil.get_terminal_size((100, 24)).columns
    found = text.text(report, width=width, colour=text.wants_colour(sys.stdout, os.environ))
    listed = table.rendered(applications)
    print("\n".join(part for part in (found, listed, text.closing(report, totals, seconds)) if part), end="")


def _write_json(
    report: Report,
    totals: Totals,
    *,
    applications: tuple[Application, ...] | None = None,
    changes: Changes | None = None,
) -> None:
    from blueprint.catalog.rules import rules as rows
    from blueprint.report import json

    print(json.dump(json.document(report, totals, rows(), applications=applications, changes=changes)), end="")


def _write_as(output: Output, report: Report, totals: Totals) -> None:
    from blueprint.catalog.rules import rules as rows
    from blueprint.report.formats import written

    print(written(output, report, totals, rows(), __version__), end="")


def _next_step(path: Path, tree: Path, changes: Changes, *, check: bool, failed: bool) -> str:
    """What the run did to the tree, and the command that comes next."""
    from blueprint.report import table

    if failed:
        return f"{tree} is as it was\n"
    if check:
        return table.changes(changes) + (f"next: {_program()} render {path}\n" if changes else "")
    if not changes:
        return f"{tree} is up to date\n"
    counts = f"{len(changes.added)} added, {len(changes.changed)} changed, {len(changes.removed)} removed"
    return f"{tree}: {counts}\nnext: {_program()} check {tree}\n"


def _program() -> str:
    """How to call us again: by name where the shell finds it, else by the path that this run was called by."""
    return "blueprint" if shutil.which("blueprint") or not sys.argv[0].endswith("blueprint") else sys.argv[0]


def _listed(options: list[str] | None) -> list[str]:
    """Values of an option that is given several times, or holds several with commas."""
    return [part.strip() for option in options or () for part in option.split(",") if part.strip()]


def _blind_spots(result: Checking) -> list[str]:
    """What the check could not judge, so that silence is not taken for approval."""
    from blueprint.report.totals import counted

    notes = []
    if result.passed_over:
        notes.append(f"passed over: {counted(result.passed_over, 'document')} that are no Kubernetes objects")
    if result.doubtful:
        notes.append(f"not judged in full: {counted(result.doubtful, 'object')} with values that another tool fills in")
    if result.unknown:
        notes.append(f"not validated: {counted(result.unknown, 'object')} of kinds without a known schema")
    if rules := result.skipped_rules:
        notes.append(f"not evaluated: {counted(len(rules), 'CEL rule')}: {', '.join(rules[:3])}")
    if result.outdated:
        notes.append(f"in the baseline, and gone: {counted(result.outdated, 'finding')}; --write-baseline forgets them")
    return notes
