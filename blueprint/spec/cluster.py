"""Cluster: the machines, the components and what the whole cluster shares."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from blueprint.spec.base import (
    API_VERSION,
    Cores,
    Duration,
    Host,
    Image,
    LabelKey,
    LabelValue,
    Metadata,
    Model,
    Name,
    Size,
    Url,
    Version,
    fault,
)


class Environment(StrEnum):
    """Where a cluster stands in the promotion order."""

    PRODUCTION = "production"
    PREPRODUCTION = "preproduction"
    DEVELOPMENT = "development"


class Taint(Model):
    """A node taint."""

    key: LabelKey
    value: LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Mig(Model):
    """How the GPUs of a pool are cut; `layout` maps a profile to its number on each GPU."""

    strategy: Literal["single", "mixed"]
    layout: dict[str, Annotated[int, Field(ge=1)]] = Field(min_length=1)


class Gpus(Model):
    """The GPUs of one node: the product as in the node label `nvidia.com/gpu.product`."""

    product: str
    count: int = Field(ge=1, le=32)
    mig: Mig | None = None


class NodePool(Model):
    """Nodes of one shape. `cpu` and `memory` are what one node offers to pods (allocatable).

    `devices: dra` hands the GPUs out by Dynamic Resource Allocation, through a DeviceClass (named as the pool unless
    `device_class` says otherwise). `racks` spreads the nodes over the topology: one entry a rack, the block and the
    number of nodes in it.
    """

    class Rack(Model):
        """One rack: the block it stands in and its nodes."""

        block: Name
        rack: Name
        nodes: int = Field(ge=1)

    name: Name
    purpose: Literal["training", "serving", "shared", "system"] = "shared"
    nodes: int = Field(ge=1, le=10000)
    cpu: Cores
    memory: Size
    gpus: Gpus | None = None
    labels: dict[LabelKey, LabelValue] = {}
    taints: tuple[Taint, ...] = ()
    racks: tuple[Rack, ...] = ()
    devices: Literal["plugin", "dra"] = "plugin"
    device_class: Name | None = None
    single_numa_node: bool = True

    @model_validator(mode="after")
    def _class_is_for_claims(self) -> NodePool:
        if self.device_class and self.devices != "dra":
            raise fault("deviceClass", "deviceClass means something only with devices: dra")
        return self

    @model_validator(mode="after")
    def _racks_hold_all_nodes(self) -> NodePool:
        placed = sum(rack.nodes for rack in self.racks)
        if self.racks and placed != self.nodes:
            raise fault("racks", f"the racks hold {placed} nodes, the pool has {self.nodes}")
        return self


class TopologyLevels(Model):
    """Node labels of block and rack; the host is always the last level."""

    block: LabelKey = "topology.blueprint/block"
    rack: LabelKey = "topology.blueprint/rack"


class Components(Model):
    """Versions of what runs in the cluster; a component that is absent is not used."""

    kubernetes: Version = "1.35.4"
    kueue: Version = "0.17.0"
    training_operator: Version | None = "1.9.3"
    trainer: Version | None = "2.2.0"
    lws: Version | None = "0.7.0"
    argo_rollouts: Version | None = "1.10.2"
    argocd: Version = "3.6.1"
    kyverno: Version | None = "1.19.1"
    gatekeeper: Version | None = "3.23.1"
    keda: Version | None = "2.21.0"
    prometheus_operator: Version | None = "0.93.1"
    istio: Version | None = "1.32.0"
    cilium: Version | None = None
    velero: Version | None = "1.18.3"


class Backup(Model):
    """Where Velero writes: an object store bucket, and how often.

    Volumes above `volumes_up_to` are left out: data sets that can be fetched again.
    """

    provider: str = "aws"
    bucket: str
    region: str = ""
    endpoint: Url | None = None
    schedule: str = "17 2 * * *"
    keep: Duration = Field(default="30d", validate_default=True)
    volumes_up_to: Size = "1Ti"


class Monitoring(Model):
    """The Prometheus that scrapes, judges and scales; `labels` are what its selectors ask of monitors and rules."""

    namespace: Name = "monitoring"
    address: Url = "http://prometheus-operated.monitoring.svc:9090"
    scrape_interval: Duration = Field(default="15s", validate_default=True)
    labels: dict[LabelKey, LabelValue] = {}


class Gateway(Model):
    """The Istio gateway that serves models, as `namespace/name`."""

    name: str = Field(default="istio-ingress/ai-gateway", pattern=r"^[a-z0-9][-a-z0-9]*/[a-z0-9][-.a-z0-9]*$")
    domain: Host

    @property
    def namespace(self) -> str:
        """The namespace of the gateway, where its pods run."""
        return self.name.partition("/")[0]


class Storage(Model):
    """Storage classes: `shared` can be mounted by many nodes at once."""

    block: Name = "standard"
    shared: Name = "shared"
    snapshots: Name | None = None


class ClusterSpec(Model):
    """The body of a Cluster."""

    environment: Environment
    server: Url = "https://kubernetes.default.svc"
    node_pools: tuple[NodePool, ...] = Field(min_length=1)
    topology: TopologyLevels = TopologyLevels()
    cohort: Name = "shared"
    fair_sharing: bool = True
    components: Components = Components()
    monitoring: Monitoring = Monitoring()
    gateway: Gateway | None = None
    storage: Storage = Storage()
    backup: Backup | None = None
    tools_image: Image | None = None
    platform_admins: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _pools_have_own_names(self) -> ClusterSpec:
        names = [pool.name for pool in self.node_pools]
        for name in names:
            if names.count(name) > 1:
                raise fault("nodePools", f"two node pools are called {name}")
        return self

    def pool(self, name: str) -> NodePool | None:
        """The pool of that name."""
        return next((pool for pool in self.node_pools if pool.name == name), None)


class Cluster(Model):
    """One Kubernetes cluster."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["Cluster"]
    metadata: Metadata
    spec: ClusterSpec
