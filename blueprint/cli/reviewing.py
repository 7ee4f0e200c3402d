"""Verbs that say what a change means and where a line comes from: `review` and `why`."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blueprint.cli.app import ForgeApi, ForgeKind, Format, Output, app
from blueprint.errors import UsageError

if TYPE_CHECKING:
    from blueprint.deliver.comment import Request
    from blueprint.review import Review, Risk
    from blueprint.review.model import Causes


class ReviewOutput(StrEnum):
    """Formats of a review."""

    TEXT = "text"
    MARKDOWN = "markdown"
    SUMMARY = "summary"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"


_CLASSES = ("restart", "capacity", "traffic", "security", "destructive")


@app.command()
def review(
    base: Annotated[str, typer.Argument(help="What was: a folder, a revision of Git such as main, or REVISION:PATH.")],
    head: Annotated[str, typer.Argument(help="What comes: the same [default: the folder here].")] = ".",
    fail_on: Annotated[
        str, typer.Option("--fail-on", metavar="CLASS", help=f"Exit 1 from this class on: {', '.join(_CLASSES)}.")
    ] = "",
    all_rows: Annotated[bool, typer.Option("--all", help="Show every row, not only the first screen.")] = False,
    no_findings: Annotated[bool, typer.Option("--no-findings", help="Do not run the checks on both sides.")] = False,
    comment: Annotated[
        str,
        typer.Option(
            "--comment",
            metavar="URL",
            help="Keep one comment up to date on the pull request at this address; the environment has the token.",
        ),
    ] = "",
    forge: ForgeKind = "",
    forge_api: ForgeApi = "",
    output: Annotated[
        ReviewOutput, typer.Option("-o", "--output", metavar="FORMAT", help=f"How: {', '.join(ReviewOutput)}.")
    ] = ReviewOutput.TEXT,
) -> None:
    """Say what a change does to people: who loses GPUs, what restarts, what is destroyed, which gate weakens."""
    from blueprint.review import review as compare

    limit = _limit(fail_on)
    request = _request(comment, forge, forge_api) if comment else None
    lines = output in (ReviewOutput.SARIF, ReviewOutput.JSON, ReviewOutput.JUNIT)
    found = compare(base, head, findings=not no_findings, lines=lines)
    if output is ReviewOutput.TEXT:
        _show(found, all_rows)
    if output is not ReviewOutput.TEXT or request is not None:
        why = _causes(found, base, head)  # a screen shows no lines of specs, and finding them out takes a while
        if output is not ReviewOutput.TEXT:
            _write(found, limit, output, why)
        if request is not None:
            _comment(request, found, why)
    raise typer.Exit(1 if found.fails(limit) else 0)


def _request(address: str, kind: str, api: str) -> Request:
    """Before the review: who calls it wrongly is told at once."""
    from blueprint.deliver.comment import request_of

    return request_of(address, os.environ, kind=kind, api=api)


def _comment(request: Request, found: Review, why: Causes) -> None:
    from blueprint.deliver.comment import comment
    from blueprint.review import markdown

    done = comment(request, markdown.MARKER, markdown.markdown(found, why))
    sys.stdout.flush()
    print(f"comment {done.status}: {done.url}", file=sys.stderr)


@app.command()
def why(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE", help="A line of a spec, or of a rendered file.")],
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Look into every spec for what a rendered line depends on.")
    ] = False,
    output: Format = Output.TEXT,
) -> None:
    """Show the rendered lines that a line of a spec decides, or the lines of specs that a rendered line comes from."""
    from blueprint.report import json
    from blueprint.review import reasons
    from blueprint.review.why import why as explain

    if output not in (Output.TEXT, Output.JSON):
        raise UsageError(f"an answer cannot be written as {output}", hint="use -o text or -o json")
    found = explain(place, everywhere=everywhere)
    if output is Output.JSON:
        print(json.dump(reasons.document(found)), end="")
    else:
        print(reasons.text(found), end="")


def _limit(name: str) -> Risk | None:
    from blueprint.review import Risk

    if not name:
        return None
    if name not in _CLASSES:
        raise UsageError(f"no class is called {name}", hint=f"classes: {', '.join(_CLASSES)}")
    return Risk[name.upper()]


def _show(found: Review, all_rows: bool) -> None:
    from blueprint.report.text import wants_colour
    from blueprint.review import text

    width = shutil.get_terminal_size((100, 24)).columns
    colour = wants_colour(sys.stdout, os.environ)
    print(text.text(found, width=width, colour=colour, lines=None if all_rows else text.LINES), end="")


def _write(found: Review, limit: Risk | None, output: ReviewOutput, why: Causes) -> None:
    from blueprint import __version__
    from blueprint.catalog.rules import rules
    from blueprint.report import json, junit
    from blueprint.review import documents, markdown

    match output:
        case ReviewOutput.MARKDOWN:
            print(markdown.markdown(found, why), end="")
        case ReviewOutput.SUMMARY:
            print(markdown.markdown(found, why, limit=markdown.SUMMARY), end="")
        case ReviewOutput.JSON:
            print(json.dump(documents.document(found, rules(), why)), end="")
        case ReviewOutput.SARIF:
            told = documents.sarif_document(found, limit, rules(), __version__, why)
            print(json.dump(told), end="")
        case ReviewOutput.JUNIT:
            report = documents.as_findings(found, limit, why)
            print(junit.junit(report, rules()), end="")


def _causes(found: Review, base: str, head: str) -> Causes:
    """Lines of specs, where the head is a folder of a platform."""
    from blueprint.review.model import Causes

    if not Path(head).is_dir():
        return Causes()
    from blueprint.review.causes import causes

    return causes(found, Path(head), base)
