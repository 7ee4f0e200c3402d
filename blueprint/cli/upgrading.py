"""The verb that says whether components may move to other releases: `upgrade`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from blueprint.cli.app import Format, Output, app
from blueprint.errors import UsageError


@app.command()
def upgrade(
    targets: Annotated[
        list[str],
        typer.Argument(metavar="COMPONENT=VERSION... [PATH]...", help="Such as kueue=0.17.1, or kueue=0.15.0..0.17.1."),
    ],
    patch: Annotated[bool, typer.Option("--patch", help="Print a diff that does what can be done by writing.")] = False,
    all_rows: Annotated[bool, typer.Option("--all", help="Show everything that a move needs.")] = False,
    output: Format = Output.TEXT,
) -> None:
    """Say whether components may move to other releases under this tree: safe, manual or blocked, and why."""
    from blueprint.catalog.schemas import SchemaPack
    from blueprint.check.config import Config, find, load
    from blueprint.check.read import read
    from blueprint.report import json
    from blueprint.review import moves as told
    from blueprint.review.upgrade import Verdict, move

    if output not in (Output.TEXT, Output.JSON):
        raise UsageError(f"a verdict cannot be written as {output}", hint="use -o text or -o json")
    wanted = [each for each in targets if "=" in each]
    paths = [each for each in targets if "=" not in each] or ["."]
    if not wanted:
        raise UsageError("no component is named", hint="write COMPONENT=VERSION, such as kubernetes=1.36")
    place = find(paths)
    today = (load(place) if place else Config()).versions
    reading = read(paths, build=True)
    pack = SchemaPack.shipped().with_crds(reading.manifests)
    found = []
    for each in wanted:
        name, _, asked = each.partition("=")
        before, dots, after = asked.partition("..")
        now = before if dots else today.get(name, "")
        found.append(move(name, now, after if dots else asked, reading.manifests, pack))
    found = told.placed(found)
    if patch:
        written = told.patch(found)
        print(written.text, end="")
        for need in written.left:
            print(f"not in the patch: {need.source} {need.object}: {need.words}", file=sys.stderr)
    elif output is Output.JSON:
        print(json.dump(told.document(found)), end="")
    else:
        print(told.text(found, all_rows=all_rows), end="")
    raise typer.Exit(1 if told.worst(found) in (Verdict.MANUAL, Verdict.BLOCKED) else 0)
