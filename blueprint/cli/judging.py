"""Verbs that judge what is there: `check` and `explain`."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blueprint.cli.app import Format, Output, app, path_of, text_or_json, write_as, write_file, write_json, write_text
from blueprint.errors import UsageError

if TYPE_CHECKING:
    from blueprint.pipeline import Checking


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
        Path | None,
        typer.Option(
            "--baseline", metavar="FILE", parser=path_of, help="Tell only findings that are not in this file."
        ),
    ] = None,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Write today's findings into the baseline.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", parser=path_of, help="The configuration [default: blueprint.yaml]."),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="FORMAT=FILE", help="Write this format into a file, too; may be given often."),
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Write the fixes that are safe into the files; comments and layout stay.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what --fix would write, and write nothing.")] = False,
    patches: Annotated[
        bool, typer.Option("--patches", help="With -o json: safe fixes as JSON Patch (RFC 6902), too.")
    ] = False,
    output: Format = Output.TEXT,
) -> None:
    """Check Kubernetes objects: anybody's, not only rendered ones."""
    from blueprint.pipeline import check_paths

    files = _also(also)
    if (fix or diff) and (rev or any(":" in path and not Path(path).exists() for path in paths or ())):
        raise UsageError("a revision of Git is not written to", hint="check the work tree")
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
    if fix or diff:
        result = _fixed(result, write=fix and not diff)
    for kind, file in files:
        write_file(kind, file, result.report, result.totals)
    if output is Output.JSON:
        write_json(result.report, result.totals, patches=patches)
    elif output is not Output.TEXT:
        write_as(output, result.report, result.totals)
    else:
        write_text(result.report, result.totals, time.monotonic() - started)
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

    text_or_json(output, "a decision")
    found = explain_paths(job, paths or ["."], namespace=namespace, kueue=kueue)
    if output is Output.JSON:
        print(json.dump(document(found.decision, found.change)), end="")
    else:
        print(text(found.decision, found.change), end="")
    raise typer.Exit(1 if found.decision.admissible is False else 0)


def _listed(options: list[str] | None) -> list[str]:
    """Values of an option that is given several times, or holds several with commas."""
    return [part.strip() for option in options or () for part in option.split(",") if part.strip()]


def _fixed(result: Checking, *, write: bool) -> Checking:
    """Write the safe fixes, and leave the findings that are still true; or show the fixes only."""
    from difflib import unified_diff

    from blueprint.check.rewrite import fixed
    from blueprint.finding import Report
    from blueprint.report.totals import counted

    done = set()
    files = fixed(result.report.findings)
    for file in files:
        if write and file.done:
            Path(file.file).write_bytes(file.after.encode())
            done.update(file.done)
        elif not write:
            before, after = file.before.splitlines(keepends=True), file.after.splitlines(keepends=True)
            print("".join(unified_diff(before, after, f"a/{file.file}", f"b/{file.file}")), end="")
    count, left = sum(len(file.done) for file in files), sum(len(file.left) for file in files)
    said = "fixed" if write else "would fix"
    rest = f"; {left} by hand, for their text is not in plain blocks" if left else ""
    where = counted(sum(bool(file.done) for file in files), "file")
    print(f"{said} {counted(count, 'finding')} in {where}{rest}", file=sys.stderr)
    return replace(result, report=Report([each for each in result.report.findings if each not in done]))


def _also(asked: list[str] | None) -> list[tuple[Output, Path]]:
    """Formats and files of --also. Raises UsageError for a format that there is not."""
    formats = [kind.value for kind in Output if kind is not Output.TEXT]
    found = []
    for each in asked or ():
        kind, equals, file = each.partition("=")
        if not equals or not file or kind not in formats:
            raise UsageError(f"--also {each} is no FORMAT=FILE", hint=f"formats: {', '.join(formats)}")
        found.append((Output(kind), Path(file)))
    return found


def _blind_spots(result: Checking) -> list[str]:
    """What the check could not judge, so that silence is not taken for approval."""
    from blueprint.report.totals import counted

    notes = []
    if not result.totals.objects and not result.report.findings:
        notes.append("nothing was judged: there is no Kubernetes object")
    if result.passed_over:
        what = "that is no Kubernetes object" if result.passed_over == 1 else "that are no Kubernetes objects"
        notes.append(f"passed over: {counted(result.passed_over, 'document')} {what}")
    if result.doubtful:
        notes.append(f"not judged in full: {counted(result.doubtful, 'object')} with values that another tool fills in")
    if result.unknown:
        notes.append(f"not validated: {counted(result.unknown, 'object')} of kinds without a known schema")
    if rules := result.skipped_rules:
        notes.append(f"not evaluated: {counted(len(rules), 'CEL rule')}: {', '.join(rules[:3])}")
    if result.outdated:
        notes.append(f"in the baseline, and gone: {counted(result.outdated, 'finding')}; --write-baseline forgets them")
    return notes
