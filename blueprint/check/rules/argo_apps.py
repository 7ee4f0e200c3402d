"""Argo CD's Applications and AppProjects: whether an Application can be used, and whether its project lets it.

Sources: argo-cd v3.6.1 util/argo/argo.go (ValidatePermissions, validateSourcePermissions, GetDestinationServer),
pkg/apis/application/v1alpha1/app_project_types.go (IsSourcePermitted, isDestinationMatched, IsGroupKindNamePermitted).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any

from blueprint.catalog.argocd import is_excluded
from blueprint.check.applications import APPLICATION, PROJECT, Application, applications, config, templates
from blueprint.check.globs import glob
from blueprint.check.graph import Graph
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import Body, items, known, mapping, maps, placeholder, text
from blueprint.finding import Finding
from blueprint.objects import Manifest

_OF_SPEC = ("project", "source", "sources", "destination", "syncPolicy", "ignoreDifferences", "sourceHydrator")
_HERE = ("https://kubernetes.default.svc", "in-cluster")


def misplaced_fields(graph: Graph) -> Iterator[Finding]:
    """ARG101: fields of an Application's spec that stand beside it are dropped."""
    for manifest in graph.kind(APPLICATION):
        for name in _OF_SPEC:
            if name in manifest.body:
                message = f"`{name}` stands beside spec; Argo CD reads it only inside"
                yield say("ARG101", manifest, message, name, f"indent `{name}` below spec")


def incomplete_sources(graph: Graph) -> Iterator[Finding]:
    """ARG102: Argo CD refuses a spec without a source, or a source without what to read from it."""
    for application in applications(graph):
        manifest, sources = application.manifest, application.sources
        if not sources:
            yield say("ARG102", manifest, "there is neither source nor sources", "spec", "say where the manifests are")
        for source in sources:
            body = source.body
            several = "sources" in application.spec
            if not body.get("repoURL"):
                yield say("ARG102", manifest, "a source has no repoURL", source.at, "name the repository")
            elif not (body.get("path") or body.get("chart") or (several and body.get("ref"))):
                what = "path, chart or ref" if several else "path or chart"
                yield say("ARG102", manifest, f"a source has no {what}", source.at, f"give it a {what}")
            elif body.get("chart") and not body.get("targetRevision"):
                fix = "give the version of the chart"
                yield say("ARG102", manifest, "a chart needs a targetRevision", source.at, fix)
            elif body.get("chart") and body.get("path"):
                message = f"Argo CD takes the chart {body['chart']} from {body['repoURL']}, and the path is not read"
                yield warn("ARG102", manifest, message, f"{source.at}.path", "leave out the chart, or the path")


def placeholders_left(graph: Graph) -> Iterator[Finding]:
    """ARG103: a placeholder in an Application that Argo CD reads from a plain folder, where nothing fills it in."""
    for application in applications(graph):
        if not _read_as_it_is(graph, application.manifest):
            continue
        places = {f"{source.at}.{key}": source.body.get(key) for source in application.sources for key in _FILLED}
        places |= {f"spec.destination.{key}": value for key, value in application.destination.items()}
        places |= {f"sources[{n}].repoURL": b.get("repoURL") for n, b in enumerate(maps(_beside(application)))}
        for path, value in places.items():
            if placeholder(value):
                message = f"{value} is a placeholder: Argo CD fills them in only in ApplicationSets"
                yield warn("ARG103", application.manifest, message, path, "render the value")


def _read_as_it_is(graph: Graph, manifest: Manifest) -> bool:
    """Whether an Application of the tree reads the file of an object as a plain one, so that no tool comes before."""
    owners = graph.deliveries.owners.get(id(manifest), ())
    plain = bool(owners) and all(source.plain for owner in owners for source in owner.sources)
    return plain and "templates" not in PurePosixPath(manifest.source.file).parts


_FILLED = ("repoURL", "path", "chart", "targetRevision")


def _beside(application: Application) -> object:
    return application.manifest.body.get("sources")


def oci_sources(graph: Graph) -> Iterator[Finding]:
    """ARG104: an oci:// source is one artifact; a chart or folder beside it does not choose another."""
    for application in [*applications(graph), *(template for _, _, template in templates(graph))]:
        for source in application.sources:
            url = known(source.body.get("repoURL"))
            if not url.startswith("oci://"):
                continue
            for key in ("chart", "path"):
                name = known(source.body.get(key)).strip("/")
                if not name or name in (".", "..") or (url.endswith(f"/{name}") and key == "path"):
                    continue
                version = text(source.body.get("targetRevision")) or "latest"
                message = f"Argo CD reads the artifact {url.removeprefix('oci://')}:{version}" + (
                    f" and in it the folder {name}" if key == "path" else f"; the chart {name} is not looked at"
                )
                fix = (
                    f"for the chart {name}: chart: {name} and repoURL: {url.removeprefix('oci://')}, without oci://; "
                    f"for an artifact of its own: repoURL: {url.rstrip('/')}/{name} and path: ."
                )
                yield warn("ARG104", application.manifest, message, f"{source.at}.{key}", fix)


def destinations(graph: Graph) -> Iterator[Finding]:
    """ARG105: a destination has a server or a name, one of the two."""
    for application in applications(graph):
        manifest, destination = application.manifest, application.destination
        server, name = destination.get("server"), destination.get("name")
        if server and name:
            message = "the destination has both server and name; Argo CD refuses to choose"
            yield say("ARG105", manifest, message, "spec.destination", "keep one of the two")
        elif not server and not name and "spec" in manifest.body:
            message = "the destination names no cluster" if destination else "spec.destination is missing"
            yield say("ARG105", manifest, message, "spec.destination", "give it a server or a name")


def unknown_projects(graph: Graph) -> Iterator[Finding]:
    """ARG106: an Application of a project that is not among those of the tree; `default` comes with Argo CD."""
    projects = {manifest.ref.name for manifest in graph.kind(PROJECT)}
    if not graph.closed(PROJECT):
        return
    for application, at in _with_templates(graph):
        name = known(application.spec.get("project"))
        if name and name != "default" and name not in projects:
            close = get_close_matches(name, projects, 1)
            fix = f"did you mean {close[0]}?" if close else "add the project, or name another"
            yield say("ARG106", application.manifest, f"there is no AppProject {name}", f"{at}.project", fix)


def _with_templates(graph: Graph) -> Iterator[tuple[Application, str]]:
    """Every Application, and what an ApplicationSet makes many of, each with the place of its spec."""
    yield from ((application, "spec") for application in applications(graph))
    yield from ((application, "spec.template.spec") for _, _, application in templates(graph))


def project_denials(graph: Graph) -> Iterator[Finding]:
    """ARG107 to ARG110: the project refuses the repository, the destination, a kind or a namespace."""
    projects = {manifest.ref.name: _Project(mapping(manifest.body.get("spec"))) for manifest in graph.kind(PROJECT)}
    if "globalProjects" in (config(graph) or ()):
        return  # what such projects allow is added to every other
    for application, at in _with_templates(graph):
        project = projects.get(known(application.spec.get("project")))
        if project is not None:
            yield from _repositories(application, project.spec, at)
        if project is not None and at == "spec":
            yield from _destination(application, project)
            yield from _objects(graph, application, project)


def _name(application: Application) -> str:
    return text(application.spec.get("project"))


def _repositories(application: Application, project: Body, at: str) -> Iterator[Finding]:
    allowed = [text(each) for each in items(project.get("sourceRepos"))]
    for source in application.sources:
        if source.repo and not any(placeholder(each) for each in allowed) and not repo_allowed(allowed, source.repo):
            message = f"project {_name(application)} does not allow the repository {source.repo}"
            fix = "add it to sourceRepos of the project"
            path = f"{at}{source.at.removeprefix('spec')}.repoURL"
            yield say("ARG107", application.manifest, message, path, fix)


def repo_allowed(patterns: Sequence[str], repo: str) -> bool:
    """Whether a project's sourceRepos let a repository through; `!` denies."""
    found = False
    for pattern in patterns:
        deny = pattern.startswith("!")
        shape = _same(pattern.removeprefix("!"))
        matches = shape == "*" or glob(shape, _same(repo), "/")
        if deny and matches:
            return False
        found = found or matches is not deny
    return found


def _same(url: str) -> str:
    """A repository's URL as Argo CD compares it (util/git/git.go NormalizeGitURL)."""
    url = url.strip().lower()
    user, at, rest = url.partition("@")
    if at and "/" not in user and "://" not in url:
        url = f"{user}@{rest.replace(':', '/', 1)}"
    return url.removesuffix(".git").removeprefix("ssh://")


class _Project:
    """An AppProject and what was asked of it before: many Applications ask the same."""

    def __init__(self, spec: Body) -> None:
        self.spec = spec
        self._reached: dict[tuple[str, str, str | None], bool] = {}

    def reaches(self, destination: Body, namespace: str | None) -> bool:
        """Whether its destinations allow a cluster and namespace; True where the answer is not known."""
        key = known(destination.get("server")), known(destination.get("name")), namespace
        if key not in self._reached:
            self._reached[key] = _reaches(self.spec, *key)
        return self._reached[key]


def _destination(application: Application, project: _Project) -> Iterator[Finding]:
    if application.cluster and not project.reaches(application.destination, application.namespace or None):
        where = f"namespace {application.namespace} of " if application.namespace else ""
        message = f"project {_name(application)} does not allow {where}{application.cluster}"
        fix = "add it to destinations of the project"
        yield say("ARG108", application.manifest, message, "spec.destination", fix)


def _reaches(project: Body, server: str, name: str, namespace: str | None) -> bool:
    if server in _HERE or name in _HERE:
        server, name = _HERE
    found = False
    for row in maps(project.get("destinations")):
        where = {key: text(row.get(key)) for key in ("server", "name", "namespace")}
        if any(placeholder(value) for value in where.values()):
            return True
        space = namespace is None or _takes(where["namespace"], namespace)
        if (where["server"] and not server) or (where["name"] and not name and not where["server"]):
            if space:
                return True  # the name and the server may be of one cluster; only Argo CD's secrets tell
            continue
        cluster = bool(server and _takes(where["server"], server)) or bool(name and _takes(where["name"], name))
        if cluster and space:
            found = True
        denied = where["server"].startswith("!") or where["name"].startswith("!")
        if not (cluster and space) and ((space and denied) or (cluster and where["namespace"].startswith("!"))):
            return False
    return found


def _takes(pattern: str, value: str) -> bool:
    if pattern.startswith("!"):
        return not glob(pattern[1:], value)
    return pattern == "*" or glob(pattern, value)


def _objects(graph: Graph, application: Application, project: _Project) -> Iterator[Finding]:
    denied: set[tuple[str, str]] = set()
    reached: dict[str, bool] = {}
    permitted: dict[tuple[str, str, str], bool] = {}
    cluster = project.reaches(application.destination, None)
    for manifest in graph.deliveries.objects(application):
        ref = manifest.ref
        resource = graph.resources.kind(ref.group, ref.kind)
        namespaced = resource.namespaced if resource else bool(ref.namespace) or None
        if namespaced is None or placeholder(ref.namespace):
            continue
        key = ref.group, ref.kind, "" if namespaced else ref.name
        if key not in permitted:
            permitted[key] = _permits(project.spec, manifest, namespaced=namespaced)
        if not permitted[key]:
            if (ref.group, ref.kind) not in denied:
                denied.add((ref.group, ref.kind))
                kind = f"{ref.kind}.{ref.group}" if ref.group else ref.kind
                message = f"project {_name(application)} does not allow {kind} (Application {application.name})"
                which = "namespaceResourceWhitelist" if namespaced else "clusterResourceWhitelist"
                yield say("ARG109", manifest, message, "kind", f"add it to {which} of the project")
            continue
        namespace = ref.namespace or application.namespace
        if not (namespaced and namespace and cluster) or namespace in reached:
            continue
        reached[namespace] = project.reaches(application.destination, namespace)
        if not reached[namespace]:
            message = (
                f"project {_name(application)} does not allow the namespace {namespace}; "
                f"Application {application.name} writes to it"
            )
            yield say("ARG110", manifest, message, "metadata.namespace", "add it to destinations of the project")


def _permits(project: Body, manifest: Manifest, *, namespaced: bool) -> bool:
    ref = manifest.ref
    scope = "namespace" if namespaced else "cluster"
    white, black = project.get(f"{scope}ResourceWhitelist"), project.get(f"{scope}ResourceBlacklist")
    # In a namespace everything is allowed that no list speaks of; cluster-wide nothing is.
    allowed = (namespaced and white is None) or _listed(
        maps(white), ref.group, ref.kind, "" if namespaced else ref.name
    )
    return allowed and not _listed(maps(black), ref.group, ref.kind, "" if namespaced else ref.name)


def _listed(rows: Sequence[Mapping[str, Any]], group: str, kind: str, name: str) -> bool:
    for row in rows:
        if not (glob(text(row.get("kind")), kind, "/") and glob(text(row.get("group")), group, "/")):
            continue
        pattern = text(row.get("name"))
        if not pattern or not name or glob(pattern, name, "/"):
            return True
    return False


def excluded_kinds(graph: Graph) -> Iterator[Finding]:
    """ARG111: kinds that Argo CD is set not to see are never applied."""
    data = config(graph)
    if data and "resource.exclusions" in data:
        return
    for application in graph.deliveries.applications:
        for manifest in graph.deliveries.objects(application):
            if is_excluded(manifest.ref.group, manifest.kind):
                message = (
                    f"Argo CD's resource.exclusions leave out {manifest.kind}: "
                    f"Application {application.name} cannot apply it"
                )
                yield say(
                    "ARG111", manifest, message, "kind", "let a controller make it, or change resource.exclusions"
                )


RULES = ()
TREE = (
    misplaced_fields,
    incomplete_sources,
    placeholders_left,
    oci_sources,
    destinations,
    unknown_projects,
    project_denials,
    excluded_kinds,
)
