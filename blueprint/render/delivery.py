"""Argo CD: the project, one Application for each part of the plan, the root above them, and what Argo CD must know.

Two folders come out. `argocd/` is what the root Application syncs: the project, the Applications in waves and, where
the cluster runs its own Argo CD, the entries of argocd-cm. `bootstrap/` is what a person applies once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from blueprint.catalog.schemas import SchemaPack
from blueprint.objects import Manifest
from blueprint.render import health
from blueprint.render.drift import Ignored
from blueprint.render.names import name
from blueprint.render.order import Application, Placed
from blueprint.render.site import MANAGED_BY, Site

#: The address by which an Argo CD reaches the cluster that it runs in.
IN_CLUSTER = "https://kubernetes.default.svc"

ROOT_FOLDER = "argocd"
BOOTSTRAP_FOLDER = "bootstrap"

#: Applications of this kind are synced by hand: a run is submitted once (ADR 5).
_BY_HAND = "runs-"


def has_own_argocd(site: Site) -> bool:
    """Whether the cluster's Argo CD runs in the cluster itself."""
    return site.cluster.spec.server == IN_CLUSTER


def application_name(site: Site, application: str) -> str:
    """The name of an Application: with the cluster's where one Argo CD serves several."""
    return name("Application", application) if has_own_argocd(site) else name("Application", site.name, application)


def project_name(site: Site) -> str:
    """The AppProject of the cluster's Applications."""
    project = site.delivery.model.spec.project
    return name("AppProject", project) if has_own_argocd(site) else name("AppProject", project, site.name)


def root_objects(
    site: Site,
    applications: Sequence[Application],
    placed: Iterable[Placed],
    ignored: Mapping[str, Ignored],
    pack: SchemaPack,
) -> Iterator[Manifest]:
    """What the root syncs: project, Applications, and argocd-cm where it is this cluster's."""
    yield _project(site, list(placed), pack)
    for application in applications:
        yield _child(site, application, ignored[application.name])
    if has_own_argocd(site):
        yield argocd_cm(site)


def bootstrap_objects(site: Site) -> Iterator[Manifest]:
    """What a person applies once: the root's project and the root; argocd-cm where Argo CD serves several clusters."""
    spec = site.delivery.model.spec
    root = name("AppProject", project_name(site), "root")
    kinds = [("argoproj.io", "AppProject"), ("argoproj.io", "Application")]
    # argocd-cm is in the root's folder only where it is this cluster's.
    kinds += [("", "ConfigMap")] if has_own_argocd(site) else []
    yield _render(
        site,
        "AppProject",
        name=root,
        namespace=spec.namespace,
        labels=MANAGED_BY,
        description=f"The root Application of {site.name}: projects and Applications, nothing else.",
        repository=spec.repository.url,
        integrity=_integrity(site),
        destinations=[{"server": IN_CLUSTER, "namespace": spec.namespace}],
        cluster_kinds=[],
        namespaced_kinds=[{"group": group, "kind": kind} for group, kind in kinds],
    )
    yield _application(
        site,
        title=application_name(site, "root"),
        project=root,
        folder=ROOT_FOLDER,
        destination={"server": IN_CLUSTER, "namespace": spec.namespace},
    )
    if not has_own_argocd(site):
        yield argocd_cm(site)
    if spec.flux:
        yield _render(
            site,
            "GitRepository",
            name=name("GitRepository", spec.project),
            namespace=spec.flux.namespace,
            labels=MANAGED_BY,
            repository=spec.repository.url,
            revision=spec.repository.branch(site.name, site.cluster.spec.environment),
            secret=spec.flux.secret,
        )


def argocd_cm(site: Site) -> Manifest:
    """Our entries of Argo CD's ConfigMap; server-side apply leaves those of others alone."""
    return _render(
        site,
        "ConfigMap",
        name="argocd-cm",
        namespace=site.delivery.model.spec.namespace,
        labels={**MANAGED_BY, "app.kubernetes.io/part-of": "argocd"},
        annotations={"argocd.argoproj.io/sync-options": "ServerSideApply=true,Prune=false"},
        data=health.argocd_cm(),
    )


def _render(site: Site, template: str, **values: Any) -> Manifest:  # noqa: ANN401 - what the template asks for
    source = site.delivery.source
    return Manifest(site.templates.render(template, source=source, **values), source)


def _project(site: Site, placed: list[Placed], pack: SchemaPack) -> Manifest:
    """The project allows exactly the kinds and namespaces that the plan holds."""
    cluster_wide: set[tuple[str, str]] = set()
    namespaced: set[tuple[str, str]] = set()
    namespaces: set[str] = set()
    for one in placed:
        manifest, ref = one.item.manifest, one.item.manifest.ref
        kind = pack.kind(manifest.api_version, manifest.kind)
        if (kind is not None and kind.scope == "Namespaced") or (kind is None and ref.namespace):
            namespaced.add((ref.group, ref.kind))
            namespaces.add(ref.namespace)
        else:
            cluster_wide.add((ref.group, ref.kind))
    spec, server = site.delivery.model.spec, site.cluster.spec.server
    return _render(
        site,
        "AppProject",
        name=project_name(site),
        namespace=spec.namespace,
        labels=MANAGED_BY,
        description=f"Everything that blueprint renders for {site.name}.",
        repository=spec.repository.url,
        integrity=_integrity(site),
        # The empty one is that of the Applications themselves, which name none: without it Argo CD refuses them all
        # (argo-cd v3.6.1 app_project_types.go isDestinationMatched). It lets no object in: each has its own namespace.
        destinations=[{"server": server, "namespace": namespace} for namespace in ("", *sorted(namespaces))],
        cluster_kinds=[{"group": group, "kind": kind} for group, kind in sorted(cluster_wide)],
        namespaced_kinds=[{"group": group, "kind": kind} for group, kind in sorted(namespaced)],
    )


def _integrity(site: Site) -> dict[str, Any] | None:
    """Every commit of every repository must be signed; one that no policy takes would not be verified at all.

    `strict` looks at all ancestors, `head` at the last commit only; keys are named by their last 16 digits
    (argo-cd v3.6.1 util/sourceintegrity/source_integrity.go).
    """
    keys = sorted({key[-16:] for key in site.delivery.model.spec.signing_keys})
    gpg = {"mode": "strict", "keys": keys}
    return {"git": {"policies": [{"repos": [{"url": "*"}], "gpg": gpg}]}} if keys else None


def _child(site: Site, application: Application, ignored: Ignored) -> Manifest:
    return _application(
        site,
        title=application_name(site, application.name),
        project=project_name(site),
        folder=application.name,
        destination={"server": site.cluster.spec.server},
        wave=application.wave,
        automated=not application.name.startswith(_BY_HAND),
        ignored=ignored,
    )


def _application(
    site: Site,
    *,
    title: str,
    project: str,
    folder: str,
    destination: dict[str, str],
    wave: int = 0,
    automated: bool = True,
    ignored: Ignored | None = None,
) -> Manifest:
    spec = site.delivery.model.spec
    options = ["ServerSideApply=true", "FailOnSharedResource=true"]
    if ignored and ignored.respect:
        options.append("RespectIgnoreDifferences=true")
    return _render(
        site,
        "Application",
        name=title,
        namespace=spec.namespace,
        labels={**MANAGED_BY, "platform.blueprint/cluster": site.name},
        wave=str(wave) if wave else None,
        project=project,
        repository=spec.repository.url,
        revision=spec.repository.branch(site.name, site.cluster.spec.environment),
        path=f"{spec.repository.path}/{site.name}/{folder}",
        destination=destination,
        plugin=spec.plugin,
        automated=automated and spec.automated,
        options=options,
        ignored=list(ignored.entries) if ignored else [],
    )
