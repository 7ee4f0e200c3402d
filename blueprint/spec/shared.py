"""What two specs of one cluster may not both have: a host name, a volume claim for two ends."""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.finding import Finding
from blueprint.spec.inference import InferenceService
from blueprint.spec.platform import Document, Platform


def shared(platform: Platform) -> Iterator[Finding]:
    """Judge what specs share without saying so."""
    yield from _hosts(platform)
    yield from _checkpoints(platform)


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
