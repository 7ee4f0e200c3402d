"""Training runs: the pod, its machines and topology, data and checkpoints, as PyTorchJob or TrainJob."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from blueprint.finding import Ref
from blueprint.quantity import parse_quantity
from blueprint.render.names import name
from blueprint.render.plan import Item
from blueprint.render.pools import device_class, gpu_resource, queue_of
from blueprint.render.queues import priority
from blueprint.render.site import Site
from blueprint.render.tenancy import data_application, runs_application, team_application, team_labels
from blueprint.spec import Document, Team, TrainingJob
from blueprint.spec.cluster import NodePool

HOST = "kubernetes.io/hostname"
TAS = "kueue.x-k8s.io/podset"
SCRATCH = "50Gi"


@dataclass(frozen=True, slots=True)
class Volume:
    """A mount: a claim, or an empty folder on disk or in memory."""

    name: str
    path: str
    claim: str | None = None
    read_only: bool | None = None
    size: str | None = None
    memory: bool = False


def items(site: Site) -> Iterator[Item]:
    """Per run: claims, the claim template for DRA, the runtime of a TrainJob, and the run itself.

    Claims, templates and runtimes stay with the team; runs are in an application of their own, which does not heal
    itself: a run is submitted once, and Kueue writes into it.
    """
    claims: dict[Ref, Item] = {}
    for document in site.platform.training_on(site.name):
        team = site.platform.team(document.model.spec.team)
        pool = site.cluster.spec.pool(document.model.spec.pool)
        if team is None or pool is None:
            continue
        for item in _claims(site, document, team.model):
            held = claims.setdefault(item.manifest.ref, item)
            if _storage(item) > _storage(held):
                claims[item.manifest.ref] = item
        yield from _run(site, document, team.model, pool)
    yield from claims.values()


def _storage(claim: Item) -> Fraction:
    """Bytes that a claim asks for: of several runs that name one claim, the largest wish counts."""
    return parse_quantity(str(claim.manifest.body["spec"]["resources"]["requests"]["storage"]))


def _claims(site: Site, document: Document[TrainingJob], team: Team) -> Iterator[Item]:
    job, storage = document.model, site.cluster.spec.storage
    wanted = [(data.claim, data.size, storage.shared, "ReadWriteMany") for data in job.spec.datasets if data.size]
    if job.spec.checkpoint:
        many = job.spec.nodes > 1
        wanted.append(
            (
                checkpoint_claim(job),
                job.spec.checkpoint.size,
                storage.shared if many else storage.block,
                "ReadWriteMany" if many else "ReadWriteOnce",
            )
        )
    for claim, size, storage_class, mode in wanted:
        yield site.item(
            data_application(team),
            "PersistentVolumeClaim",
            document.source,
            name=claim,
            namespace=team.namespace,
            labels=team_labels(team),
            modes=[mode],
            storage_class=storage_class,
            size=size,
        )


def checkpoint_claim(job: TrainingJob) -> str:
    """The claim that keeps a run's checkpoints."""
    return name("PersistentVolumeClaim", job.metadata.name, "checkpoints")


def topology_annotations(site: Site, job: TrainingJob, pool: NodePool) -> dict[str, str] | None:
    """Kueue's topology request on the pod template.

    `required` for all pods is one required domain; `required` for groups is a slice, with `preferred` for the whole.
    Master and workers of a PyTorchJob are two pod sets, which the group name places as one.
    Without a wish the request is `unconstrained`: the queue of a topology-aware pool takes nothing else.
    Source: kueue v0.17.0 pkg/controller/jobframework/tas_validation.go.
    """
    if not pool.racks:
        return None
    levels = site.cluster.spec.topology
    label = {"block": levels.block, "rack": levels.rack, "host": HOST}
    wish = job.spec.placement
    # Inside the domain that it must take, Kueue packs as tightly as it can: a narrower preference is met by that.
    preferred = wish.preferred if _wider(wish.preferred, wish.required) else None
    annotations: dict[str, str] = {}
    if wish.required and wish.group_size is None and preferred is None:
        annotations[f"{TAS}-required-topology"] = label[wish.required]
    elif wish.required:
        annotations[f"{TAS}-slice-required-topology"] = label[wish.required]
        annotations[f"{TAS}-slice-size"] = str(wish.group_size or job.spec.nodes)
    if preferred:
        annotations[f"{TAS}-preferred-topology"] = label[preferred]
    elif not wish.required:
        annotations[f"{TAS}-unconstrained-topology"] = "true"
    together = job.spec.api == "PyTorchJob" and job.spec.nodes > 1 and (wish.required or wish.preferred)
    if together:
        annotations[f"{TAS}-group-name"] = "run"
    return annotations


def _wider(level: str | None, than: str | None) -> bool:
    """Whether a level of topology is given and holds more than another one, or there is no other."""
    order = ("host", "rack", "block")
    return level is not None and (than is None or order.index(level) > order.index(than))


def _volumes(job: TrainingJob) -> list[Volume]:
    volumes = [
        Volume("shm", "/dev/shm", size=job.spec.shared_memory, memory=True),  # noqa: S108 - NCCL's shared memory
        Volume("tmp", "/tmp", size=SCRATCH),  # noqa: S108 - the root file system is read-only
    ]
    volumes += [Volume(data.name, data.path, data.claim, read_only=True) for data in job.spec.datasets]
    if job.spec.checkpoint:
        volumes.append(Volume("checkpoints", job.spec.checkpoint.path, checkpoint_claim(job)))
    return volumes


def _environment(job: TrainingJob) -> list[dict[str, str]]:
    """What the code reads: where to save and how often; a run that starts again resumes from the newest one."""
    env = dict(job.spec.env)
    if job.spec.checkpoint:
        env.setdefault("CHECKPOINT_DIR", job.spec.checkpoint.path)
        env.setdefault("CHECKPOINT_EVERY_STEPS", str(job.spec.checkpoint.every_steps))
    env.setdefault("HOME", "/tmp")  # noqa: S108 - libraries write caches into HOME
    return [{"name": key, "value": value} for key, value in sorted(env.items())]


def _pod(site: Site, job: TrainingJob, pool: NodePool, container: str, restart: str) -> dict[str, Any]:
    resources = {"cpu": job.spec.cpu, "memory": job.spec.memory}
    by_claim = pool.devices == "dra" and job.spec.gpus > 0
    if job.spec.gpus and not by_claim:
        resources[gpu_resource(pool)] = str(job.spec.gpus)
    grace = job.spec.checkpoint.grace.total_seconds() if job.spec.checkpoint else 30
    return site.templates.render(
        "TrainingPod",
        source=site.document.source,
        priority_class=priority(job.spec.priority),
        restart=restart,
        grace=int(grace),
        claim=claim_template(job) if by_claim else None,
        container=container,
        image=job.spec.image,
        command=list(job.spec.command) or None,
        args=list(job.spec.args) or None,
        env=_environment(job),
        resources=resources,
        volumes=_volumes(job),
    )


def claim_template(job: TrainingJob) -> str:
    """The ResourceClaimTemplate of a run on a DRA pool."""
    return name("ResourceClaimTemplate", job.metadata.name, "gpus")


def _run(site: Site, document: Document[TrainingJob], team: Team, pool: NodePool) -> Iterator[Item]:
    job = document.model
    own = {"app.kubernetes.io/name": job.metadata.name}
    labels = {**team_labels(team), **own}
    queued = {
        **labels,
        "kueue.x-k8s.io/queue-name": name("LocalQueue", queue_of(pool)),
        "kueue.x-k8s.io/priority-class": priority(job.spec.priority),
    }
    deadline = int(job.spec.max_runtime.total_seconds()) if job.spec.max_runtime else None
    common: dict[str, Any] = {"namespace": team.namespace, "annotations": None, "deadline": deadline}
    pods: dict[str, Any] = {"pod_labels": labels, "pod_annotations": topology_annotations(site, job, pool)}
    if pool.devices == "dra" and job.spec.gpus:
        yield site.item(
            team_application(team),
            "ResourceClaimTemplate",
            document.source,
            name=claim_template(job),
            namespace=team.namespace,
            labels=labels,
            device_class=device_class(pool),
            count=job.spec.gpus,
        )
    if job.spec.api == "PyTorchJob":
        roles = [{"name": "Master", "replicas": 1}]
        if job.spec.nodes > 1:
            roles.append({"name": "Worker", "replicas": job.spec.nodes - 1})
        yield site.item(
            runs_application(team),
            "PyTorchJob",
            document.source,
            name=name("PyTorchJob", job.metadata.name),
            labels=queued,
            retries=job.spec.retries,
            restart="OnFailure" if job.spec.retries else "Never",
            roles=roles,
            pod=_pod(site, job, pool, "pytorch", "OnFailure" if job.spec.retries else "Never"),
            **pods,
            **common,
        )
        return
    runtime = name("TrainingRuntime", job.metadata.name)
    yield site.item(
        team_application(team),
        "TrainingRuntime",
        document.source,
        name=runtime,
        namespace=team.namespace,
        labels=labels,
        nodes=job.spec.nodes,
        retries=job.spec.retries,
        pod=_pod(site, job, pool, "node", "Never"),
        **pods,
    )
    yield site.item(
        runs_application(team),
        "TrainJob",
        document.source,
        name=name("TrainJob", job.metadata.name),
        labels=queued,
        runtime=runtime,
        nodes=job.spec.nodes,
        image=job.spec.image,
        command=list(job.spec.command) or None,
        args=list(job.spec.args) or None,
        env=_environment(job),
        **common,
    )
