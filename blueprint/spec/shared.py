"""What two specs of one cluster may not both have: a host name, a volume claim for two ends or of two sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blueprint.finding import Confidence, Finding, Severity
from blueprint.quantity import parse_quantity
from blueprint.spec.inference import InferenceService
from blueprint.spec.platform import Document, Platform
from blueprint.spec.training import TrainingJob


def shared(platform: Platform) -> Iterator[Finding]:
    """Judge what specs share without saying so."""
    yield from _hosts(platform)
    yield from _checkpoints(platform)
    yield from _sizes(platform)


def _hosts(platform: Platform) -> Iterator[Finding]:
    """SPC219: of two routes of one gateway and host, Istio merges or drops one, by age."""
    for cluster in platform.clusters:
        gateway = cluster.model.spec.gateway
        if gateway is None or not cluster.knows("spec.gateway"):
            continue
        owners: dict[str, Document[InferenceService]] = {}
        for service in platform.services_on(cluster.model.metadata.name):
            if not service.knows("metadata.name", "spec.traffic.host"):
                continue
            host = service.model.spec.traffic.host or f"{service.model.metadata.name}.{gateway.domain}"
            first = owners.setdefault(host, service)
            if first is not service:
                by_name = service if service.model.spec.traffic.host else first
                path = "spec.traffic.host"
                other = first if by_name is service else service
                message = f"{host} on {cluster.model.metadata.name} already leads to {other.model.metadata.name}"
                yield Finding("SPC219", message, by_name.locate(path), path=path, fix="give each service its own host")


def _checkpoints(platform: Platform) -> Iterator[Finding]:
    """SPC220: the claim of a run's checkpoints is rendered for that run, with a size and a class of its own."""
    saving = {
        (job.model.spec.team, f"{job.model.metadata.name}-checkpoints"): job.model.metadata.name
        for job in platform.training_jobs
        if job.model.spec.checkpoint
    }
    for job in platform.training_jobs:
        for index, data in enumerate(job.model.spec.datasets):
            run = saving.get((job.model.spec.team, data.claim))
            path = f"spec.datasets[{index}].claim"
            if run and data.size and job.knows("spec.team", path):
                message = f"{data.claim} is the claim of the checkpoints of {run}"
                fix = "leave size out to read the checkpoints, or name another claim"
                yield Finding("SPC220", message, job.locate(path), path=path, fix=fix)
    for service in platform.services:
        weights = service.model.spec.weights
        run = saving.get((service.model.spec.team, weights.claim))
        path = "spec.weights.claim"
        if run and service.knows("spec.team", path):
            message = f"{weights.claim} is the claim of the checkpoints of {run}"
            yield Finding("SPC220", message, service.locate(path), path=path, fix="name another claim")


def _sizes(platform: Platform) -> Iterator[Finding]:
    """SPC222: one claim has one size; of two the larger is rendered, whoever wrote the smaller."""
    largest: dict[tuple[str, str, str], _Wish] = {}
    wishes = list(_wishes(platform))
    for wish in wishes:
        for cluster in wish.document.model.spec.clusters:
            key = (cluster, wish.document.model.spec.team, wish.claim)
            held = largest.setdefault(key, wish)
            if parse_quantity(wish.size) > parse_quantity(held.size):
                largest[key] = wish
    for wish in wishes:
        for cluster in wish.document.model.spec.clusters:
            most = largest[cluster, wish.document.model.spec.team, wish.claim]
            if parse_quantity(wish.size) < parse_quantity(most.size):
                other = most.document.locate(most.path)
                message = (
                    f"claim {wish.claim} is {wish.size} here and {most.size} in {other}: the larger one is rendered"
                )
                at, fix = wish.document.locate(wish.path), f"write {most.size} in both places"
                yield Finding("SPC222", message, at, Severity.WARNING, Confidence.LIKELY, path=wish.path, fix=fix)
                break


@dataclass(frozen=True, slots=True)
class _Wish:
    """A claim that a spec renders, its size, and where that is written."""

    document: Document[TrainingJob] | Document[InferenceService]
    claim: str
    size: str
    path: str


def _wishes(platform: Platform) -> Iterator[_Wish]:
    for job in platform.training_jobs:
        for index, data in enumerate(job.model.spec.datasets):
            path = f"spec.datasets[{index}]"
            if data.size and job.knows("spec.team", "spec.clusters", f"{path}.claim", f"{path}.size"):
                yield _Wish(job, data.claim, data.size, f"{path}.size")
    for service in platform.services:
        weights = service.model.spec.weights
        if service.knows("spec.team", "spec.clusters", "spec.weights.claim", "spec.weights.size"):
            yield _Wish(service, weights.claim, weights.size, "spec.weights.size")
