"""The command line's own parts: the application, the formats of `-o`, and how a verb says what it found."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from blueprint import __version__
from blueprint.errors import UsageError
from blueprint.finding import Report
from blueprint.report import Application, Changes, Totals

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Render AI platforms for Kubernetes from short specs, and prove that they will work.",
    epilog="Exit codes: 0 fine, 1 findings that fail, 2 wrong input or usage, 3 the environment lacks something.",
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

ForgeKind = Annotated[
    str, typer.Option("--forge", metavar="KIND", help="github, gitlab or gitea, where the host's name does not say it.")
]
ForgeApi = Annotated[str, typer.Option("--forge-api", metavar="URL", help="Address of the forge's interface.")]


def path_of(text: str) -> Path:
    """The path that an option or argument names. Nobody means the current folder by no name at all."""
    if not text:
        raise typer.BadParameter("an empty path; write . for the folder that you are in")
    return Path(text)


def text_or_json(output: Output, what: str) -> None:
    """Raise UsageError for a format of findings where there are none."""
    if output not in (Output.TEXT, Output.JSON):
        raise UsageError(f"{what} cannot be written as {output}", hint="use -o text or -o json")


def write_text(
    report: Report,
    totals: Totals,
    seconds: float,
    *,
    applications: tuple[Application, ...] = (),
) -> None:
    """Write findings and what was rendered for a person, as wide as the terminal."""
    from blueprint.report import table, text

    width = shutil.get_terminal_size((100, 24)).columns
    found = text.text(report, width=width, colour=text.wants_colour(sys.stdout, os.environ))
    listed = table.rendered(applications)
    print(
        "\n".join(part for part in (found, listed, text.closing(report, totals, seconds)) if part),
        end="",
    )


def write_json(
    report: Report,
    totals: Totals,
    *,
    applications: tuple[Application, ...] | None = None,
    changes: Changes | None = None,
    patches: bool = False,
) -> None:
    """Write the JSON document: a contract, see docs/handbook.md."""
    from blueprint.catalog.rules import rules as rows
    from blueprint.report import json

    document = json.document(report, totals, rows(), applications=applications, changes=changes, patches=patches)
    print(json.dump(document), end="")


def write_document(document: object) -> None:
    """Write a document of a verb that has no findings; `schema` in it is the version of its form."""
    from blueprint.report import json

    print(json.dump(document), end="")


def write_as(output: Output, report: Report, totals: Totals) -> None:
    """Write the findings in one of the formats that other programs read."""
    from blueprint.catalog.rules import rules as rows
    from blueprint.report.formats import written

    print(written(output, report, totals, rows(), __version__), end="")


def write_file(output: Output, file: Path, report: Report, totals: Totals) -> None:
    """Write the findings into a file; what Markdown is written to is added to, as GitHub's summary wants it.

    Raises UsageError where the file cannot be written.
    """
    from blueprint.catalog.rules import rules as rows
    from blueprint.report import json
    from blueprint.report.formats import written

    if output is Output.JSON:
        text = json.dump(json.document(report, totals, rows()))
    else:
        text = written(output, report, totals, rows(), __version__)
    try:
        with file.open("a" if output is Output.MARKDOWN else "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(f"cannot write the report: {error.strerror}", where=str(file)) from None


def program() -> str:
    """How to call us again: by name where the shell finds it, else by the path that this run was called by."""
    return "blueprint" if shutil.which("blueprint") or not sys.argv[0].endswith("blueprint") else sys.argv[0]
