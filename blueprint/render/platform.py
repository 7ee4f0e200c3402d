"""A whole platform: specs in, the objects and files of each cluster out, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from blueprint.catalog.schemas import SchemaPack
from blueprint.finding import Finding, Ref
from blueprint.objects import Manifest
from blueprint.render import (
    audit,
    backup,
    delivery,
    gate_service,
    health,
    nodes,
    observability,
    policies,
    queues,
    serving,
    storage,
    tenancy,
    training,
    versions,
)
from blueprint.render.drift import ignored, with_drift
from blueprint.render.emit import emit
from blueprint.render.names import file_names
from blueprint.render.options import annotated
from blueprint.render.order import Application, order
from blueprint.render.outside import outside
from blueprint.render.plan import Item
from blueprint.render.site import Site
from blueprint.render.templates import TemplateProblem, Templates
from blueprint.spec import Cluster, Document, Platform

Family = Callable[[Site], Iterator[Item]]

#: Every family of objects; the order of this list does not matter.
FAMILIES: tuple[Family, ...] = (
    backup.items,
    gate_service.items,
    observability.items,
    policies.items,
    queues.items,
    serving.items,
    tenancy.items,
    training.items,
)

#: Files of a cluster that are no objects, as path below its folder and text: Argo CD never looks at them.
FILES: tuple[Callable[[Site], Iterator[tuple[str, str]]], ...] = (audit.files, nodes.files)

#: What every cluster puts into its Argo CD.
_ARGOCD = frozenset({"Application", "AppProject"})


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """One object and its place below the root of the tree."""

    path: str
    application: str
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class RenderedCluster:
    """One cluster's part of the tree: its objects, its Applications in order, and files that are no objects."""

    name: str
    files: tuple[RenderedFile, ...] = ()
    applications: tuple[Application, ...] = ()
    plain: dict[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def contents(self) -> dict[str, bytes]:
        """Path below the root of the tree → bytes."""
        written = {file.path: emit(file.manifest.body).encode() for file in self.files}
        return written | {path: text.encode() for path, text in self.plain.items()}


def render(platform: Platform, document: Document[Cluster], templates: Templates, pack: SchemaPack) -> RenderedCluster:
    """Render one cluster. What is wrong is in `findings`; an object that cannot be rendered is left out."""
    cluster = document.model.metadata.name
    site = Site(platform, document, platform.deliveries[0], templates)
    findings: list[Finding] = []
    items = with_drift(_collect(site, findings))
    if findings:
        # A template failed: whatever needs its objects would be blamed for their absence.
        return RenderedCluster(cluster, findings=tuple(findings))
    findings += storage.findings(items, platform.teams)
    findings += [*site.problems, *versions.findings(site), *nodes.findings(site)]
    ordered = order(items, health.gates(), outside(site))
    findings += ordered.findings
    folders: dict[str, list[Manifest]] = {application.name: [] for application in ordered.applications}
    held: dict[str, list[Item]] = {application.name: [] for application in ordered.applications}
    for placed in ordered.items:
        held[placed.application].append(placed.item)
        folders[placed.application].append(annotated(placed.item.manifest, placed.wave, placed.item.drift))
    plain: dict[str, str] = {}
    differences = {application: ignored(inside) for application, inside in held.items()}
    findings += [finding for difference in differences.values() for finding in difference.findings]
    try:
        folders[delivery.ROOT_FOLDER] = list(
            delivery.root_objects(site, ordered.applications, ordered.items, differences, pack)
        )
        folders[delivery.BOOTSTRAP_FOLDER] = list(delivery.bootstrap_objects(site))
        plain = {f"{cluster}/{path}": text for files in FILES for path, text in files(site)}
    except TemplateProblem as problem:
        findings.append(problem.finding)
    files = [file for folder, manifests in folders.items() for file in _files(cluster, folder, manifests)]
    return RenderedCluster(
        cluster,
        tuple(sorted(files, key=lambda file: file.path)),
        ordered.applications,
        plain,
        findings=tuple(dict.fromkeys(findings)),
    )


def clashes(rendered: Sequence[RenderedCluster], platform: Platform) -> Iterator[Finding]:
    """REF104: two clusters whose Applications or projects would be one object in the Argo CD that serves both.

    Names are the cluster's and the Application's, joined with `-`: of `a` and `a-team`, both can make `a-team-team-b`.
    """
    documents = {document.model.metadata.name: document for document in platform.clusters}
    owners: dict[Ref, str] = {}
    for result in rendered:
        document = documents[result.name]
        for ref in sorted({file.manifest.ref for file in result.files if file.manifest.kind in _ARGOCD}):
            first = owners.setdefault(ref, result.name)
            # Each cluster with an Argo CD of its own has names of its own.
            if first != result.name and not all(_own(documents[one]) for one in (first, result.name)):
                message = f"{ref} would belong to {first} and to {result.name}: one Argo CD serves both"
                at, fix = document.locate("metadata.name"), "give the cluster or the team another name"
                yield Finding("REF104", message, at, object=ref, path="metadata.name", fix=fix)


def _own(document: Document[Cluster]) -> bool:
    return document.model.spec.server == delivery.IN_CLUSTER


def _collect(site: Site, findings: list[Finding]) -> Sequence[Item]:
    items: list[Item] = []
    for family in FAMILIES:
        try:
            items += family(site)
        except TemplateProblem as problem:
            findings.append(problem.finding)
    return items


def _files(cluster: str, folder: str, manifests: Sequence[Manifest]) -> Iterator[RenderedFile]:
    names = file_names(manifest.ref for manifest in manifests)
    for manifest in manifests:
        yield RenderedFile(f"{cluster}/{folder}/{names[manifest.ref]}", folder, manifest)
