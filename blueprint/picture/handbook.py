"""The handbook of one platform: what it promises, to whom, what can go wrong, and who does what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blueprint.errors import UsageError
from blueprint.picture import promises, risks, tasks
from blueprint.picture.blocks import Block, Heading, Points, Text
from blueprint.picture.model import Picture, Table, many
from blueprint.render.queues import PRIORITIES
from blueprint.spec import Platform

TITLE = "Handbook of the platform"


def handbook(platform: Platform, pictures: Sequence[Picture] = ()) -> list[Block]:
    """The whole handbook as blocks; `pictures` stand where the order of delivery and the quotas are told.

    Raises UsageError for a platform without clusters or without a Delivery.
    """
    if not platform.clusters or not platform.deliveries:
        raise UsageError("a handbook needs a Cluster and a Delivery", hint="start a platform with `blueprint new`")
    return [
        *_glance(platform),
        *_promised(platform),
        *_teams(platform, [each for each in pictures if each.scene.name.startswith("quota")]),
        *_priorities(),
        *_order(platform, [each for each in pictures if each.scene.name.startswith("waves")]),
        *_identities(platform),
        *_rules(platform),
        *_risks(platform),
        Heading("Task cards"),
        Text("Each card is done when the command of its last line says so."),
        *tasks.cards(platform),
    ]


def intro(platform: Platform) -> str:
    """What the platform is, in one sentence."""
    gpus = sum(pool.nodes * pool.gpus.count for c in platform.clusters for pool in c.model.spec.node_pools if pool.gpus)
    return (
        f"{many(gpus, 'GPU')} in {many(len(platform.clusters), 'cluster')} for {many(len(platform.teams), 'team')}: "
        f"{many(len(platform.services), 'served model')} and {many(len(platform.training_jobs), 'training run')}."
    )


def _glance(platform: Platform) -> Iterator[Block]:
    yield Heading("At a glance")
    yield Text(intro(platform))
    for document in platform.clusters:
        spec = document.model.spec
        yield Heading(document.model.metadata.name, 3)
        yield Text(
            f"{str(spec.environment).capitalize()}, Kubernetes {spec.components.kubernetes}, "
            f"Kueue {spec.components.kueue}; run by {promises.admins(document.model)}. "
            f"Written in {promises.link(document.source)}."
        )
        yield Points(tuple(promises.pools(document)))


def _promised(platform: Platform) -> Iterator[Block]:
    yield Heading("Promises")
    if platform.services:
        yield Text(
            "Each promise is measured, alerted on, and judged while a canary runs. Shares are of requests, in the "
            "window of the alert."
        )
        yield promises.services(platform)
    else:
        yield Text("No model is served: nothing is promised to clients.")
    if platform.training_jobs:
        yield Heading("Training runs", 3)
        yield promises.runs(platform)


def _teams(platform: Platform, pictures: Sequence[Picture]) -> Iterator[Block]:
    yield Heading("Teams and their quotas")
    yield Text(
        "What is a team's own is there for it whenever it asks: whoever borrowed it gives way. What it does not use, "
        "others may borrow, by the weights of teams."
    )
    for document in platform.teams:
        team = document.model
        yield Heading(f"Team {team.metadata.name}", 3)
        strict = "; a run that does not fit holds the queue" if team.spec.queueing == "StrictFIFO" else ""
        yield Text(f"Namespace `{team.namespace}`, weight {team.spec.weight}{strict}. {promises.link(document.source)}")
        yield Points(tuple(promises.quota(each) for each in team.spec.quotas))
    yield from pictures


def _priorities() -> Iterator[Block]:
    yield Heading("Priorities")
    yield Text("In a queue, urgent work goes first, and may take the place of less urgent work of the same team.")
    yield Table(
        ("Priority", "Value", "For"),
        tuple((name, str(value), words) for name, (value, words) in PRIORITIES.items()),
    )


def _order(platform: Platform, pictures: Sequence[Picture]) -> Iterator[Block]:
    delivery = platform.deliveries[0]
    spec = delivery.model.spec
    yield Heading("Order of delivery")
    stages = " → ".join(", ".join(stage) for stage in spec.promotion)
    by = "syncs by itself" if spec.automated else "is synced by hand"
    yield Text(
        f"Argo CD follows branch `{spec.repository.revision}` of {spec.repository.url}, folder "
        f"`{spec.repository.path}`, and {by}; training runs are always synced by hand. {promises.link(delivery.source)}"
    )
    if stages:
        yield Text(f"A change reaches the clusters in this order: {stages}.")
    yield Text("Inside a cluster it comes in waves; a wave starts when the one before it is healthy.")
    yield from pictures


def _identities(platform: Platform) -> Iterator[Block]:
    yield Heading("Identities")
    rows = [
        (
            f"{c.model.metadata.name}: administrators",
            promises.admins(c.model),
            "queues, quotas and devices; reads nodes, pods and namespaces",
        )
        for c in platform.clusters
    ]
    rows += [
        (f"team {t.model.metadata.name}", promises.members(t.model), f"namespace `{t.model.namespace}`")
        for t in platform.teams
    ]
    for document in platform.deliveries:
        spec = document.model.spec
        rows += [("signs the tree", f"`{each.subject}`", f"by {each.issuer}") for each in spec.signers]
        rows += [("signs commits", f"`{key}`", "a GnuPG key that Argo CD can ask for") for key in spec.signing_keys]
    yield Table(("Who", "Identity", "Where"), tuple(rows))


def _rules(platform: Platform) -> Iterator[Block]:
    yield Heading("Rules that nobody can pass by")
    if not platform.policies:
        yield Text(
            "No policy is written. Kubernetes itself enforces Pod Security `restricted` on every team's namespace."
        )
        return
    rows = tuple(
        (
            document.model.metadata.name,
            document.model.spec.description.strip(),
            document.model.spec.action.lower(),
            ", ".join(document.model.spec.engines),
            promises.link(document.source),
        )
        for document in platform.policies
    )
    yield Table(("Policy", "What it asks", "What it does", "Engines", "Spec"), rows)


def _risks(platform: Platform) -> Iterator[Block]:
    yield Heading("Risks, and the way back")
    found = risks.table(platform)
    yield found if found.rows else Text("The specs show none of the risks that are known here.")
