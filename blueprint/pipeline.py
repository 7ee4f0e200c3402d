"""The verbs as functions: specs → objects → checks → tree, each step once, in one direction."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml_rs

from blueprint import __version__
from blueprint.catalog.schemas import SchemaPack
from blueprint.errors import UsageError
from blueprint.finding import Finding, Report, Severity, Source
from blueprint.halves import each
from blueprint.objects import Manifest
from blueprint.report import Application, Totals
from blueprint.spec.files import FOLDERS, IMAGES_LOCK, inputs, whole
from blueprint.tree import Made, Plan, plan, tidy, verify, write
from blueprint.tree.lock import NAME as LOCK_NAME
from blueprint.tree.lock import parse as parse_lock
from blueprint.tree.told import keep, recall

if TYPE_CHECKING:
    from blueprint.render.platform import RenderedCluster, RenderedFile
    from blueprint.render.templates import Templates
    from blueprint.spec import Cluster, Document, Platform

#: Where a platform keeps templates that override ours.
TEMPLATES_FOLDER = "templates"

#: Folders of a cluster that Argo CD's own objects are in.
_ARGOCD = frozenset({"argocd", "bootstrap"})

#: Specs times clusters from which a second process is worth its start.
_MANY = 400
NOTHING = Totals()
_NO_OBJECTS = "/node-files/"
"""Where a tree holds files that are no objects."""

_SEPARATOR = re.compile(rb"^---.*$", re.MULTILINE)
_CONTENT = re.compile(rb"^[ \t]*[^\s#]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a rendering came to.

    `current`: the tree was made from these very inputs and is untouched. Nothing was rendered, and the report is that
    of before. `plan` is None then, and when findings kept it from being compared with the tree. `skipped_rules` are CEL
    rules of CRDs that no engine here evaluates.
    """

    report: Report
    totals: Totals = NOTHING
    applications: tuple[Application, ...] = ()
    plan: Plan | None = None
    current: bool = False
    skipped_rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checking:
    """What a check came to.

    `passed_over` documents are no Kubernetes objects, `doubtful` objects have placeholders, `unknown` objects are of
    kinds without a schema, `skipped_rules` are CEL rules that no engine here evaluates. `outdated` entries of the
    baseline are about findings that are gone.
    """

    report: Report
    totals: Totals
    passed_over: int
    doubtful: int
    unknown: int
    skipped_rules: tuple[str, ...]
    outdated: int = 0


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

    _apart(root, out)
    if not check_only:
        tidy(out)  # a run that was killed left things, and this one may have nothing to write
    pack, templates = SchemaPack.shipped(), Templates(_template_folders(root))
    made, specs, declared = _made(root, pack, templates)
    told = recall(made, clusters) if declared.issuperset(clusters) else None
    if told is not None and (totals := _unchanged(out, made, specs, declared, set(clusters))) is not None:
        return Rendering(Report.of(told), totals, current=True)

    from blueprint.render.platform import clashes
    from blueprint.spec.load import load
    from blueprint.spec.nearest import nearest

    loaded = load(root)
    findings = [*loaded.findings, *templates.check(ours=False), *templates.unused()]
    if Report.of(findings).failed:
        return Rendering(Report.of(findings), specs)
    known = {document.model.metadata.name: document for document in loaded.platform.clusters}
    for cluster in clusters:
        if cluster not in known:
            near = nearest(cluster, known)
            hint = f"did you mean {near}?" if near else f"clusters here: {', '.join(sorted(known))}"
            raise UsageError(f"no cluster is called {cluster!r}", hint=hint)
    chosen = [known[cluster] for cluster in sorted(set(clusters) or known)]
    large = specs.documents * len(chosen) > _MANY
    parts = each(lambda document: _part(loaded.platform, document, templates, pack), chosen, together=large)
    # A template that failed for one cluster would fail for the others, too: it is told once.
    parts = next(([part] for part in parts if not part.contents), parts)
    findings += clashes([part.argocd for part in parts], loaded.platform)
    findings += _once([(part.argocd.name, finding) for part in parts for finding in part.findings])
    skipped = tuple(sorted({rule for part in parts for rule in part.skipped}))
    report = Report.of(findings)
    totals = replace(specs, objects=sum(part.objects for part in parts), clusters=len(parts))
    applications = tuple(row for part in parts for row in part.rows)
    if report.failed:
        return Rendering(report, totals, applications, skipped_rules=skipped)
    files = {path: data for part in parts for path, data in part.contents.items()}
    keep(made, clusters, report.findings)
    run = plan if check_only else write
    planned = run(
        out,
        files,
        dict.fromkeys((part.argocd.name for part in parts), made),
        partial=bool(clusters),
        overwrite=overwrite,
    )
    if not check_only and not planned.changes:
        with suppress(OSError):
            os.utime(out / LOCK_NAME)  # seen to be right: the next run need not look at our own files again
    findings += planned.findings
    return Rendering(Report.of(findings), totals, applications, planned, skipped_rules=skipped)


@dataclass(frozen=True, slots=True)
class _Part:
    """One cluster, rendered and judged. `argocd` holds of its files only what Argo CD itself is told."""

    argocd: RenderedCluster
    objects: int
    rows: tuple[Application, ...]
    findings: list[Finding]
    skipped: set[str]
    contents: dict[str, bytes]


def _part(platform: Platform, document: Document[Cluster], templates: Templates, pack: SchemaPack) -> _Part:
    from blueprint.check import validate
    from blueprint.render.platform import render

    result = render(platform, document, templates, pack)
    outcome = validate(_as_committed(result, platform), pack)
    return _Part(
        replace(result, files=tuple(f for f in result.files if f.application in _ARGOCD), plain={}, findings=()),
        len(result.files),
        tuple(_rows(result)),
        [*result.findings, *_in_specs(outcome.findings, result, platform, templates)],
        {str(rule) for rule in outcome.skipped},
        result.contents(),
    )


def _once(found: Sequence[tuple[str, Finding]]) -> Iterator[Finding]:
    """The findings of all clusters: what several of them say of one place in the same words is said once."""
    by_place: dict[tuple[object, ...], list[tuple[str, Finding]]] = {}
    for cluster, finding in found:
        words = finding.message.replace(cluster, "")
        key = (finding.code, finding.severity, finding.source, finding.path, words)
        by_place.setdefault(key, []).append((cluster, finding))
    for same in by_place.values():
        (first, finding), others = same[0], sorted({cluster for cluster, _ in same} - {same[0][0]})
        named = others and first in finding.message
        yield replace(finding, message=f"{finding.message}; the same on {', '.join(others)}") if named else finding


def _as_committed(result: RenderedCluster, platform: Platform) -> list[Manifest]:
    """The objects at the paths that they will have in Git: which folder holds an object decides what Argo CD does."""
    return [Manifest(file.manifest.body, Source(_path(file, platform), 1, 1)) for file in result.files]


def _in_specs(
    findings: list[Finding], result: RenderedCluster, platform: Platform, templates: Templates
) -> Iterator[Finding]:
    """The findings with the place in the specs that caused the object, and the user's template that shaped it.

    Notes are for whoever checks the tree.
    """
    caused = {_path(file, platform): file.manifest.source for file in result.files}
    inner = {(finding.object, _around(finding.path)) for finding in findings}
    told = {finding.source.file for finding in result.findings if finding.code == "POL102" and finding.source}
    for finding in findings:
        # What is wrong with the CEL of a policy was said at the line of the expression.
        cause = caused.get(finding.source.file) if finding.source else None
        if finding.code == "NAT603" and cause and cause.file in told:
            continue
        # Of a field and what is around it, the field says more: a path mounted twice is an item given twice, too.
        if finding.severity is not Severity.NOTE and (not finding.path or (finding.object, finding.path) not in inner):
            place = cause or finding.source
            own = templates.override(finding.object.kind) if finding.object else ""
            message = f"{finding.message} (made from {own})" if own else finding.message
            yield replace(finding, source=place, message=message)


def _around(path: str) -> str:
    """What a field is in: `spec.volumes[2]` of `spec.volumes[2].name`."""
    return path.rpartition(".")[0]


def _path(file: RenderedFile, platform: Platform) -> str:
    return f"{platform.deliveries[0].model.spec.repository.path}/{file.path}"


def check_paths(
    paths: Sequence[Path | str],
    *,
    config: Path | None = None,
    rev: str | None = None,
    build: bool = True,
    closed: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    baseline: Path | None = None,
    write_baseline: bool = False,
) -> Checking:
    """Read YAML and JSON below the paths ("-" is the standard input) and judge every object.

    `config` is the configuration (by default blueprint.yaml where it is found). `rev` reads a revision of Git, `build`
    builds Kustomize roots and Helm charts, `closed` says that nothing is missing in the tree. Of the findings only
    those count whose codes `select` begins, and `ignore` does not, and which are not in the `baseline`; with
    `write_baseline` that file is written, and all of them are known.

    Raises UsageError for a wrong call or configuration, and where no document is: a check of nothing is no approval.
    """
    from blueprint.check import baseline as known
    from blueprint.check.config import EVERY_KIND, Config, codes, find, load
    from blueprint.check.run import check

    names = [str(path) for path in paths]
    place = config or find(names)
    setup = load(place) if place else Config()
    if closed:
        setup = setup.model_copy(update={"closed": (EVERY_KIND,)})
    try:
        selected, ignored = codes(select), codes(ignore)
    except ValueError as error:
        message, _, hint = str(error).partition("; ")
        raise UsageError(message, hint=hint) from None
    file = baseline or (Path(setup.baseline) if setup.baseline else None)
    if write_baseline and file is None:
        raise UsageError("no file for the baseline", hint="name it with --baseline FILE")
    done = check(names, setup, rev=rev, build=build, select=selected, ignore=ignored)
    findings, outdated = done.findings, 0
    if file is not None and write_baseline:
        known.save(file, findings)
        findings = []
    elif file is not None:
        entries = known.load(file)
        findings = known.new(done.findings, entries)
        outdated = len(entries) - (len(done.findings) - len(findings))
    counts = done.counts
    if not (counts.documents or counts.unreadable or done.findings or done.silenced):
        asked = ", ".join(names)
        hint = "folders are searched for .yaml, .yml and .json, but not hidden ones"
        raise UsageError("nothing to check: no document is there", where=asked, hint=hint)
    if not counts.documents and counts.unreadable:
        # Nothing was read at all: what is a remark beside other files is the whole answer here.
        findings = [replace(finding, severity=Severity.ERROR) for finding in findings]
    return Checking(
        Report(findings),
        Totals(
            objects=done.objects,
            silenced=done.silenced + len(done.findings) - len(findings),
            files=counts.files,
            documents=counts.documents,
            skipped=counts.foreign + counts.templates + counts.unreadable,
        ),
        passed_over=counts.foreign + counts.templates,
        doubtful=counts.doubtful,
        unknown=done.unknown,
        skipped_rules=done.skipped_rules,
        outdated=outdated,
    )


def _apart(root: Path, out: Path) -> None:
    """Refuse a tree among the specs, which the next run would read as specs, and one that is no place for a tree.

    A run exchanges the folder of the tree as a whole: nobody else's work may be in it.
    """
    place, top = os.path.realpath(out), os.path.realpath(root)
    specs = [os.path.realpath(Path(top, folder)) for folder in (*FOLDERS, TEMPLATES_FOLDER)]
    if place == top or any(place == folder or place.startswith(f"{folder}{os.sep}") for folder in specs):
        raise UsageError("the tree would lie among the specs", where=str(out), hint="give it a folder of its own")
    if top.startswith(place.rstrip(os.sep) + os.sep):
        raise UsageError("the tree would hold the platform itself", where=str(out), hint="give it a folder of its own")
    if around := next((folder for folder in Path(place).parents if (folder / LOCK_NAME).is_file()), None):
        raise UsageError(f"the tree would lie in another tree, {around}", where=str(out), hint="give it another folder")
    if ".git" in Path(place).parts:
        raise UsageError("the tree would lie in Git's own folder", where=str(out), hint="give it a folder of its own")


def _made(root: Path, pack: SchemaPack, templates: Templates) -> tuple[Made, Totals, set[str]]:
    """Digests of all that decides the tree (specs, images.lock, templates, schema pack, this version), how many specs
    there are, and the clusters among them.
    """
    files = documents = 0
    clusters: set[str] = set()
    read = list(whole(root))
    for name, data in read:
        files += name != IMAGES_LOCK
        if isinstance(data, bytes):
            parts = _SEPARATOR.split(data)
            documents += sum(_CONTENT.search(part) is not None for part in parts)
            clusters.update(filter(None, (_cluster(part) for part in parts if b"Cluster" in part)))
    made = Made(__version__, inputs(read), _prefixed(pack.digest()), f"sha256:{templates.digest()}")
    return made, Totals(files=files, documents=documents), clusters


def _cluster(document: bytes) -> str | None:
    """The name of the Cluster that a document is, None where it is none; only asked of specs that were rendered."""
    try:
        spec: Any = yaml_rs.loads(document.decode("utf-8-sig"), parse_datetime=False)
        return str(spec["metadata"]["name"]) if spec["kind"] == "Cluster" else None
    except (ValueError, KeyError, TypeError):
        return None


def _prefixed(digest: str) -> str:
    return digest if digest.startswith("sha256:") else f"sha256:{digest}"


def _template_folders(root: Path) -> list[Path]:
    from blueprint.render.templates import shipped_folder

    own = root / TEMPLATES_FOLDER
    if os.path.lexists(own) and not own.is_dir():
        message = "a link to nowhere" if own.is_symlink() else "no folder"
        raise UsageError(
            f"{TEMPLATES_FOLDER} is {message}", where=str(root), hint="your own templates are looked for there"
        )
    return [own] if own.is_dir() and own.resolve() != shipped_folder().resolve() else []


def _edited_since(moment: int) -> bool:
    """Whether this is a source checkout with a file newer than the moment (ns): its version tells nothing."""
    package = Path(__file__).parent
    if (package / "_data").is_dir():
        return False
    return any(path.stat().st_mtime_ns > moment for path in package.rglob("*") if path.suffix not in ("", ".pyc"))


def _unchanged(out: Path, made: Made, specs: Totals, declared: set[str], chosen: set[str]) -> Totals | None:
    """What the tree holds if it was made from the same inputs, for every cluster, and is untouched, else None.

    Where only some clusters are `chosen`, the others may be older; what the tree holds for them is not asked of it.
    """
    path = out / LOCK_NAME
    if out.is_symlink() or path.is_symlink() or not path.is_file():
        return None
    if _edited_since(path.stat().st_mtime_ns):
        return None
    lock, findings = parse_lock(path.read_bytes(), str(path))
    wanted = {name: part for name, part in lock.clusters.items() if not chosen or name in chosen}
    if findings or wanted.keys() != (chosen or declared) or any(part.made != made for part in wanted.values()):
        return None
    objects = sum(_NO_OBJECTS not in file for part in wanted.values() for file in part.files)
    return None if verify(out) else replace(specs, objects=objects, clusters=len(wanted))


def _rows(result: RenderedCluster) -> Iterator[Application]:
    counts = Counter(file.application for file in result.files)
    for application in result.applications:
        yield Application(result.name, application.name, counts.pop(application.name), len(application.waves))
    for folder, objects in sorted(counts.items()):
        waves = len({application.wave for application in result.applications}) if folder == "argocd" else 1
        yield Application(result.name, folder, objects, waves)
