"""The verbs as functions: specs → objects → checks → tree, each step once, in one direction."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from blueprint import __version__
from blueprint.catalog.schemas import SchemaPack
from blueprint.errors import UsageError
from blueprint.finding import Finding, Report
from blueprint.spec.files import contents
from blueprint.tree import Lock, Made, Plan, plan, write
from blueprint.tree.lock import NAME as LOCK_NAME
from blueprint.tree.lock import parse as parse_lock

if TYPE_CHECKING:
    from blueprint.render.platform import RenderedCluster
    from blueprint.render.templates import Templates

#: Where a platform keeps templates that override ours.
TEMPLATES_FOLDER = "templates"


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    """One line of the table that a rendering ends with."""

    cluster: str
    application: str
    objects: int
    wave: int | None
    waves: int | None


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a rendering came to. `plan` is None when nothing could be compared with the tree; `current` when the tree
    was made from these very inputs and is untouched, so nothing was rendered."""

    report: Report
    rows: list[ApplicationRow] = field(default_factory=list)
    plan: Plan | None = None
    current: bool = False
    skipped_rules: int = 0

    @property
    def written(self) -> bool:
        """Whether the tree now holds what was rendered."""
        return self.current or (self.plan is not None and not self.plan.refused and not self.report.failed)


@dataclass(frozen=True, slots=True)
class Checking:
    """What a check came to.

    `passed_over` documents are no Kubernetes objects or are templates, `unknown` objects are of kinds without a schema,
    `skipped_rules` are CEL rules that no engine here evaluates.
    """

    report: Report
    objects: int
    files: int
    passed_over: int
    skipped_rules: list[str]
    unknown: int


def render_platform(
    root: Path,
    out: Path,
    *,
    clusters: Sequence[str] = (),
    check_only: bool = False,
    overwrite: bool = False,
) -> Rendering:
    """Render the platform at `root` into the tree at `out`.

    `clusters` limits the run to some clusters; everything of the others stays. With `check_only` nothing is written.
    Nothing is written either when any finding fails: the old tree stays whole.

    Raises UsageError for a wrong call and EnvironmentLacks when the disk does not let the tree be written.
    """
    from blueprint.render.templates import Templates

    pack, templates = SchemaPack.shipped(), Templates(_template_folders(root))
    made = _made(root, pack, templates)
    if not clusters and (rows := _unchanged(out, made)) is not None:
        return Rendering(Report(), rows, current=True)

    from blueprint.render.platform import render
    from blueprint.spec.load import load

    loaded = load(root)
    findings = [*loaded.findings, *templates.check()]
    if Report.of(findings).failed:
        return Rendering(Report.of(findings))
    known = {document.model.metadata.name: document for document in loaded.platform.clusters}
    for cluster in clusters:
        if cluster not in known:
            raise UsageError(f"no cluster is called {cluster}", hint=f"clusters here: {', '.join(sorted(known))}")
    rendered: list[RenderedCluster] = []
    skipped = 0
    for cluster in sorted(clusters or known):
        result = render(loaded.platform, known[cluster], templates, pack)
        rendered.append(result)
        found, missed = _validated(result, pack)
        findings += [*result.findings, *found]
        skipped += missed
    report = Report.of(findings)
    rows = [row for result in rendered for row in _rows(result)]
    if report.failed:
        return Rendering(report, rows, skipped_rules=skipped)
    files = {path: data for result in rendered for path, data in result.contents().items()}
    parts = {result.name: made for result in rendered}
    partial = bool(clusters)
    if check_only:
        planned = plan(out, files, parts, partial=partial, overwrite=overwrite)
    else:
        planned = write(out, files, parts, partial=partial, overwrite=overwrite)
    return Rendering(Report.of([*findings, *planned.findings]), rows, planned, skipped_rules=skipped)


def check_paths(paths: Sequence[Path | str]) -> Checking:
    """Read YAML and JSON below the paths ("-" is the standard input) and judge every object."""
    from blueprint.check import validate
    from blueprint.check.locate import located
    from blueprint.check.read import read

    reading = read(paths)
    outcome = validate(reading.manifests, SchemaPack.shipped())
    counts = reading.counts
    return Checking(
        Report.of([*reading.findings, *located(outcome.findings)]),
        objects=outcome.objects,
        files=counts.files,
        passed_over=counts.foreign + counts.templates,
        skipped_rules=sorted({str(rule) for rule in outcome.skipped}),
        unknown=outcome.unknown,
    )


def _made(root: Path, pack: SchemaPack, templates: Templates) -> Made:
    """Digests of everything that decides the tree: specs, templates, schema pack, and this version."""
    inputs = hashlib.sha256()
    for name, data in contents(root):
        body = data if isinstance(data, bytes) else repr(data).encode()
        inputs.update(f"{name}\0{len(body)}\0".encode() + body)
    return Made(__version__, f"sha256:{inputs.hexdigest()}", _prefixed(pack.digest()), f"sha256:{templates.digest()}")


def _prefixed(digest: str) -> str:
    return digest if digest.startswith("sha256:") else f"sha256:{digest}"


def _template_folders(root: Path) -> list[Path]:
    from blueprint.render.templates import shipped_folder

    own = root / TEMPLATES_FOLDER
    return [own] if own.is_dir() and own.resolve() != shipped_folder().resolve() else []


def _unchanged(out: Path, made: Made) -> list[ApplicationRow] | None:
    """The rows of the table if the tree was made from the same inputs and is untouched, else None."""
    from blueprint.tree import verify

    path = out / LOCK_NAME
    if out.is_symlink() or path.is_symlink() or not path.is_file():
        return None
    lock, findings = parse_lock(path.read_bytes(), str(path))
    if findings or not lock.clusters or any(part.made != made for part in lock.clusters.values()):
        return None
    if verify(out):
        return None
    return list(_locked_rows(lock))


def _locked_rows(lock: Lock) -> Iterator[ApplicationRow]:
    for cluster, part in sorted(lock.clusters.items()):
        counts = Counter(path.split("/")[1] for path in part.files)
        for application, objects in sorted(counts.items()):
            yield ApplicationRow(cluster, application, objects, None, None)


def _rows(result: RenderedCluster) -> Iterator[ApplicationRow]:
    counts = Counter(file.application for file in result.files)
    for application in result.applications:
        yield ApplicationRow(
            result.name, application.name, counts.pop(application.name, 0), application.wave, len(application.waves)
        )
    for folder, objects in sorted(counts.items()):
        yield ApplicationRow(result.name, folder, objects, None, None)


def _validated(result: RenderedCluster, pack: SchemaPack) -> tuple[list[Finding], int]:
    from blueprint.check import validate

    outcome = validate([file.manifest for file in result.files], pack)
    return outcome.findings, len(outcome.skipped)
