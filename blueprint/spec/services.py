"""The Services that specs need, and controllers make for them: no two specs may need one name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from blueprint.finding import Finding
from blueprint.spec.inference import InferenceService
from blueprint.spec.platform import Document, Platform
from blueprint.spec.training import TrainingJob


class _Bearer(NamedTuple):
    """A spec and what its Service of a name is for."""

    document: Document[TrainingJob] | Document[InferenceService]
    what: str
    rendered: bool


def services(platform: Platform) -> Iterator[Finding]:
    """SPC225: two specs of one team that each need a Service of one name on one cluster.

    JobSet and LeaderWorkerSet keep a Service that has the name of theirs, whatever it does (jobset v0.11.1
    createHeadlessSvcIfNecessary, lws v0.8.0 CreateHeadlessServiceIfNotExists).
    """
    told: set[tuple[str, str, str]] = set()
    for cluster in platform.clusters:
        on = cluster.model.metadata.name
        canaries = cluster.model.spec.components.argo_rollouts is not None
        held: dict[tuple[str, str], _Bearer] = {}
        for name, bearer in _needed(platform, on, canaries=canaries):
            own = bearer.document.model
            first = held.setdefault((own.spec.team, name), bearer)
            pair = (first.document.model.metadata.name, own.metadata.name, name)
            if first.document is bearer.document or pair in told:
                continue
            told.add(pair)
            yield _clash(platform, name, first, bearer)


def _needed(platform: Platform, cluster: str, *, canaries: bool) -> Iterator[tuple[str, _Bearer]]:
    for service in platform.services_on(cluster):
        if not service.knows("metadata.name", "spec.team"):
            continue
        name, spec = service.model.metadata.name, service.model.spec
        yield name, _Bearer(service, f"service {name}", rendered=True)
        if spec.gpus.nodes > 1:
            yield f"{name}-group", _Bearer(service, f"the groups of {name}", rendered=False)
        elif spec.rollout and canaries:
            yield f"{name}-canary", _Bearer(service, f"the canary of {name}", rendered=True)
    for job in platform.training_on(cluster):
        if job.model.spec.api == "TrainJob" and job.knows("metadata.name", "spec.team", "spec.api"):
            name = job.model.metadata.name
            yield name, _Bearer(job, f"the pods of TrainJob {name}", rendered=False)


def _clash(platform: Platform, name: str, first: _Bearer, later: _Bearer) -> Finding:
    team = platform.team(later.document.model.spec.team)
    ref = f"{team.model.namespace}/{name}" if team else name
    one, two = first.document.model.metadata.name, later.document.model.metadata.name
    if first.rendered and later.rendered:
        message = f"Service {ref} is rendered twice, by {one} and {two}"
    else:
        message = f"Service {ref} is needed twice: by {first.what} and by {later.what}"
    at, path = later.document.locate("metadata.name"), "metadata.name"
    return Finding("SPC225", message, at, path=path, fix=f"rename {two}" if one != two else "rename one of the two")
