"""The verbs of images: `images lock` and `images check`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blueprint.cli import attesting
from blueprint.cli.app import Format, Output, app, write_as, write_json, write_text
from blueprint.errors import UsageError
from blueprint.finding import Finding, Report
from blueprint.report import Totals

if TYPE_CHECKING:
    from blueprint.objects import Manifest

images = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Resolve images to digests, and refuse unsigned ones."
)
app.add_typer(images, name="images")

_Lock = Annotated[Path, typer.Option("--lock", metavar="FILE", help="The lock of images.")]


@images.command()
def lock(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Images, such as registry.example.com/vllm:0.33.0 [default: those of the specs].", show_default=False
        ),
    ] = None,
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
    """Ask the registry: resolve each image to its digest, verify its signature, and write both down.

    Without names these are the images of the specs beside the lock: tags, and what lies under the prefixes of a gate.
    """
    from blueprint.attest.imagelock import dump_lock, read_lock
    from blueprint.attest.imagelock import lock as resolve
    from blueprint.attest.registry import Registry, parts

    started = time.monotonic()
    _, prover = attesting.prover(identity, issuer, None, trusted_root)
    registry = Registry(plain=plain_http or (), credentials=credentials)
    before = read_lock(file) if file.exists() else {}
    wanted, findings = (names, []) if names else _of_specs(file.parent)
    rows, found = resolve(wanted, registry, prover, max_age=attesting.duration(max_age))
    findings = [*findings, *found]
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
    """Hold every image of a tree to the lock and to the image gates of its cluster, without a network."""
    from blueprint.attest.imagelock import check_images, gates, read_lock
    from blueprint.check.read import read

    started = time.monotonic()
    if not file.exists():
        raise UsageError("there is no lock of images", where=str(file), hint="write it with `blueprint images lock`")
    locked = read_lock(file)
    reading = read(paths)
    manifests = reading.manifests
    # What cannot be read may name an image, too.
    findings, known = [*reading.findings], False
    for judging, judged in _apart(manifests, paths):
        for prefixes, signers, age in gates(judging):
            known = True
            findings += check_images(judged, locked, prefixes, signers, max_age=age)
    if not known:
        raise UsageError("the tree renders no image gate", hint="a Policy with `images` says who may sign")
    _tell(output, findings, started, len(manifests))


def _apart(manifests: Sequence[Manifest], paths: Sequence[Path]) -> Iterator[tuple[list[Manifest], list[Manifest]]]:
    """Objects with gates, and those that these judge: each cluster of a tree by itself, for a Policy may hold in some.

    What lies in no cluster's folder is judged by every gate, and judges everything.
    """
    from blueprint.tree.lock import NAME, parse

    folders = [
        path / cluster
        for path in paths
        if (path / NAME).is_file()
        for cluster in parse((path / NAME).read_bytes())[0].clusters
    ]
    held: dict[Path | None, list[Manifest]] = {}
    for manifest in manifests:
        place = Path(manifest.source.file)
        held.setdefault(next((each for each in folders if place.is_relative_to(each)), None), []).append(manifest)
    everywhere = held.pop(None, [])
    yield everywhere, [*manifests]
    for own in held.values():
        yield own, [*own, *everywhere]


def _of_specs(root: Path) -> tuple[list[str], list[Finding]]:
    """The images that specs name by a tag, and those that a gate of theirs judges; with what keeps it from telling."""
    from blueprint.attest.registry import named
    from blueprint.spec.images import Collected
    from blueprint.spec.load import load

    met = Collected()
    loaded = load(root, met)
    gates = [document.model.spec.images for document in loaded.platform.policies]
    judged = tuple(named(prefix) for gate in gates if gate is not None for prefix in gate.prefixes)
    wanted = [image for image in sorted(met.images) if "@" not in image or named(image).startswith(judged)]
    failing = [finding for finding in loaded.findings if finding.fails]
    if not wanted and not failing:
        raise UsageError("the specs name no image that a lock could say more of", where=str(root))
    return wanted, failing


def _tell(output: Output, findings: list[Finding], started: float, objects: int = 0) -> None:
    report, totals = Report.of(findings), Totals(objects=objects)
    if output is Output.JSON:
        write_json(report, totals)
    elif output is not Output.TEXT:
        write_as(output, report, totals)
    elif findings or objects:
        write_text(report, totals, time.monotonic() - started)
    raise typer.Exit(1 if report.failed else 0)
