"""Task cards: what people do for a platform, who, with what, and the command that shows that it is done.

The commands are those of kubectl, Argo CD's objects and blueprint, with this platform's own names in them.
"""

from __future__ import annotations

from collections.abc import Iterator

from blueprint.picture import promises
from blueprint.picture.blocks import Card
from blueprint.picture.model import many
from blueprint.spec import Cluster, Delivery, Document, InferenceService, Platform, Team, TrainingJob

#: How `kubectl auth can-i` names a role's most telling right: verb and resource.
_RIGHT = {
    "viewer": "list pods",
    "developer": "create pytorchjobs.kubeflow.org",
    "lead": "delete persistentvolumeclaims",
}


def cards(platform: Platform) -> Iterator[Card]:
    """All cards, in the order in which a platform comes up."""
    delivery = platform.deliveries[0].model
    path = delivery.spec.repository.path
    for document in platform.clusters:
        yield from _cluster(document, delivery, path)
    for team in platform.teams:
        yield from _team(team)
    for job in platform.training_jobs:
        yield _run(job.model, platform, path)
    for service in platform.services:
        yield _service(service, platform, path)
    yield from _delivery(platform, delivery)


def _cluster(document: Document[Cluster], delivery: Delivery, path: str) -> Iterator[Card]:
    cluster, name = document.model, document.model.metadata.name
    owner = promises.admins(cluster)
    for pool in cluster.spec.node_pools:
        yield Card(
            f"{name}: machines of {pool.name}",
            owner,
            f"{promises.link(document.source)}; label `platform.blueprint/pool={pool.name}` and taints on each node",
            many(pool.nodes, "node")
            + (f" that flavor `{pool.name}` finds" if pool.gpus else " for the platform's own"),
            f"`kubectl get nodes -l platform.blueprint/pool={pool.name} --no-headers | wc -l` prints {pool.nodes}",
        )
    root = "root" if cluster.spec.server == "https://kubernetes.default.svc" else f"{name}-root"
    space = delivery.spec.namespace
    yield Card(
        f"{name}: start",
        owner,
        f"the components of {promises.link(document.source)} are installed; `{path}/{name}/bootstrap`",
        f"Argo CD syncs everything else, wave by wave: `kubectl apply --server-side -f {path}/{name}/bootstrap`",
        f"`kubectl -n {space} get applications.argoproj.io {root} -o jsonpath={{.status.health.status}}` is Healthy",
    )
    yield Card(
        f"{name}: queues",
        owner,
        f"`{path}/{name}/queues`",
        "every ClusterQueue is active",
        "`kubectl wait --for=condition=Active clusterqueues --all --timeout=60s` ends with 0",
    )
    if cluster.spec.backup is not None:
        yield Card(
            f"{name}: backups",
            owner,
            f"bucket `{cluster.spec.backup.bucket}` and its credentials in Velero's namespace",
            f"a backup each day, kept for {promises.duration(cluster.spec.backup.keep)}",
            "`kubectl -n velero get backupstoragelocations default -o jsonpath={.status.phase}` prints Available",
        )


def _team(document: Document[Team]) -> Iterator[Card]:
    team = document.model
    member = next(each for role in _RIGHT for each in team.spec.members if each.role == role)
    subject = f"--as=someone --as-group={member.group}" if member.group else f"--as={member.user}"
    yield Card(
        f"Team {team.metadata.name}: access",
        promises.lead(team),
        f"{promises.link(document.source)}; the groups exist at the identity provider",
        f"members work in namespace `{team.namespace}` and nowhere else",
        f"`kubectl auth can-i {_RIGHT[member.role]} -n {team.namespace} {subject}` prints yes",
    )


def _run(job: TrainingJob, platform: Platform, path: str) -> Card:
    name, spec = job.metadata.name, job.spec
    cluster = spec.clusters[0]
    data = ", ".join(f"`{each.claim}`" for each in spec.datasets)
    needs = f"the claims {data} are filled" if data else "nothing but the image"
    owner = next((promises.lead(t.model) for t in platform.teams if t.model.metadata.name == spec.team), spec.team)
    return Card(
        f"Run {name}",
        owner,
        needs,
        f"{promises.machines(job)}; {promises.survives(job)}",
        f"`blueprint explain {spec.api}/{name} {path}/{cluster}` says that it can be admitted",
    )


def _service(document: Document[InferenceService], platform: Platform, path: str) -> Card:
    service, spec = document.model, document.model.spec
    name, cluster = service.metadata.name, spec.clusters[0]
    team = next((t.model for t in platform.teams if t.model.metadata.name == spec.team), None)
    owner = promises.lead(team) if team else spec.team
    found = next(c.model for c in platform.clusters if c.model.metadata.name == cluster)
    model = spec.served_name or spec.model
    host = promises.host(service, found)
    shows = (
        f"`curl -sf https://{host}/v1/models` names `{model}`"
        if host
        else (f"`kubectl -n {team.namespace if team else spec.team} get endpoints {name}` lists addresses")
    )
    return Card(
        f"Service {name}",
        owner,
        f"claim `{spec.weights.claim}` holds `{spec.weights.path}/{spec.weights.version}`, `SHA256SUMS` written last",
        promises.promise(spec.slo),
        shows,
    )


def _delivery(platform: Platform, delivery: Delivery) -> Iterator[Card]:
    owner = promises.admins(platform.clusters[0].model) if platform.clusters else "the platform's team"
    yield Card(
        "Every change: review",
        owner,
        "a pull request with specs",
        "what the change does to people, before it is merged",
        "`blueprint render --check` and `blueprint check rendered` end with 0",
    )
    stages = delivery.spec.promotion
    if len(stages) > 1:
        order = " → ".join(", ".join(stage) for stage in stages)
        last = stages[-1][0]
        yield Card(
            "Every change: promotion",
            owner,
            f"what ran in the stage before; the order is {order}",
            f"{last} runs the same release, byte for byte",
            f"`blueprint promote {last} --dry-run` says that it is up to date",
        )
    some = stages[-1][0] if stages else (platform.clusters[0].model.metadata.name if platform.clusters else "CLUSTER")
    yield Card(
        "When it goes wrong: roll-back",
        owner,
        "a release that ran before",
        f"one commit, and {some} runs what it ran before: `blueprint promote {some} --back`",
        f"`blueprint promote {some} --back --dry-run` shows that commit and pushes nothing",
    )
