"""What can go wrong on this platform, how it shows, and the way back: read from the specs, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from blueprint.picture.model import Table
from blueprint.spec import Cluster, Document, Platform

Risk = tuple[str, str, str]
"""What can happen; how it shows; the way back."""


def table(platform: Platform) -> Table:
    """The risks of a platform: those of its clusters, then those of its work, then those of its delivery."""
    found: list[Risk] = []
    for document in platform.clusters:
        for rule in _CLUSTER:
            found += rule(platform, document)
    for of_all in _PLATFORM:
        found += of_all(platform)
    return Table(("What can happen", "How it shows", "The way back"), tuple(found))


def _claims(platform: Platform, document: Document[Cluster]) -> Iterator[Risk]:
    """kubernetes v1.35.4 plugins/dynamicresources: removing a pod in the dry run of preemption frees no device."""
    name = document.model.metadata.name
    for pool in (pool for pool in document.model.spec.node_pools if pool.devices == "dra"):
        yield (
            f"{name}, `{pool.name}`: GPUs are handed out by claims (DRA), and the scheduler preempts nobody for a "
            "device: an urgent pod waits until a claim is given back; only Kueue decides who runs",
            "`kubectl get pods -A --field-selector=status.phase=Pending` and the event `cannot allocate all claims`",
            f"write `devices: plugin` for `{pool.name}`, let runs with claims end or submit them again, switch the "
            "device plugin on and the driver off on its nodes, `blueprint render`, `blueprint commit`",
        )


def _slices(platform: Platform, document: Document[Cluster]) -> Iterator[Risk]:
    name = document.model.metadata.name
    for pool in (pool for pool in document.model.spec.node_pools if pool.gpus and pool.gpus.mig):
        yield (
            f"{name}, `{pool.name}`: the cut of a GPU cannot change while anything runs on it",
            f"`kubectl get nodes -l platform.blueprint/pool={pool.name} -o json` shows other resources than the spec",
            "drain one node, cut it anew, uncordon it, then the next; quotas follow the spec with `blueprint render`",
        )


def _on_demand(platform: Platform, document: Document[Cluster]) -> Iterator[Risk]:
    name = document.model.metadata.name
    for pool in (pool for pool in document.model.spec.node_pools if pool.provisioning):
        yield (
            f"{name}, `{pool.name}`: its nodes come when the autoscaler has some; work is admitted only then",
            "`kubectl get provisioningrequests -A` shows no `Provisioned`",
            "give the team quota on a standing pool, or take the pool's `provisioning` away",
        )


def _promised(platform: Platform, document: Document[Cluster]) -> Iterator[tuple[str, int, int]]:
    """Of every kind of accelerator: its name in words, how many are promised, and how many there are."""
    name = document.model.metadata.name
    for pool in document.model.spec.node_pools:
        if pool.gpus is None:
            continue
        profiles = pool.gpus.mig.layout if pool.gpus.mig else {None: 1}
        for profile, each in profiles.items():
            promised = sum(
                quota.gpus
                for team in platform.teams
                for quota in team.model.spec.quotas
                if (quota.cluster, quota.pool, quota.profile) == (name, pool.name, profile)
            )
            words = f"`{pool.name}`" + (f" {profile}" if profile else "")
            yield words, promised, pool.nodes * pool.gpus.count * each


def _overbooked(platform: Platform, document: Document[Cluster]) -> Iterator[Risk]:
    name = document.model.metadata.name
    every = list(_promised(platform, document))
    for words, promised, there in every:
        if promised > there:
            yield (
                f"{name}, {words}: {promised} promised of {there}",
                "admitted pods stay Pending while every team uses its own",
                "lower quotas or add nodes; `blueprint graph --of quota` shows both",
            )
    full = [f"{words} ({there})" for words, promised, there in every if promised == there]
    if full:
        yield (
            f"{name}: all is promised of {', '.join(full)}: a node that fails or is drained leaves admitted work "
            "without a place",
            "pods Pending though their workload is Admitted",
            "delete the youngest run, or lower a quota until the node is back",
        )


def _no_backup(platform: Platform, document: Document[Cluster]) -> Iterator[Risk]:
    if document.model.spec.backup is None:
        yield (
            f"{document.model.metadata.name}: there is no backup: claims that are deleted are gone",
            "nothing shows it before",
            "write `backup` into the Cluster; objects come back from Git, data do not",
        )


_CLUSTER: tuple[Callable[[Platform, Document[Cluster]], Iterator[Risk]], ...] = (
    _claims,
    _slices,
    _on_demand,
    _overbooked,
    _no_backup,
)


def _single(platform: Platform) -> Iterator[Risk]:
    for document in platform.services:
        alone = [c for c in document.model.spec.clusters if document.model.spec.replicas_for(c).min < 2]
        if alone:
            yield (
                f"{document.model.metadata.name}: one replica on {', '.join(alone)}: while it loads, nobody answers",
                "the alert of its error promise",
                "`replicas.min: 2`",
            )


def _unsaved(platform: Platform) -> Iterator[Risk]:
    names = [d.model.metadata.name for d in platform.training_jobs if d.model.spec.checkpoint is None]
    if names:
        yield (
            f"{', '.join(names)}: no checkpoint: preemption, a lost node or a stop costs everything since the start",
            "the run begins again at step 0",
            "`checkpoint` in the TrainingJob, and a program that reads it",
        )


def _unjudged(platform: Platform) -> Iterator[Risk]:
    names = [d.model.metadata.name for d in platform.services if d.model.spec.rollout is None]
    if names:
        yield (
            f"{', '.join(names)}: new versions roll without a canary: a bad one reaches every client",
            "the alerts of its promises",
            "`blueprint promote CLUSTER --back` brings the version before, in one commit",
        )


def _unsigned(platform: Platform) -> Iterator[Risk]:
    for document in platform.deliveries:
        if not document.model.spec.signers:
            yield (
                "no identity is named that may sign the tree: whoever can push decides what runs",
                "`git log` of the branch",
                "`signers` in the Delivery, `blueprint sign` in CI, `blueprint verify` before a merge",
            )


_PLATFORM: tuple[Callable[[Platform], Iterator[Risk]], ...] = (_single, _unsaved, _unjudged, _unsigned)
