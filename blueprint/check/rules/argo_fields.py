"""Fields of an Application that are read when it is too late: times, namespaces, ignored differences.

Sources: argo-cd v3.6.1 pkg/apis/application/v1alpha1/types.go (ParseDuration of RetryStrategy), util/argo/argo.go
(IsAppPermitted), util/argo/diff/ignore.go; RFC 6901.
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.check.applications import PROJECT, applications
from blueprint.check.globs import glob
from blueprint.check.graph import Graph
from blueprint.check.matching import kind_problem
from blueprint.check.rollouts import is_go_duration
from blueprint.check.rules.say import say, warn
from blueprint.check.shapes import known, mapping, maps, placeholder, texts
from blueprint.finding import Finding


def retries(graph: Graph) -> Iterator[Finding]:
    """ARG212: a time between retries that is no duration."""
    for application in applications(graph):
        backoff = mapping(mapping(mapping(application.spec.get("syncPolicy")).get("retry")).get("backoff"))
        for name in ("duration", "maxDuration"):
            value = known(backoff.get(name))
            if value and not is_go_duration(value) and not value.isdigit():
                message = f"{name} {value!r} is no duration: the sync fails when it is to be tried again"
                path = f"spec.syncPolicy.retry.backoff.{name}"
                yield warn("ARG212", application.manifest, message, path, "a number and a unit: 5s, 3m")


def namespaces(graph: Graph) -> Iterator[Finding]:
    """ARG213: an Application beside Argo CD's namespace, whose project does not let it be there."""
    projects = {project.ref.name: project for project in graph.kind(PROJECT)}
    for application in applications(graph):
        project = projects.get(known(application.spec.get("project")))
        mine = application.manifest.ref.namespace
        if project is None or application.manifest.kind != "Application" or not mine or not project.ref.namespace:
            continue
        allowed = texts(mapping(project.body.get("spec")).get("sourceNamespaces"))
        if mine != project.ref.namespace and not any(glob(each, mine) or placeholder(each) for each in allowed):
            message = f"project {project.ref.name} takes no Applications of namespace {mine}: this one is not synced"
            fix = f"sourceNamespaces: [{mine}] in the project, or the namespace {project.ref.namespace}"
            yield say("ARG213", application.manifest, message, "metadata.namespace", fix)


def ignored(graph: Graph) -> Iterator[Finding]:
    """ARG214: an ignored difference of a kind that its group does not have, or at a pointer that is none."""
    for application in applications(graph):
        for index, row in enumerate(maps(application.spec.get("ignoreDifferences"))):
            path = f"spec.ignoreDifferences[{index}]"
            kind, group = known(row.get("kind")), row.get("group") or ""
            problem = (
                kind_problem(graph, str(group), kind)
                if kind and isinstance(group, str) and not placeholder(group)
                else None
            )
            if problem and "*" not in str(group):
                yield warn(
                    "ARG214", application.manifest, f"{problem}: nothing is ignored", f"{path}.kind", "name the group"
                )
            for at, pointer in enumerate(texts(row.get("jsonPointers"))):
                if pointer and not pointer.startswith("/") and not placeholder(pointer):
                    message = f"{pointer} is no JSON pointer: it starts without a slash, and nothing is ignored"
                    yield warn("ARG214", application.manifest, message, f"{path}.jsonPointers[{at}]", f"/{pointer}")


RULES = ()
TREE = (retries, namespaces, ignored)
