"""The verb that looks at a stream of jobs: `simulate`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from blueprint.cli.app import Format, Output, app
from blueprint.errors import UsageError


@app.command()
def simulate(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files and folders with the queues, flavors and nodes of one cluster, and its jobs."),
    ] = None,
    arrivals: Annotated[
        Path | None, typer.Option("--arrivals", metavar="FILE", help="The jobs that come: YAML, JSON or CSV.")
    ] = None,
    until: Annotated[
        str, typer.Option("--until", metavar="SPAN", help="Stop after this time, such as 7d [default: the last end].")
    ] = "",
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw the use of flavors here.")] = None,
    kueue: Annotated[
        str, typer.Option("--kueue", help="Version of Kueue [default: the inventory's, else 0.17.0].")
    ] = "",
    output: Format = Output.TEXT,
) -> None:
    """Let a stream of jobs through Kueue's decision: who waits, for whom, and what lies idle."""
    from blueprint.report import json
    from blueprint.simulate import simulate_paths
    from blueprint.simulate.arrivals import seconds
    from blueprint.simulate.summary import document
    from blueprint.simulate.text import text

    if arrivals is None:
        raise UsageError("no arrivals are given", hint="name a file with --arrivals; docs/admission.md shows one")
    if output not in (Output.TEXT, Output.JSON):
        raise UsageError(f"a simulation cannot be written as {output}", hint="use -o text or -o json, and --svg FILE")
    found = simulate_paths(paths or ["."], arrivals, kueue=kueue, until=seconds(until) if until else None)
    if svg is not None and found.outcome is not None:
        from blueprint.simulate.picture import svg as drawn

        svg.write_text(drawn(found), encoding="utf-8")
    if output is Output.JSON:
        print(json.dump(document(found)), end="")
    else:
        print(text(found, shutil.get_terminal_size((100, 24)).columns), end="")
    raise typer.Exit(1 if found.report.failed else 0)
