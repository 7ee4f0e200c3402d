"""Cluster: the machines, the components and what the whole cluster shares."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from blueprint.cron import schedule_problem
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
    shown,
)


class Environment(StrEnum):
    """Where a cluster stands in the promotion order."""

    PRODUCTION = "production"
    PREPRODUCTION = "preproduction"
    DEVELOPMENT = "development"


class Taint(Model):
    """A node taint."""

    key: LabelKey
    """Key of the taint."""
    value: LabelValue = ""
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """What happens to pods that do not tolerate it."""


class Mig(Model):
    """How the GPUs of a pool are cut."""

    strategy: Literal["single", "mixed"]
    """`mixed` gives each profile a resource of its own, `single` keeps `nvidia.com/gpu` for all slices."""
    layout: dict[str, Annotated[int, Field(ge=1)]] = Field(min_length=1)
    """How many slices of each profile every GPU is cut into."""

    @model_validator(mode="after")
    def _single_is_one_profile(self) -> Mig:
        # NVIDIA k8s-device-plugin v0.17: with strategy single, slices of two sizes on a node are an error.
        if self.strategy == "single" and len(self.layout) > 1:
            raise fault("layout", f"strategy single takes one profile, not {' and '.join(self.layout)}: use mixed")
        return self


class Gpus(Model):
    """The GPUs of one node."""

    product: Annotated[LabelValue, Field(min_length=1)]
    """As in the node label `nvidia.com/gpu.product`."""
    count: int = Field(ge=1, le=32)
    """GPUs of one node."""
    mig: Mig | None = None
    """How each GPU is cut; whole GPUs without it."""


class Provisioning(Model):
    """Nodes that an autoscaler brings when Kueue asks for them, by ProvisioningRequests of this class."""

    class_name: str = Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)
    """The provisioning class of the autoscaler."""
    parameters: dict[str, str] = Field(default={}, max_length=100)
    """What the autoscaler wants to know besides."""


class NodePool(Model):
    """Nodes of one shape; `cpu` and `memory` are what one node offers to pods (allocatable)."""

    class Rack(Model):
        """One rack: the block it stands in and its nodes."""

        block: Name
        """The block it stands in."""
        rack: Name
        """Its name, the value of the rack label."""
        nodes: int = Field(ge=1)
        """Nodes of the pool in this rack."""

    name: Name
    """Becomes the ResourceFlavor and the value of the node label `platform.blueprint/pool`."""
    purpose: Literal["training", "serving", "shared", "system"] = "shared"
    """Which queue serves the pool: teams get a queue for each purpose."""
    nodes: int = Field(ge=1, le=10000)
    """Number of nodes."""
    cpu: Cores
    """Cores that one node offers to pods."""
    memory: Size
    """Memory that one node offers to pods."""
    gpus: Gpus | None = None
    """GPUs of each node; a pool without them gets a flavor only where a team has a quota of it."""
    labels: dict[LabelKey, LabelValue] = {}
    """Further labels that all its nodes carry; part of the flavor."""
    taints: tuple[Taint, ...] = ()
    """Taints of its nodes; the flavor tolerates them."""
    racks: tuple[Rack, ...] = ()
    """Where the nodes stand; their numbers add up to `nodes`. Makes the flavor topology-aware."""
    devices: Literal["plugin", "dra"] = "plugin"
    """`dra` hands GPUs out by claims (Dynamic Resource Allocation), `plugin` by the device plugin."""
    device_class: Name | None = None
    """Name of the DeviceClass of a `dra` pool; that of the pool unless given."""
    provisioning: Provisioning | None = None
    """For a pool whose nodes come on demand: Kueue admits a workload when the autoscaler has promised them."""
    numa_nodes: int = Field(default=2, ge=1, le=16)
    """NUMA nodes of each machine; its GPUs are spread evenly over them."""
    single_numa_node: bool = False
    """Whether the kubelets refuse a pod whose CPUs and GPUs do not fit one NUMA node; else they align what they can."""

    @model_validator(mode="after")
    def _class_is_for_claims(self) -> NodePool:
        if self.device_class and self.devices != "dra":
            raise fault("deviceClass", "deviceClass means something only with devices: dra")
        return self

    @model_validator(mode="after")
    def _labels_leave_what_follows(self) -> NodePool:
        for key, field in (("platform.blueprint/pool", "name"), ("nvidia.com/gpu.product", "gpus.product")):
            if key in self.labels:
                raise fault(f"labels.{key}", f"{key} is not yours to set: it follows from {field}")
        return self

    @model_validator(mode="after")
    def _racks_hold_all_nodes(self) -> NodePool:
        placed = sum(rack.nodes for rack in self.racks)
        if self.racks and placed != self.nodes:
            raise fault("racks", f"the racks hold {placed} nodes, the pool has {self.nodes}")
        return self

    @model_validator(mode="after")
    def _racks_stand_here_once(self) -> NodePool:
        # Racks of two blocks may have one name: a domain of Kueue's topology is the whole path.
        seen: dict[tuple[str, str], int] = {}
        for index, rack in enumerate(self.racks):
            if (first := seen.setdefault((rack.block, rack.rack), index)) != index:
                message = f"rack {rack.rack} of block {rack.block} stands here a second time: it is entry {first + 1}"
                raise fault(f"racks.{index}", f"{message} already")
        return self


class TopologyLevels(Model):
    """Node labels of block and rack; the host is always the last level."""

    block: LabelKey = "topology.blueprint/block"
    """Node label that holds the block."""
    rack: LabelKey = "topology.blueprint/rack"
    """Node label that holds the rack."""


class Components(Model):
    """Versions of what runs in the cluster; `null` for what does not."""

    kubernetes: Version = "1.35.4"
    """Version of the API server; pins the Pod Security Standards."""
    kueue: Version = "0.17.0"
    """Queues and quotas."""
    training_operator: Version | None = "1.9.3"
    """Runs PyTorchJobs."""
    trainer: Version | None = "2.2.0"
    """Runs TrainJobs."""
    lws: Version | None = "0.7.0"
    """LeaderWorkerSet: models on several nodes."""
    argo_rollouts: Version | None = "1.10.2"
    """Canaries."""
    argocd: Version = "3.6.1"
    """Delivery."""
    kyverno: Version | None = "1.19.1"
    """A policy engine."""
    gatekeeper: Version | None = "3.23.1"
    """A policy engine."""
    keda: Version | None = "2.21.0"
    """Scaling by load."""
    prometheus_operator: Version | None = "0.93.1"
    """Monitors, rules and what judges a canary."""
    istio: Version | None = "1.32.0"
    """Mesh and gateway of served models."""
    cilium: Version | None = None
    """The network."""
    velero: Version | None = "1.18.3"
    """Backups."""


class Backup(Model):
    """Where Velero writes, and how often."""

    provider: str = Field(default="aws", pattern=r"^\S+$")
    """The plugin of Velero that writes."""
    bucket: str = Field(pattern=r"^\S+$")
    """Bucket of the object store."""
    region: str | None = Field(default=None, min_length=1, pattern=r"^\S+$")
    """Region of the bucket."""
    endpoint: Url | None = None
    """Address of an object store of one's own."""
    schedule: str = "17 2 * * *"
    """When, as a cron line."""
    keep: Duration = Field(default="30d", validate_default=True)
    """How long a backup is kept."""
    volumes_up_to: Size = "1Ti"
    """Larger volumes are left out: data sets that can be fetched again."""

    @model_validator(mode="after")
    def _is_kept(self) -> Backup:
        # Velero takes a ttl of 0 for its own default of 30 days.
        if self.keep.total_seconds() < 3600:
            raise fault("keep", "a backup is kept for 1h at least")
        return self

    @model_validator(mode="after")
    def _has_a_time(self) -> Backup:
        zone, _, rest = self.schedule.partition(" ")
        if problem := schedule_problem(rest if "TZ=" in zone else self.schedule):
            raise fault("schedule", f"{shown(self.schedule)} is no schedule: {problem}; write it such as 17 2 * * *")
        return self


class Monitoring(Model):
    """The Prometheus that scrapes, judges and scales."""

    namespace: Name = "monitoring"
    """Where Prometheus runs; tenants let it in."""
    address: Url = "http://prometheus-operated.monitoring.svc:9090"
    """Where canaries and scalers ask it."""
    scrape_interval: Duration = Field(default="15s", validate_default=True)
    """How often it scrapes; windows of rates are at least four times as long."""
    labels: dict[LabelKey, LabelValue] = {}
    """What its selectors ask of monitors and rules."""

    @model_validator(mode="after")
    def _scrapes(self) -> Monitoring:
        # Prometheus forgets a sample after five minutes: with longer intervals series have gaps.
        if not 1 <= self.scrape_interval.total_seconds() <= 300:
            raise fault("scrapeInterval", "scrapeInterval is 1s at least and 5m at most")
        return self


class Gateway(Model):
    """The Istio gateway that serves models."""

    name: str = Field(default="istio-ingress/ai-gateway", pattern=r"^[a-z0-9][-a-z0-9]*/[a-z0-9][-.a-z0-9]*$")
    """The gateway, as `namespace/name`."""
    domain: Host
    """Models are reached at `<service>.<domain>`."""

    @property
    def namespace(self) -> str:
        """The namespace of the gateway, where its pods run."""
        return self.name.partition("/")[0]


class Storage(Model):
    """Classes of volumes and snapshots."""

    block: Name = "standard"
    """StorageClass for volumes of one node."""
    shared: Name = "shared"
    """StorageClass for volumes that many nodes mount at once."""
    snapshots: Name | None = None
    """VolumeSnapshotClass of the backups; without it only volumes that a running pod mounts are saved."""


class ClusterSpec(Model):
    """The body of a Cluster."""

    environment: Environment
    """What the cluster is for. Recorded: nothing is rendered from it."""
    server: Url = "https://kubernetes.default.svc"
    """Its API server, as Argo CD reaches it. The default is the cluster that Argo CD runs in."""
    node_pools: tuple[NodePool, ...] = Field(min_length=1)
    """The machines; names are unique."""
    topology: TopologyLevels = TopologyLevels()
    """Node labels that say where a node stands."""
    cohort: Name = "shared"
    """Name of the root cohort."""
    fair_sharing: bool = True
    """Whether idle quota goes round by the weights of teams, and preemption with it."""
    components: Components = Components()
    """What runs in the cluster, and in which version; `null` for what does not."""
    monitoring: Monitoring = Monitoring()
    """The Prometheus of the cluster."""
    gateway: Gateway | None = None
    """Where models are reached; without it only inside the cluster."""
    storage: Storage = Storage()
    """Classes of volumes."""
    backup: Backup | None = None
    """Where backups go; none without it."""
    tools_image: Image | None = None
    """Image of the init containers of served models, with a shell; the image of the engine unless given."""
    platform_admins: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Groups of the identity provider that run the platform."""

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
