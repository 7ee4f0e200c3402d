"""Verbs that bring a tree to where Argo CD looks: `commit` and `promote`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blueprint.cli.app import (
    ForgeApi,
    ForgeKind,
    Format,
    Output,
    app,
    path_of,
    text_or_json,
    write_document,
    write_json,
)
from blueprint.errors import UsageError
from blueprint.finding import Finding, Report
from blueprint.report import Totals

if TYPE_CHECKING:
    from blueprint.deliver import Outcome, Release, Remote
    from blueprint.review import Review
    from blueprint.spec import Platform

_Platform = Annotated[
    Path, typer.Argument(parser=path_of, help="The platform: a folder with clusters/ apps/ policies/ argocd/.")
]
_Remote = Annotated[
    str,
    typer.Option(
        "--remote", metavar="URL", help="The GitOps repository, or a remote's name [default: the Delivery's]."
    ),
]
_Branch = Annotated[str, typer.Option("--branch", help="The branch for every cluster [default: the Delivery's].")]
_Sign = Annotated[
    bool | None, typer.Option("--sign/--no-sign", help="Sign the commit with git's key [default: commit.gpgsign].")
]
_Force = Annotated[bool, typer.Option("--force", help="Go over files that were edited by hand in the branch.")]
_Dry = Annotated[bool, typer.Option("--dry-run", help="Show the review and the commit, and push nothing.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask, where somebody sits at the terminal.")]
_Pull = Annotated[
    bool, typer.Option("--pull-request", help="Propose the commit on a branch of its own, by a pull request.")
]


@app.command()
def commit(
    path: _Platform = Path(),
    tree: Annotated[
        Path | None,
        typer.Option(
            "--tree",
            metavar="FOLDER",
            parser=path_of,
            help="Take this rendered tree, signatures too [default: render now].",
        ),
    ] = None,
    cluster: Annotated[
        list[str] | None, typer.Option("--cluster", help="Only this cluster; may be given several times.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every stage at once, not only the first.")] = False,
    remote: _Remote = "",
    branch: _Branch = "",
    sign: _Sign = None,
    dirty: Annotated[bool, typer.Option("--dirty", help="Take specs that are not committed, and say so.")] = False,
    older: Annotated[bool, typer.Option("--older", help="Go back to these specs where newer ones are there.")] = False,
    force: _Force = False,
    pull_request: _Pull = False,
    forge: ForgeKind = "",
    forge_api: ForgeApi = "",
    dry_run: _Dry = False,
    output: Format = Output.TEXT,
) -> None:
    """Render, and commit into the GitOps repository: one commit a branch."""
    from blueprint.deliver import Order, deliver, read_tree, specs_at
    from blueprint.deliver.git import borrowed
    from blueprint.deliver.preview import preview
    from blueprint.deliver.remote import Remote
    from blueprint.deliver.stages import named, route

    text_or_json(output, "a delivery")
    platform = _platform(path)
    specs = specs_at(path)
    if specs.changed and not dirty:
        hint = "commit the specs first, or say --dirty"
        raise UsageError(f"the specs are not those of any commit: {_few(specs.changed)}", where=str(path), hint=hint)
    way = route(platform, address=_address(path, remote), branch=branch)
    reached = named(platform, cluster) if cluster else tuple(way.branches) if every else way.first()
    if (later := sorted(set(reached) - set(way.first()))) and not every:
        hint = f"blueprint promote {later[0]}, or --all to pass over the order"
        raise UsageError(f"{', '.join(later)} comes later in the order of promotion", hint=hint)
    staged = len(way.first()) < len(way.branches)
    # Later stages take this very release: then all of it is rendered, else only what is asked for.
    release = read_tree(tree) if tree else _rendered(path, output, () if staged else reached)
    kept = release if staged else None
    outcomes = []
    with Remote.open(way.address, borrowed(path)) as place:
        for target, clusters in way.by_branch(reached).items():
            order = Order(
                release.of(clusters),
                target,
                way.path,
                specs=specs,
                keep=kept,
                sign=sign,
                older=older,
                overwrite=force,
                onto=f"blueprint/{target}" if pull_request else "",
                check_only=dry_run,
            )
            outcome = deliver(place, order)
            if dry_run and output is Output.TEXT and (review := preview(place, outcome)):
                _show(review)
            outcomes.append(_proposed(outcome, place, forge, forge_api))
    _tell(outcomes, output)


@app.command()
def promote(
    environment: Annotated[
        list[str], typer.Argument(metavar="ENV...", help="Clusters, or environments such as production.")
    ],
    path: Annotated[
        Path,
        typer.Option("--platform", metavar="FOLDER", parser=path_of, help="The platform, for its order of promotion."),
    ] = Path(),
    back: Annotated[bool, typer.Option("--back", help="Go back to what ran before, in one commit.")] = False,
    to: Annotated[
        str, typer.Option("--to", metavar="RELEASE", help="Take this release, by 7 or more digits of its name.")
    ] = "",
    remote: _Remote = "",
    branch: _Branch = "",
    sign: _Sign = None,
    force: _Force = False,
    pull_request: _Pull = False,
    forge: ForgeKind = "",
    forge_api: ForgeApi = "",
    dry_run: _Dry = False,
    yes: _Yes = False,
    output: Format = Output.TEXT,
) -> None:
    """Give an environment what the one before it runs, byte for byte."""
    from blueprint.deliver import Order, Status, deliver, source_of_promotion, source_of_rollback
    from blueprint.deliver.git import borrowed
    from blueprint.deliver.preview import preview
    from blueprint.deliver.promote import kept
    from blueprint.deliver.release import merged
    from blueprint.deliver.remote import Remote
    from blueprint.deliver.stages import named, route

    if back and to:
        raise UsageError("--back and --to exclude each other")
    text_or_json(output, "a promotion")
    platform = _platform(path)
    way = route(platform, address=_address(path, remote), branch=branch)
    with Remote.open(way.address, borrowed(path)) as place:
        # What one branch takes of one release is one commit.
        found: dict[tuple[str, str, str], list[Release]] = {}
        for cluster in named(platform, environment):
            target, left = way.branch(cluster), ""
            if back:
                release, left = source_of_rollback(place, cluster, target, way.path)
            elif to:
                release = kept(place, to).of([cluster])
            else:
                release = source_of_promotion(place, cluster, way.stages, way.branch, way.path)
            found.setdefault((target, release.name, left), []).append(release)
        if pull_request and len({target for target, _, _ in found}) < len(found):
            raise UsageError("these clusters go back to different releases", hint="propose one cluster at a time")
        orders = [
            Order(
                merged(parts),
                target,
                way.path,
                verb="Roll back" if back else "Promote",
                trailers={"Rolled-Back": left} if left else {},
                sign=sign,
                overwrite=force,
                onto=f"blueprint/{target}" if pull_request else "",
            )
            for (target, _, left), parts in found.items()
        ]
        # All of them are found and reviewed before the first is pushed.
        outcomes = [deliver(place, replace(order, check_only=True)) for order in orders]
        reviews = [preview(place, outcome) for outcome in outcomes]
        if output is Output.TEXT:
            for review in filter(None, reviews):
                _show(review)
            if not dry_run:  # before anybody is asked; a dry run tells it with the commit
                _warn(outcomes)
        if not dry_run and all(outcome.status is not Status.REFUSED for outcome in outcomes):
            if any(reviews) and sys.stdin.isatty() and not yes:
                typer.confirm(
                    f"{orders[0].verb} {', '.join(name for each in orders for name in each.clusters)}?", abort=True
                )
            outcomes = [_proposed(deliver(place, order), place, forge, forge_api) for order in orders]
    _tell(outcomes, output, warn=dry_run)


def _show(found: Review) -> None:
    from blueprint.report.text import wants_colour
    from blueprint.review.text import text

    width = shutil.get_terminal_size((100, 24)).columns
    print(text(found, width=width, colour=wants_colour(sys.stdout, os.environ)))


def _platform(path: Path) -> Platform:
    from blueprint.spec.load import load

    loaded = load(path)
    report = Report.of(loaded.findings)
    if report.failed:
        first = next(finding for finding in report.findings if finding.fails)
        raise UsageError(first.message, where=str(first.source or path), hint="blueprint render tells all mistakes")
    return loaded.platform


def _address(path: Path, remote: str) -> str:
    """The address behind a remote's name of the platform's own repository, else what was given."""
    from blueprint.deliver.git import Git

    return (remote and Git(path).text("remote", "get-url", "--push", remote)) or remote


def _rendered(path: Path, output: Output, clusters: Sequence[str]) -> Release:
    """Render some clusters, or all, in a folder that is gone afterwards; findings that fail end the run."""
    from blueprint.deliver import read_tree
    from blueprint.pipeline import render_platform

    with tempfile.TemporaryDirectory(prefix="blueprint-render-") as folder:
        result = render_platform(path, Path(folder, "rendered"), clusters=clusters)
        if result.report.failed:
            _findings(result.report, output)
            raise typer.Exit(1)
        return read_tree(Path(folder, "rendered"))


def _proposed(outcome: Outcome, remote: Remote, kind: str, api: str) -> Outcome:
    """Open the pull request of an outcome that is on a branch of its own."""
    from blueprint.deliver import Status
    from blueprint.deliver.forge import forge, propose

    if outcome.status is not Status.PROPOSED:
        return outcome
    order = outcome.order
    at = forge(remote.address, os.environ, kind=kind, api=api)
    title, _, rest = outcome.message.partition("\n\n")
    return replace(outcome, url=propose(at, head=order.onto, base=order.branch, title=title, body=rest))


def _tell(outcomes: Sequence[Outcome], output: Output, *, warn: bool = True) -> None:
    """Say what became of every branch; exit 1 where findings forbade one. `warn` also of what was left behind."""
    from blueprint.deliver import Status

    if output is Output.JSON:
        write_document({"schema": 1, "deliveries": [_document(outcome) for outcome in outcomes]})
    else:
        report = Report.of(finding for outcome in outcomes for finding in outcome.findings if finding.fails)
        if report.findings:
            _findings(report, output)
        for outcome in outcomes:
            print(_row(outcome))
        if warn:
            _warn(outcomes)
    raise typer.Exit(1 if any(outcome.status is Status.REFUSED for outcome in outcomes) else 0)


def _warn(outcomes: Sequence[Outcome]) -> None:
    """What a delivery leaves behind that somebody should know of."""
    from blueprint.deliver import Status

    for outcome in outcomes:
        if outcome.note and outcome.status is not Status.SUPERSEDED:
            print(f"warning: {outcome.note} (docs/deliver.md, signed trees)", file=sys.stderr)


def _findings(report: Report, output: Output) -> None:
    from blueprint.report import text

    if output is Output.JSON:
        write_json(report, Totals())
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        print(text.text(report, width=width, colour=text.wants_colour(sys.stdout, os.environ)))


def _row(outcome: Outcome) -> str:
    from blueprint.deliver import Status
    from blueprint.deliver.message import counts

    order = outcome.order
    what = f"{order.branch}: {', '.join(order.clusters)}"
    change = counts(outcome.plan) if outcome.plan else ""
    return {
        Status.COMMITTED: f"{what} · {change} · commit {outcome.commit[:12]} · release {order.release.name[:12]}",
        Status.PLANNED: f"{what} · {change} · would be committed\n\n{_indented(outcome.message)}",
        Status.PROPOSED: f"{what} · {change} · proposed on {order.onto} · {outcome.url}",
        Status.UNCHANGED: f"{what} · up to date · release {order.release.name[:12]}",
        Status.SUPERSEDED: f"{what} · left alone: {outcome.note}",
        Status.REFUSED: f"{what} · as it was",
    }[outcome.status]


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.strip().splitlines())


def _document(outcome: Outcome) -> dict[str, Any]:
    """One delivery as plain JSON values: a contract, see docs/deliver.md."""
    order, planned = outcome.order, outcome.plan
    return {
        "branch": order.branch,
        "clusters": list(order.clusters),
        "status": outcome.status.value,
        "base": outcome.base,
        "commit": outcome.commit,
        "release": order.release.name,
        "attempts": outcome.attempts,
        "note": outcome.note,
        "pullRequest": outcome.url,
        "changes": {
            "added": list(planned.added) if planned else [],
            "changed": list(planned.changed) if planned else [],
            "removed": list(planned.removed) if planned else [],
        },
        "findings": [_finding(finding) for finding in outcome.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    source = finding.source
    place = {"file": source.file, "line": source.line} if source else None
    return {"code": finding.code, "severity": finding.severity.value, "message": finding.message, "source": place}


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
