"""Verbs that show: `graph` and `handbook`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blueprint.cli.app import app, path_of, write_document
from blueprint.errors import UsageError

if TYPE_CHECKING:
    from blueprint.check.parse import Reading
    from blueprint.picture.model import Picture

_Cluster = Annotated[list[str] | None, typer.Option("--cluster", help="Only this cluster; may be given several times.")]


class Form(StrEnum):
    """Forms of a picture."""

    HTML = "html"
    SVG = "svg"
    MERMAID = "mermaid"
    JSON = "json"


class Manual(StrEnum):
    """Forms of the handbook."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


@app.command()
def graph(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="A platform, a rendered tree, or anybody's manifests; - is the input."),
    ] = None,
    of: Annotated[
        list[str] | None, typer.Option("--of", metavar="KIND", help="quota, waves or network [default: all three].")
    ] = None,
    application: Annotated[
        list[str] | None,
        typer.Option("--app", metavar="NAME", help="The way of this job or service, from Git to pods."),
    ] = None,
    cluster: _Cluster = None,
    form: Annotated[Form, typer.Option("-o", "--output", metavar="FORM", help=f"{', '.join(Form)}.")] = Form.HTML,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", parser=path_of, help="Write here [default: the output]; a folder for several."
        ),
    ] = None,
) -> None:
    """Draw quotas, waves, networks, and an application's way to its pods."""
    from blueprint.picture.draw import KINDS, drawn

    kinds = tuple(of or (() if application else KINDS))
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise UsageError(f"there is no picture of {unknown[0]}", hint=f"pictures: {', '.join(KINDS)}; or --app NAME")
    with _objects([str(path_of(path)) for path in paths or ["."]]) as (reading, written):
        every = drawn(reading, kinds, only=cluster or (), applications=application or (), written=written)
    _write(every, form, out)


@app.command()
def handbook(
    path: Annotated[
        Path, typer.Argument(parser=path_of, help="The platform: a folder with clusters/ apps/ policies/ argocd/.")
    ] = Path(),
    form: Annotated[
        Manual, typer.Option("-o", "--output", metavar="FORM", help=f"{', '.join(Manual)}.")
    ] = Manual.MARKDOWN,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", parser=path_of, help="Write handbook.md and handbook.html there."),
    ] = None,
) -> None:
    """Write the platform's handbook: promises, quotas, risks and task cards."""
    from blueprint.check.read import read
    from blueprint.picture import blocks
    from blueprint.picture.draw import drawn
    from blueprint.picture.handbook import TITLE, intro
    from blueprint.picture.handbook import handbook as written
    from blueprint.spec.load import load

    with rendered(path) as folder:
        pictures = drawn(read(["rendered"], base=folder), ("quota", "waves"))
    platform = load(path).platform
    page = written(platform, pictures)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        if (base := os.path.relpath(path, out).replace(os.sep, "/")) != ".":
            page = blocks.below(page, base)  # links lead from the page to the specs
        texts = {"handbook.md": blocks.markdown(TITLE, page), "handbook.html": blocks.html(TITLE, page)}
        for name, text in texts.items():
            (out / name).write_text(text, "utf-8")
            print(out / name)
    elif form is Manual.JSON:
        cards = [dict(block.rows()) | {"Task": block.title} for block in page if isinstance(block, blocks.Card)]
        write_document({"schema": 1, "summary": intro(platform), "tasks": cards})
    else:
        print(blocks.html(TITLE, page) if form is Manual.HTML else blocks.markdown(TITLE, page), end="")


@contextmanager
def _objects(paths: Sequence[str]) -> Iterator[tuple[Reading, Mapping[str, str]]]:
    """The objects below the paths; a platform is rendered first, and the files of its specs are told by name."""
    from blueprint.check.read import read

    root = Path(paths[0])
    if len(paths) > 1 or paths[0] == "-" or not (root / "clusters").is_dir():
        yield read(paths), {}
        return
    with rendered(root) as folder:
        yield read(["rendered"], base=folder), _specs(root)


@contextmanager
def rendered(root: Path) -> Iterator[Path]:
    """A folder with the tree of a platform in `rendered/`, gone afterwards. Raises UsageError where it has mistakes."""
    from blueprint.pipeline import render_platform

    with tempfile.TemporaryDirectory(prefix="blueprint-render-") as folder:
        report = render_platform(root, Path(folder, "rendered")).report
        if report.failed:
            first = next(finding for finding in report.findings if finding.fails)
            raise UsageError(
                f"the platform has mistakes: {first.message}",
                where=str(first.source or root),
                hint="blueprint render tells all of them",
            )
        yield Path(folder)


def _specs(root: Path) -> dict[str, str]:
    """Job or service → file and line of its spec."""
    from blueprint.spec.load import load

    platform = load(root).platform
    jobs = {each.model.metadata.name: each.source for each in platform.training_jobs}
    services = {each.model.metadata.name: each.source for each in platform.services}
    return {name: f"{source.file}:{source.line}" for name, source in (jobs | services).items()}


def _write(every: Sequence[Picture], form: Form, out: Path | None) -> None:
    from blueprint.picture import page
    from blueprint.report import json

    if form is Form.JSON:
        texts = {"": json.dump({"schema": 1, "pictures": [_document(each) for each in every]})}
    elif form is Form.HTML:
        title = every[0].title if len(every) == 1 else "The platform in pictures"
        texts = {"": page.pictures(title, every)}
    else:
        texts = {each.scene.name: each.scene.svg() if form is Form.SVG else each.mermaid for each in every}
    if out is None:
        if len(texts) > 1:
            hint = f"--of, --app and --cluster choose one of {', '.join(texts)}; --out FOLDER takes all"
            raise UsageError(f"{len(texts)} pictures do not fit into one {form.value}", hint=hint)
        print(next(iter(texts.values())), end="")
        return
    suffix = {Form.HTML: ".html", Form.JSON: ".json", Form.SVG: ".svg", Form.MERMAID: ".mmd"}[form]
    for name, text in texts.items():
        file = out if not name or (out.suffix and len(texts) == 1) else out / f"{name}{suffix}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        print(file)


def _document(each: Picture) -> dict[str, object]:
    """A picture as plain JSON values: a contract, see docs/pictures.md."""
    rows = [dict(zip(each.table.head, row, strict=True)) for row in each.table.rows]
    return {
        "name": each.scene.name,
        "title": each.title,
        "says": each.says,
        "columns": list(each.table.head),
        "rows": rows,
    }
