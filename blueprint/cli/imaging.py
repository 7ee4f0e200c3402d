"""The verbs of images: `images lock` and `images check`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from blueprint.cli import attesting
from blueprint.cli.app import Format, Output, app, write_as, write_json, write_text
from blueprint.errors import UsageError
from blueprint.finding import Finding, Report
from blueprint.report import Totals

images = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Resolve images to digests, and refuse unsigned ones."
)
app.add_typer(images, name="images")

_Lock = Annotated[Path, typer.Option("--lock", metavar="FILE", help="The lock of images.")]


@images.command()
def lock(
    names: Annotated[list[str], typer.Argument(help="Images, such as registry.example.com/vllm:0.33.0.")],
    file: _Lock = Path("images.lock"),
    identity: attesting.Identity_ = None,
    issuer: attesting.Issuer_ = None,
    trusted_root: attesting.Root_ = None,
    max_age: attesting.MaxAge_ = None,
    plain_http: Annotated[
        list[str] | None, typer.Option("--plain-http", metavar="HOST", help="A registry without TLS.")
    ] = None,
    credentials: Annotated[
        Path | None, typer.Option("--registry-config", metavar="FILE", help="A config.json of Docker.")
    ] = None,
    output: Format = Output.TEXT,
) -> None:
    """Ask the registry: resolve each image to its digest, verify its signature, and write both down."""
    from blueprint.attest.imagelock import dump_lock, read_lock
    from blueprint.attest.imagelock import lock as resolve
    from blueprint.attest.registry import Registry, parts

    started = time.monotonic()
    _, prover = attesting.prover(identity, issuer, None, trusted_root)
    registry = Registry(plain=plain_http or (), credentials=credentials)
    before = read_lock(file) if file.exists() else {}
    rows, findings = resolve(names, registry, prover, max_age=attesting.duration(max_age))
    if not findings:
        kept = {name: row.document() for name, row in before.items() if name not in rows}
        file.write_text(dump_lock(kept | rows), "utf-8")
        if output is Output.TEXT:
            for name, row in rows.items():
                host, repository, _, _ = parts(name)
                print(f"{host}/{repository}@{row['digest']}  signed {row['signedAt']} by {row['identity']}")
    _tell(output, findings, started)


@images.command("check")
def check_(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders of objects, with the gate among them.")],
    file: _Lock = Path("images.lock"),
    output: Format = Output.TEXT,
) -> None:
    """Hold every image of a tree to the lock and to the tree's own image gate, without a network."""
    from blueprint.attest.imagelock import check_images, gates, read_lock
    from blueprint.check.read import read

    started = time.monotonic()
    locked = read_lock(file)
    reading = read(paths)
    manifests = reading.manifests
    known = list(gates(manifests))
    if not known:
        raise UsageError("the tree renders no image gate", hint="a Policy with `images` says who may sign")
    # What cannot be read may name an image, too.
    findings = [*reading.findings]
    for prefixes, signers, age in known:
        findings += check_images(manifests, locked, prefixes, signers, max_age=age)
    _tell(output, findings, started, len(manifests))


def _tell(output: Output, findings: list[Finding], started: float, objects: int = 0) -> None:
    report, totals = Report.of(findings), Totals(objects=objects)
    if output is Output.JSON:
        write_json(report, totals)
    elif output is not Output.TEXT:
        write_as(output, report, totals)
    elif findings or objects:
        write_text(report, totals, time.monotonic() - started)
    raise typer.Exit(1 if report.failed else 0)
