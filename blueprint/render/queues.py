"""Kueue and the classes of priority: who may use how many of which machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from blueprint.quantity import Form, format_quantity, read_quantity
from blueprint.render.emit import emit
from blueprint.render.names import name
from blueprint.render.plan import Item
from blueprint.render.pools import (
    INVENTORY_LABEL,
    TEAM_LABEL,
    advertised,
    device_class,
    gpu_resource,
    node_labels,
    queue_of,
    share,
)
from blueprint.render.site import MANAGED_BY, Site
from blueprint.spec.cluster import NodePool
from blueprint.spec.team import Quota, Team

APPLICATION = "queues"

#: Value, and what it is for. Kueue orders its queues by the WorkloadPriorityClass, the scheduler by the PriorityClass.
PRIORITIES = {
    "low": (100, "May wait, and gives way to others."),
    "normal": (1000, "The usual run."),
    "high": (10000, "Served models and urgent runs."),
}


def priority(level: str) -> str:
    """The name of both priority classes of a level."""
    return f"platform-{level}"


@dataclass(frozen=True, slots=True)
class Amount:
    """What a queue gets of one resource on one flavor; None means without limit."""

    resource: str
    nominal: str
    borrow: str | None
    lend: str | None


@dataclass(frozen=True, slots=True)
class Flavor:
    """One flavor of a queue with its amounts, in the order of the covered resources."""

    name: str
    amounts: list[Amount]


def topology_name(site: Site) -> str:
    """The Topology that all topology-aware flavors of a cluster share."""
    return name("Topology", "racks")


def items(site: Site) -> Iterator[Item]:
    """Topology, flavors, priorities, cohorts, queues and Kueue's own configuration."""
    yield from _machines(site)
    yield from _priorities(site)
    yield from _cohorts(site)
    for document in site.platform.teams_on(site.name):
        for queue, quotas in team_queues(site, document.model).items():
            yield site.item(
                APPLICATION,
                "ClusterQueue",
                document.source,
                name=cluster_queue(document.model, queue),
                labels={**MANAGED_BY, TEAM_LABEL: document.model.metadata.name},
                cohort=cohort(site, queue),
                strategy=document.model.spec.queueing,
                namespace=document.model.namespace,
                weight=str(document.model.spec.weight) if site.cluster.spec.fair_sharing else None,
                threshold=PRIORITIES["normal"][0],
                checks=_checks(quotas),
                resources=covered(quotas),
                flavors=flavors(quotas),
            )
    yield _configuration(site)
    yield _inventory(site)


def team_queues(site: Site, team: Team) -> dict[str, list[tuple[NodePool, Quota]]]:
    """The queues of a team on this cluster, each with its quotas and their pools."""
    queues: dict[str, list[tuple[NodePool, Quota]]] = {}
    for quota in team.spec.quotas:
        pool = site.cluster.spec.pool(quota.pool)
        if quota.cluster == site.name and pool is not None:
            queues.setdefault(queue_of(pool), []).append((pool, quota))
    return queues


def _pools(site: Site, team: Team) -> Iterator[NodePool]:
    return (pool for quotas in team_queues(site, team).values() for pool, _ in quotas)


def cluster_queue(team: Team, queue: str) -> str:
    """The ClusterQueue behind a team's LocalQueue."""
    return name("ClusterQueue", team.metadata.name, queue)


def cohort(site: Site, queue: str) -> str:
    """The Cohort in which queues of one purpose lend to each other."""
    return name("Cohort", site.cluster.spec.cohort, queue)


def _checks(quotas: list[tuple[NodePool, Quota]]) -> list[dict[str, object]] | None:
    """The admission checks of a queue: one for each pool on demand, on the flavor of that pool alone."""
    on_demand = dict.fromkeys(pool.name for pool, _ in quotas if pool.provisioning)
    return [{"name": provisioning_check(pool), "onFlavors": [pool]} for pool in on_demand] or None


def provisioning_check(pool: str) -> str:
    """The AdmissionCheck of a pool on demand, and the ProvisioningRequestConfig behind it."""
    return name("AdmissionCheck", "provision", pool)


def covered(quotas: list[tuple[NodePool, Quota]]) -> list[str]:
    """The resources of a queue: CPU, memory, then GPU resources by name."""
    return ["cpu", "memory", *sorted({gpu_resource(pool, quota.profile) for pool, quota in quotas})]


def flavors(quotas: list[tuple[NodePool, Quota]]) -> list[Flavor]:
    """Amounts by flavor, in the order in which the team wrote its quotas.

    Kueue wants each flavor to list each covered resource in the same order, so a GPU resource that a pool does not
    have is there with nothing of it.
    """
    by_pool: dict[str, list[tuple[NodePool, Quota]]] = {}
    for pool, quota in quotas:
        by_pool.setdefault(pool.name, []).append((pool, quota))
    return [
        Flavor(pool_name, [_amount(resource, rows) for resource in covered(quotas)])
        for pool_name, rows in by_pool.items()
    ]


def _amount(resource: str, rows: list[tuple[NodePool, Quota]]) -> Amount:
    if resource == "cpu":
        return _proportional(resource, rows)
    if resource == "memory":
        return _proportional(resource, rows)
    for pool, quota in rows:
        if gpu_resource(pool, quota.profile) == resource:
            return Amount(resource, str(quota.gpus), _text(quota.borrow), _text(quota.lend))
    return Amount(resource, "0", "0", None)


def _proportional(resource: str, rows: list[tuple[NodePool, Quota]]) -> Amount:
    """CPU or memory that follows the GPUs; without limit as soon as one of the GPU amounts is."""

    def part(pool: NodePool, gpus: int) -> Fraction:
        amount = share(pool, gpus)
        return Fraction(amount.cpu) if resource == "cpu" else Fraction(amount.memory * 2**30)

    def total(gpus: list[tuple[NodePool, int | None]]) -> Fraction | None:
        parts = [part(pool, count) for pool, count in gpus if count is not None]
        return None if len(parts) < len(gpus) else sum(parts, Fraction(0))

    written = [quota.cpu if resource == "cpu" else quota.memory for _, quota in rows]
    own = [read_quantity(text) if text is not None else None for text in written]
    # The team's own words decide the suffix, so that 64G stays 64G; shares of memory are whole Gi.
    decimal = resource == "cpu" or all(amount is not None and amount.form is not Form.BINARY for amount in own)
    form = Form.DECIMAL if decimal else Form.BINARY

    def text(amount: Fraction | None) -> str | None:
        return None if amount is None else format_quantity(amount, form)

    nominal = sum(
        (amount.value if amount else part(pool, quota.gpus) for amount, (pool, quota) in zip(own, rows, strict=True)),
        Fraction(0),
    )
    lend, borrow = (total([(pool, getattr(quota, field)) for pool, quota in rows]) for field in ("lend", "borrow"))
    lend = lend if lend is None else min(lend, nominal)
    return Amount(resource, format_quantity(nominal, form), text(borrow), text(lend))


def _text(amount: int | None) -> str | None:
    return None if amount is None else str(amount)


def _machines(site: Site) -> Iterator[Item]:
    spec, source = site.cluster.spec, site.document.source
    if any(pool.racks for pool in spec.node_pools):
        levels = [spec.topology.block, spec.topology.rack, "kubernetes.io/hostname"]
        yield site.item(APPLICATION, "Topology", source, name=topology_name(site), labels=MANAGED_BY, levels=levels)
    # A queue that names a flavor which is not there is not active, and admits nothing on its other flavors either.
    named = {pool.name for team in site.platform.teams_on(site.name) for pool in _pools(site, team.model)}
    for index, pool in enumerate(spec.node_pools):
        if pool.gpus is None and pool.name not in named:
            continue
        place = site.document.locate(f"spec.nodePools[{index}]")
        yield site.item(
            APPLICATION,
            "ResourceFlavor",
            place,
            name=pool.name,
            labels=MANAGED_BY,
            node_labels=node_labels(pool),
            taints=[taint.model_dump() for taint in pool.taints],
            topology=topology_name(site) if pool.racks else None,
        )
        if pool.provisioning:
            check = provisioning_check(pool.name)
            yield site.item(
                APPLICATION,
                "ProvisioningRequestConfig",
                place,
                name=check,
                labels=MANAGED_BY,
                provisioning_class=pool.provisioning.class_name,
                parameters=pool.provisioning.parameters,
                resources=[gpu_resource(pool)] if pool.gpus else ["cpu"],
            )
            yield site.item(APPLICATION, "AdmissionCheck", place, name=check, labels=MANAGED_BY, config=check)
        if pool.devices == "dra" and pool.gpus:
            product = pool.gpus.product.replace("-", " ")
            yield site.item(
                APPLICATION,
                "DeviceClass",
                place,
                name=device_class(pool),
                labels=MANAGED_BY,
                selectors=[
                    "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",
                    f"device.attributes['gpu.nvidia.com'].productName == '{product}'",
                ],
            )


def _priorities(site: Site) -> Iterator[Item]:
    for level, (value, description) in PRIORITIES.items():
        for kind in ("WorkloadPriorityClass", "PriorityClass"):
            yield site.item(
                APPLICATION,
                kind,
                site.document.source,
                name=priority(level),
                labels=MANAGED_BY,
                value=value,
                description=description,
                preemption="Never" if level == "low" else "PreemptLowerPriority",
            )


def _cohorts(site: Site) -> Iterator[Item]:
    root = site.cluster.spec.cohort
    weight = "1" if site.cluster.spec.fair_sharing else None
    yield site.item(APPLICATION, "Cohort", site.document.source, name=root, labels=MANAGED_BY, parent=None, weight=None)
    queues = {queue for team in site.platform.teams_on(site.name) for queue in team_queues(site, team.model)}
    for queue in sorted(queues):
        yield site.item(
            APPLICATION,
            "Cohort",
            site.document.source,
            name=cohort(site, queue),
            labels=MANAGED_BY,
            parent=root,
            weight=weight,
        )


def _configuration(site: Site) -> Item:
    """Kueue reads its configuration from a ConfigMap, once, when it starts."""
    spec = site.cluster.spec
    frameworks = ["batch/job", "pod"]
    if spec.components.training_operator:
        frameworks.append("kubeflow.org/pytorchjob")
    if spec.components.trainer:
        frameworks += ["jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"]
    if spec.components.lws:
        frameworks.append("leaderworkerset.x-k8s.io/leaderworkerset")
    mappings = [
        {"name": gpu_resource(pool), "deviceClassNames": [device_class(pool)]}
        for pool in spec.node_pools
        if pool.devices == "dra"
    ]
    loads = [s.model.spec.weights.load_time.total_seconds() for s in site.platform.services_on(site.name)]
    configuration = site.templates.render(
        "KueueConfiguration",
        source=site.document.source,
        team_label=TEAM_LABEL,
        # A served model may wait ten minutes for its weights, and needs its time to compile.
        pods_ready=f"{int((900 + 2 * max(loads, default=0.0)) // 60)}m",
        frameworks=sorted(frameworks),
        fair_sharing=spec.fair_sharing,
        mappings=mappings,
        feature_gates={"DynamicResourceAllocation": True} if mappings else None,
    )
    return site.item(
        APPLICATION,
        "ConfigMap",
        site.document.source,
        name="kueue-manager-config",
        namespace="kueue-system",
        labels={**MANAGED_BY, "app.kubernetes.io/name": "kueue"},
        annotations=None,
        data={"controller_manager_config.yaml": emit(configuration)},
    )


def _inventory(site: Site) -> Item:
    """The nodes as data, for whoever must know them without the cluster (see blueprint.admission.nodes)."""
    levels = site.cluster.spec.topology
    pools = [
        {
            "name": pool.name,
            "nodes": pool.nodes,
            "labels": node_labels(pool),
            "taints": [taint.model_dump() for taint in pool.taints],
            "allocatable": {"cpu": pool.cpu, "memory": pool.memory, **advertised(pool)},
            "places": [
                {"nodes": rack.nodes, "labels": {levels.block: rack.block, levels.rack: rack.rack}}
                for rack in pool.racks
            ],
        }
        for pool in site.cluster.spec.node_pools
    ]
    inventory = {"kueue": site.cluster.spec.components.kueue, "pools": pools}
    return site.item(
        APPLICATION,
        "ConfigMap",
        site.document.source,
        name="platform-inventory",
        namespace="kueue-system",
        labels={**MANAGED_BY, INVENTORY_LABEL: "true"},
        annotations=None,
        data={"inventory.yaml": emit(inventory)},
    )
