"""How Applications are run: who owns an object, what pruning may take, how much one holds, what a broken commit does.

Sources: argo-cd v3.6.1 controller/state.go, docs/user-guide/auto_sync.md, docs/user-guide/sync-options.md,
docs/operator-manual/high_availability.md; argo-cd issues 14486 (status of 3,000 objects), 27971 (monorepos).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import orjson

from blueprint.catalog.gating import options
from blueprint.check.applications import Application, applications, config, sync_options
from blueprint.check.graph import Graph, annotations_of, kind_of
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import known, mapping
from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.objects import Manifest

OBJECTS, MANY_OBJECTS, BYTES = 1_000, 2_500, 8 * 2**20
"""Objects of an Application that are much, objects that are too many, and bytes of manifests near the limit of 10M."""

REPOSITORY_USERS = 10
"""Applications of one repository from which on each commit that refreshes all of them is felt."""


def owned_twice(graph: Graph) -> Iterator[Finding]:
    """REF103: an object in the folders of two Applications of one cluster."""
    first: dict[tuple[str, Ref], tuple[Application, Manifest]] = {}
    for application in graph.deliveries.applications:
        if not application.cluster:
            continue
        for manifest in graph.deliveries.objects(application):
            ref = manifest.ref
            owner, other = first.setdefault((application.cluster, ref), (application, manifest))
            if owner is application or not ref.name:
                continue
            there = "" if other is manifest else f" (in {other.source})"
            message = f"{ref} is applied by the applications {owner.name}{there} and {application.name} of one cluster"
            yield say("REF103", manifest, message, "", "leave it to one application")


def too_large(graph: Graph) -> Iterator[Finding]:
    """ARG205: an Application whose status grows towards etcd's limit, or whose manifests pass the repo server's."""
    for application in graph.deliveries.applications:
        objects = graph.deliveries.objects(application)
        count = len(objects)
        size = sum(len(orjson.dumps(manifest.body, default=str)) for manifest in objects) if count > OBJECTS // 4 else 0
        if count > MANY_OBJECTS or size > BYTES:
            severity, sureness = Severity.ERROR, Confidence.LIKELY
        elif count > OBJECTS:
            severity, sureness = Severity.WARNING, Confidence.LIKELY
        else:
            continue
        message = f"Application {application.name} has {count:,} objects ({size / 2**20:.1f} MiB)"
        yield say("ARG205", application.manifest, message, "spec.source", "divide it by team", severity, sureness)


def allow_empty(graph: Graph) -> Iterator[Finding]:
    """ARG206: pruning that may empty an Application: one wrong path deletes everything."""
    for application in applications(graph):
        if application.prunes and application.automated and application.automated.get("allowEmpty") is True:
            message = "with allowEmpty a wrong path or an empty render deletes every object of the Application"
            yield warn("ARG206", application.manifest, message, "spec.syncPolicy.automated.allowEmpty", "leave it out")


def unprotected(graph: Graph) -> Iterator[Finding]:
    """ARG207: what leaves Git is deleted unasked: claims, namespaces, CRDs and queues, with what they hold."""
    for application in graph.deliveries.applications:
        if not application.prunes or any(option.startswith("Prune=") for option in application.options):
            continue
        found: dict[str, Manifest] = {}
        for manifest in graph.deliveries.objects(application):
            kept = any(option.startswith(("Prune=", "Delete=")) for option in sync_options(manifest))
            if not kept and any(option.startswith("Prune=") for option in options(manifest.ref.group, manifest.kind)):
                found.setdefault(kind_of(manifest), manifest)
        if found:
            message = (
                f"Application {application.name} prunes {', '.join(sorted(found))} without being asked: "
                "a renamed file loses data, or work that waits"
            )
            first = found[min(found)]
            fix = "annotate such objects with argocd.argoproj.io/sync-options: Prune=confirm"
            yield note("ARG207", first, message, "metadata.annotations", fix)


def refreshed_by_every_commit(graph: Graph) -> Iterator[Finding]:
    """ARG208: many Applications of one repository, which every commit refreshes."""
    by_repo: dict[str, list[Application]] = defaultdict(list)
    for application in applications(graph):
        paths = annotations_of(application.manifest.body).get("argocd.argoproj.io/manifest-generate-paths")
        for repo in {source.repo for source in application.sources if source.repo and "chart" not in source.body}:
            if not paths:
                by_repo[repo].append(application)
    for repo, found in by_repo.items():
        if len(found) >= REPOSITORY_USERS:
            message = f"every commit to {repo} renders {len(found)} Applications anew, whatever it changes"
            fix = 'annotate each with argocd.argoproj.io/manifest-generate-paths: "."'
            yield warn("ARG208", found[0].manifest, message, "metadata.annotations", fix)


def retries_the_old_commit(graph: Graph) -> Iterator[Finding]:
    """ARG209: a sync that is tried again with the commit that broke it, while the repair waits."""
    found = []
    for application in applications(graph):
        retry = mapping(application.policy.get("retry"))
        if application.automated is not None and "retry" in application.policy and retry.get("refresh") is not True:
            limit = retry.get("limit")
            if isinstance(limit, int) and (limit < 0 or limit > 5):
                found.append(application)
    if found:
        more = f", and so do {len(found) - 1} more" if len(found) > 1 else ""
        message = (
            f"Application {found[0].name} retries the commit that failed for long before it reads the repair{more}"
        )
        yield note("ARG209", found[0].manifest, message, "spec.syncPolicy.retry", "set retry.refresh: true")


def replaced_crds(graph: Graph) -> Iterator[Finding]:
    """ARG210: replacing a CRD by force deletes it first, and with it every object of its kind."""
    for application in graph.deliveries.applications:
        for manifest in graph.deliveries.objects(application):
            if kind_of(manifest) == "CustomResourceDefinition.apiextensions.k8s.io":
                yield from _replaced(manifest, application.options | sync_options(manifest))
    owned = graph.deliveries.owners
    for manifest in graph.kind("CustomResourceDefinition.apiextensions.k8s.io"):
        if id(manifest) not in owned:
            yield from _replaced(manifest, sync_options(manifest))


def _replaced(manifest: Manifest, said: frozenset[str]) -> Iterator[Finding]:
    if {"Replace=true", "Force=true"} <= said:
        message = "Replace with Force deletes the CRD before it is made again, and every object of its kind with it"
        yield say("ARG210", manifest, message, "metadata.annotations", "use ServerSideApply=true")


def long_labels(graph: Graph) -> Iterator[Finding]:
    """ARG211: an Application whose name is no value for the label by which Argo CD tracks its objects."""
    method = (config(graph) or {}).get("application.resourceTrackingMethod")
    if method not in ("label", "annotation+label"):
        return
    for application in applications(graph):
        name = known(application.name)
        if len(name) <= 63:
            continue
        fix = "shorten the name to 63 characters"
        if method == "label":
            message = f"the name has {len(name)} characters; as a tracking label it may have 63"
            yield say("ARG211", application.manifest, message, "metadata.name", fix)
        elif not name[62].isalnum():
            message = (
                f"cut to 63 characters the name ends in {name[62]!r}, which no label may; older releases leave it so"
            )
            yield say(
                "ARG211", application.manifest, message, "metadata.name", fix, Severity.WARNING, Confidence.LIKELY
            )


RULES = ()
TREE = (
    owned_twice,
    too_large,
    allow_empty,
    unprotected,
    refreshed_by_every_commit,
    retries_the_old_commit,
    replaced_crds,
    long_labels,
)
