"""What is verified before it is applied, and controllers that nothing uses.

Sources: argo-cd v3.6.1 util/sourceintegrity/source_integrity.go, docs/user-guide/source-hydrator.md; Flux
source-controller spec.verify.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from blueprint.catalog.tables import table
from blueprint.check.applications import PROJECT, applications
from blueprint.check.globs import glob
from blueprint.check.graph import Graph, kind_of
from blueprint.check.images import image
from blueprint.check.pods import PodTemplate, containers, pod_templates
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import Body, items, known, mapping, maps, placeholder, text
from blueprint.finding import Finding
from blueprint.objects import Manifest
from blueprint.sync import wave

_SIGNING = "commitserver.signing.key.path"


def _policies(project: Body) -> list[Body]:
    git = mapping(mapping(project.get("sourceIntegrity")).get("git"))
    return maps(git.get("policies"))


def _covered(policies: list[Body], repo: str) -> bool:
    for policy in policies:
        patterns = [text(row.get("url")) for row in maps(policy.get("repos"))]
        if any(glob(each[1:], repo) for each in patterns if each.startswith("!")):
            continue
        if not _asking([policy]):
            continue
        if any(glob(each, repo) for each in patterns if not each.startswith("!")):
            return True
    return False


def _asking(policies: list[Body]) -> bool:
    return any(mapping(policy.get("gpg")).get("mode") != "none" for policy in policies)


def unverified_repositories(graph: Graph) -> Iterator[Finding]:
    """ARG112: a project verifies signatures of some of its repositories, and others go by unseen."""
    for project in graph.kind(PROJECT):
        spec = mapping(project.body.get("spec"))
        policies = _policies(spec)
        if not policies or items(spec.get("signatureKeys")):
            continue
        for index, each in enumerate(items(spec.get("sourceRepos"))):
            repo = known(each)
            if repo and not repo.startswith("!") and "*" not in repo and not _covered(policies, repo):
                message = f"no policy of sourceIntegrity takes {repo}: it is not verified"
                fix = "add the repository to a policy"
                yield say("ARG112", project, message, f"spec.sourceRepos[{index}]", fix)


def verification_off(graph: Graph) -> Iterator[Finding]:
    """ARG113: projects verify signatures, and the repo server is told not to."""
    verifying = [m for m in graph.kind(PROJECT) if _asking(_policies(mapping(m.body.get("spec")))) or _keys(m)]
    if not verifying:
        return
    for manifest, pod in graph.pods:
        for path, container in containers(pod.spec):
            for index, row in enumerate(maps(container.get("env"))):
                if row.get("name") == "ARGOCD_GPG_ENABLED" and text(row.get("value")).lower() in ("false", "no"):
                    message = (
                        f"with ARGOCD_GPG_ENABLED {row['value']} the first commit passes, signed or not, and there are "
                        f"no keys to verify others with, though project {verifying[0].ref.name} asks for signatures"
                    )
                    where = f"{pod.spec_path}.{path}.env[{index}].value"
                    yield say("ARG113", manifest, message, where, "remove the variable")


def _keys(project: Manifest) -> bool:
    return bool(items(mapping(project.body.get("spec")).get("signatureKeys")))


def unsigned_hydration(graph: Graph) -> Iterator[Finding]:
    """ARG114: Argo CD's own commits are not signed, and the project refuses what is not signed."""
    projects = {m.ref.name: mapping(m.body.get("spec")) for m in graph.kind(PROJECT)}
    signs = any(
        bool(mapping(manifest.body.get("data")).get(_SIGNING))
        for manifest in graph.kind("ConfigMap")
        if manifest.ref.name == "argocd-cmd-params-cm"
    )
    for application in applications(graph):
        project = projects.get(known(application.spec.get("project")))
        if signs or project is None or "sourceHydrator" not in application.spec:
            continue
        if any(source.repo and _covered(_policies(project), source.repo) for source in application.sources):
            message = (
                "the hydrator commits without a signature, and the project wants each commit of this repository signed"
            )
            fix = f"give the commit server a key: {_SIGNING} in argocd-cmd-params-cm"
            yield say("ARG114", application.manifest, message, "spec.sourceHydrator", fix)


def unverified_artifacts(graph: Graph) -> Iterator[Finding]:
    """ARG115: two Flux sources read the same artifact, and only one of them verifies who signed it."""
    by_url: dict[str, list[Manifest]] = defaultdict(list)
    for manifest in graph.kind("OCIRepository.source.toolkit.fluxcd.io", "GitRepository.source.toolkit.fluxcd.io"):
        url = known(mapping(manifest.body.get("spec")).get("url"))
        if url:
            by_url[url].append(manifest)
    for url, found in by_url.items():
        verified = [manifest for manifest in found if mapping(manifest.body.get("spec")).get("verify")]
        for manifest in found:
            if verified and manifest not in verified:
                message = f"{url} is verified by {verified[0].ref}, and read here without"
                yield say("ARG115", manifest, message, "spec", "add the same verify")


def ghosts(graph: Graph) -> Iterator[Finding]:
    """ARG301: a controller is installed and nothing that it works on is there."""
    for row in table("ghosts")["components"]:
        controller = _installed(graph, row)
        if controller is None:
            continue
        missing = [kinds for kinds in row["needs"] if not graph.kind(*kinds) and not any(map(graph.generated, kinds))]
        if missing:
            names = ", ".join(kinds[0] for kinds in missing)
            there = len(row["needs"]) - len(missing)
            of = f"{there} of {len(row['needs'])} needed kinds are there, no {names}"
            message = f"{row['name']} is installed and {row['effect']}: {of}"
            alone = {each.ref.namespace for each, _ in graph.pods} <= {controller.ref.namespace}
            how = note if alone else warn  # a tree that only installs it leaves the rest to another
            yield how("ARG301", controller, message, "", f"add objects of {names}")


def _installed(graph: Graph, row: dict[str, Any]) -> Manifest | None:
    """The controller of a row, or the object that stands for one, unless it gets its work in another way."""
    for manifest in graph.kind(*row.get("kinds", ())):
        if not any(name in mapping(manifest.body.get("spec")) for name in row.get("unless", ())):
            return manifest
    return _controller(graph.pods, row.get("images", ()))


def policies_with_their_engine(graph: Graph) -> Iterator[Finding]:
    """WAV209: policies in the wave of their engine, or before it."""
    engines = [row for row in table("ghosts")["components"] if row.get("judges")]
    pods = [(m, pod) for m, pod in graph.pods if m.kind == "Deployment"]
    here = [row for row in engines if _controller(pods, row["images"])]
    for sync in graph.deliveries.syncs if here else ():
        for row in here:
            engine = _controller(((m, pod) for m in sync.objects for pod in pod_templates(m)), row["images"])
            kinds = {kind for kinds in row["needs"] for kind in kinds}
            early = engine and [m for m in sync.objects if kind_of(m) in kinds and wave(m.body) <= wave(engine.body)]
            if engine and early:
                more = f" (and {len(early) - 1} more)" if len(early) > 1 else ""
                first, late = early[0], wave(engine.body)
                message = (
                    f"{sync.name} applies {first.ref}{more} in wave {wave(first.body)}, and {row['name']}, "
                    f"which must run before, in wave {late}"
                )
                yield warn("WAV209", early[0], message, "metadata.annotations", "put the engine into an earlier wave")


def _controller(pods: Iterable[tuple[Manifest, PodTemplate]], ends: Sequence[str]) -> Manifest | None:
    for manifest, pod in pods:
        if manifest.kind != "Deployment":
            continue
        for _, container in containers(pod.spec):
            name = text(container.get("image"))
            repository = "" if placeholder(name) else image(name).repository
            if any(repository == end or repository.endswith(f"/{end}") for end in ends):
                return manifest
    return None


RULES = (ghosts,)
TREE = (policies_with_their_engine, unverified_repositories, verification_off, unsigned_hydration, unverified_artifacts)
