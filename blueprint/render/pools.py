"""What a node pool means to the scheduler: resource names, node labels and shares of a node."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from blueprint.quantity import parse_quantity
from blueprint.spec.cluster import NodePool
from blueprint.spec.team import Quota

#: The node label that says which pool a node belongs to.
POOL_LABEL = "platform.blueprint/pool"
#: The label of a tenant namespace, with the team's name.
TEAM_LABEL = "platform.blueprint/team"
#: The label of a ConfigMap that says which nodes there are.
INVENTORY_LABEL = "platform.blueprint/inventory"
#: The domain of resources that Kueue counts for DeviceClasses.
DEVICE_DOMAIN = "devices.blueprint"

GPU = "nvidia.com/gpu"
PRODUCT_LABEL = "nvidia.com/gpu.product"


def node_labels(pool: NodePool) -> dict[str, str]:
    """Labels that all nodes of the pool carry and no other node does.

    The GPU product is one of them unless MIG strategy `single` changes what the node says of itself
    (NVIDIA k8s-device-plugin: `<product>-MIG-<profile>`).
    """
    labels = {POOL_LABEL: pool.name, **pool.labels}
    if pool.gpus and not (pool.gpus.mig and pool.gpus.mig.strategy == "single"):
        labels[PRODUCT_LABEL] = pool.gpus.product
    return labels


def device_class(pool: NodePool) -> str:
    """The DeviceClass of a pool whose GPUs come by Dynamic Resource Allocation."""
    return pool.device_class or pool.name


def gpu_resource(pool: NodePool, profile: str | None = None) -> str:
    """The resource under which Kueue counts a GPU, or a slice of that profile.

    Strategy `mixed` advertises `nvidia.com/mig-<profile>` with `.` for `+`; strategy `single` keeps `nvidia.com/gpu`.
    """
    if pool.devices == "dra":
        return f"{DEVICE_DOMAIN}/{device_class(pool)}"
    if profile and pool.gpus and pool.gpus.mig and pool.gpus.mig.strategy == "mixed":
        return f"nvidia.com/mig-{profile.replace('+', '.')}"
    return GPU


def units_per_node(pool: NodePool) -> int:
    """GPUs of a node, or all its MIG slices when the GPUs are cut."""
    if pool.gpus is None:
        return 0
    if pool.gpus.mig:
        return pool.gpus.count * sum(pool.gpus.mig.layout.values())
    return pool.gpus.count


def advertised(pool: NodePool) -> dict[str, str]:
    """The GPU resources that one node of the pool offers to pods; none where they are handed out by claims."""
    if pool.gpus is None or pool.devices == "dra":
        return {}
    if pool.gpus.mig and pool.gpus.mig.strategy == "mixed":
        slices = {gpu_resource(pool, profile): number for profile, number in pool.gpus.mig.layout.items()}
        return {name: str(pool.gpus.count * number) for name, number in slices.items()}
    return {GPU: str(units_per_node(pool))}


@dataclass(frozen=True, slots=True)
class Share:
    """CPU (whole cores) and memory (whole GiB) that belong to a number of GPUs."""

    cpu: int
    memory: int


def share(pool: NodePool, gpus: int) -> Share:
    """CPU and memory in proportion: `gpus` of a node's GPUs get that part of what the node offers, rounded down."""
    units = units_per_node(pool)
    if units == 0:
        return Share(0, 0)
    part = Fraction(gpus, units)
    cpu = parse_quantity(pool.cpu) * part
    memory = parse_quantity(pool.memory) * part / 2**30
    return Share(int(cpu), int(memory))


def queue_of(pool: NodePool) -> str:
    """The queue that serves a pool: its purpose, apart for DRA, and apart where topology-awareness is unusual.

    A queue is either wholly topology-aware or not at all: Kueue refuses a pod set without a topology wish on a
    topology-aware flavor of a mixed queue (kueue v0.17.0 pkg/scheduler/flavorassigner/tas_flavorassigner.go).
    Training usually has racks, everything else has none.
    """
    dra = pool.devices == "dra"
    usual = pool.purpose == "training" and not dra
    unusual = "" if bool(pool.racks) == usual else "-plain" if usual else "-racked"
    return f"{pool.purpose}{'-dra' if dra else ''}{unusual}"


def resources_of(quota: Quota, pool: NodePool) -> str:
    """The GPU resource that a quota is about."""
    return gpu_resource(pool, quota.profile)
