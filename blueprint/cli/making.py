"""Verbs that make a platform: `new` and `render`; and the two that tell of blueprint itself."""

from __future__ import annotations

import shlex
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from blueprint import __version__
from blueprint.cli.app import (
    Format,
    Output,
    app,
    path_of,
    program,
    text_or_json,
    write_as,
    write_document,
    write_json,
    write_text,
)
from blueprint.report import Changes


@app.command()
def render(
    path: Annotated[
        Path,
        typer.Argument(parser=path_of, help="The platform: a folder with clusters/ apps/ policies/ argocd/."),
    ] = Path(),
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PATH", parser=path_of, help="The tree to write [default: PATH/rendered]."),
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option("--cluster", metavar="NAME", help="Only this cluster; may be given several times."),
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
        write_json(result.report, result.totals, applications=result.applications, changes=changes)
    elif output is not Output.TEXT:
        write_as(output, result.report, result.totals)
    else:
        spent = time.monotonic() - started
        write_text(result.report, result.totals, spent, applications=result.applications)
        again = [
            _named(path),
            *(["--out", str(out)] if out else []),
            *(x for name in cluster or () for x in ("--cluster", name)),
        ]
        print(_next_step(again, tree, changes, check=check, failed=result.report.failed), end="")
    raise typer.Exit(1 if result.report.failed or (check and bool(changes)) else 0)


@app.command()
def new(
    path: Annotated[Path, typer.Argument(parser=path_of, help="The folder to start the platform in.")],
    example: Annotated[
        str | None,
        typer.Option(
            "--example",
            metavar="NAME",
            help="minimal, small, standard, mig, fleet or reference. [default: minimal]",
            show_default=False,
        ),
    ] = None,
    pipeline: Annotated[
        str, typer.Option("--ci", metavar="NAME", help="Ready-made CI beside it: github, gitlab, argo or git (a hook).")
    ] = "",
    output: Format = Output.TEXT,
) -> None:
    """Start a platform: a small one that is green at once."""
    from blueprint.new import FOLDERS, copy_example, copy_pipeline, pipeline_files

    text_or_json(output, "a new platform")
    if pipeline:
        pipeline_files(pipeline, path)  # nothing is begun that cannot be ended
    there = bool(pipeline) and example is None and any((path / folder).is_dir() for folder in FOLDERS)
    example = example or "minimal"
    files = [] if there else copy_example(example, path)  # an own platform only gets the pipeline
    files += copy_pipeline(pipeline, path) if pipeline else []
    if output is Output.JSON:
        write_document({"schema": 1, "path": str(path), "example": example, "files": files})
        return
    for file in files:
        print(path / file)
    print(f"\nnext: {program()} render {shlex.quote(_named(path))}")


@app.command()
def rules(
    code: Annotated[str | None, typer.Argument(help="A code such as WAV106; all rules without it.")] = None,
    output: Format = Output.TEXT,
) -> None:
    """Explain the rules behind the codes of findings."""
    from blueprint.catalog.rules import describe, find, overview
    from blueprint.catalog.rules import rules as rows

    text_or_json(output, "a rule")
    if output is Output.JSON:
        chosen = [find(code)] if code is not None else list(rows().values())
        write_document({"schema": 1, "rules": [asdict(rule) for rule in chosen]})
    else:
        print(overview() if code is None else describe(code), end="")


@app.command()
def version(output: Format = Output.TEXT) -> None:
    """Print the version, and that of the Kubernetes API it knows."""
    from blueprint.catalog.schemas import SchemaPack

    text_or_json(output, "a version")
    kubernetes = SchemaPack.shipped().kubernetes()
    if output is Output.JSON:
        write_document({"schema": 1, "blueprint": __version__, "kubernetes": kubernetes})
    else:
        print(f"blueprint {__version__} (Kubernetes {kubernetes})")


def _named(path: Path) -> str:
    """A path that no command takes for an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _next_step(again: list[str], tree: Path, changes: Changes, *, check: bool, failed: bool) -> str:
    """What the run did to the tree, and the command that comes next; `again` are the arguments of this very run."""
    from blueprint.report import table

    if failed:
        return f"{tree} is as it was\n"
    if check:
        return table.changes(changes) + (f"next: {program()} render {shlex.join(again)}\n" if changes else "")
    if not changes:
        return f"{tree} is up to date\n"
    counts = f"{len(changes.added)} added, {len(changes.changed)} changed, {len(changes.removed)} removed"
    return f"{tree}: {counts}\nnext: {program()} check {shlex.quote(_named(tree))}\n"
