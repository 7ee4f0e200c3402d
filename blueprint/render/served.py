"""One served model on one cluster: its names, and what the cluster can do for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blueprint.finding import Confidence, Finding, Ref, Severity
from blueprint.quantity import parse_quantity
from blueprint.render.names import name
from blueprint.render.plan import Item
from blueprint.render.pools import gpu_resource, queue_of
from blueprint.render.queues import priority
from blueprint.render.site import Site
from blueprint.render.tenancy import team_labels
from blueprint.spec import Document, InferenceService, Team
from blueprint.spec.cluster import NodePool
from blueprint.spec.inference import InferenceServiceSpec, Replicas, Rollout

APP = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
#: Tells the pod of a group that serves from those that only work for it.
ROLE = "platform.blueprint/role"

#: The port of vLLM: API, health and metrics.
HTTP = 8000
#: The port of the sidecar's agent that joins the proxy's metrics and the application's; it is never redirected to the
#: proxy, so it answers without mTLS while the serving port insists on it (istio.io docs/ops/integrations/prometheus).
MERGED_METRICS = 15020

#: A replica may take half as long again as it is said to, and never less than compiling and capturing graphs take.
START_MARGIN = 1.5
START_FLOOR = 300.0
#: How long the first init container waits for the weights.
WEIGHTS_WAIT = 600
#: Room for a queue, a new node and the pull of an image of some 10 GB.
ADMISSION = 600
#: Seconds in which gateways and proxies drop a pod that is going away.
LEAVE = 15

_SHM_MOST = 16 * 2**30


@dataclass(frozen=True, slots=True)
class Served:
    """A service on a cluster; every object of its Application is rendered from this."""

    site: Site
    document: Document[InferenceService]
    team: Team
    pool: NodePool

    @property
    def spec(self) -> InferenceServiceSpec:
        """The body of the spec."""
        return self.document.model.spec

    @property
    def name(self) -> str:
        """The name of the service, of its Service and of what runs its pods."""
        return name("Service", self.document.model.metadata.name)

    @property
    def canary_name(self) -> str:
        """The Service of the version on trial."""
        return name("Service", self.name, "canary")

    @property
    def account(self) -> str:
        """The service account, and the name of the network policy: apart from those that every team has."""
        return name("ServiceAccount", "serve", self.name)

    @property
    def namespace(self) -> str:
        """The team's namespace."""
        return self.team.namespace

    @property
    def application(self) -> str:
        """The Application that holds everything of the service but its claim."""
        return name("Application", "serve", self.document.model.metadata.name)

    @property
    def selector(self) -> dict[str, str]:
        """What all pods of the service carry and no others; a training run may have the same name."""
        return {APP: self.name, COMPONENT: "inference"}

    @property
    def entrance(self) -> dict[str, str]:
        """What the pods carry that answer requests: the leaders where a replica has several pods."""
        return {**self.selector, ROLE: "leader"} if self.grouped else self.selector

    @property
    def labels(self) -> dict[str, str]:
        """The labels of every object."""
        return {**team_labels(self.team), **self.selector}

    @property
    def queued(self) -> dict[str, str]:
        """The labels by which Kueue takes a pod (or a group) into the team's queue."""
        return {
            "kueue.x-k8s.io/queue-name": name("LocalQueue", queue_of(self.pool)),
            "kueue.x-k8s.io/priority-class": priority(self.spec.priority),
        }

    @property
    def resource(self) -> str:
        """The GPU resource of a pod."""
        return gpu_resource(self.pool, self.spec.gpus.profile)

    @property
    def by_claim(self) -> bool:
        """Whether GPUs come by Dynamic Resource Allocation."""
        return self.pool.devices == "dra"

    @property
    def grouped(self) -> bool:
        """Whether a replica is a group of pods on several nodes."""
        return self.spec.gpus.nodes > 1

    @property
    def gpus(self) -> int:
        """GPUs or slices of one replica."""
        return self.spec.gpus.gpus_per_pod * self.spec.gpus.nodes

    @property
    def shared_memory(self) -> str:
        """The size of /dev/shm, as a quantity."""
        if self.spec.gpus.shared_memory:
            return self.spec.gpus.shared_memory
        quarter = int(parse_quantity(self.spec.gpus.memory) / 4 / 2**20)
        return f"{min(quarter, _SHM_MOST // 2**20)}Mi"

    @property
    def rollout(self) -> Rollout | None:
        """The canary, where the cluster can run one."""
        return self.spec.rollout if self.site.cluster.spec.components.argo_rollouts and not self.grouped else None

    @property
    def meshed(self) -> bool:
        """Whether the pods have a sidecar."""
        return self.site.cluster.spec.components.istio is not None

    @property
    def routed(self) -> bool:
        """Whether a canary gets its share by weights of traffic; without mesh or gateway it does by counts of pods."""
        return self.rollout is not None and self.meshed and self.site.cluster.spec.gateway is not None

    @property
    def watched(self) -> bool:
        """Whether monitors and rules mean anything on this cluster."""
        return self.site.cluster.spec.components.prometheus_operator is not None

    @property
    def replicas(self) -> Replicas:
        """The replicas on this cluster."""
        return self.spec.replicas_for(self.site.name)

    @property
    def scaled(self) -> bool:
        """Whether load decides how many replicas there are."""
        components = self.site.cluster.spec.components
        return self.replicas.max > self.replicas.min and components.keda is not None and self.watched

    @property
    def most(self) -> int:
        """The largest number of replicas between two updates."""
        return self.replicas.max if self.scaled else self.replicas.min

    @property
    def start(self) -> int:
        """Seconds that a replica may take from its first process to the first answer."""
        wanted = max(self.spec.weights.load_time.total_seconds() * START_MARGIN, START_FLOOR)
        return int(-(-wanted // 10) * 10)

    @property
    def deadline(self) -> int:
        """Seconds after which an update without progress has failed: admission, weights and start."""
        return ADMISSION + WEIGHTS_WAIT + self.start

    @property
    def drain(self) -> int:
        """Seconds that requests under way get when a replica stops."""
        return int(self.spec.drain.total_seconds())

    def window(self, wanted: float) -> int:
        """A window for rates, in seconds: as wanted, but at least four scrapes, so that one that fails does no harm."""
        return int(max(wanted, 4 * self.site.cluster.spec.monitoring.scrape_interval.total_seconds()))

    def item(self, template: str, *, needs: tuple[Ref, ...] = (), **values: object) -> Item:
        """Render an object of the service's Application; name, namespace and labels are the service's unless given."""
        common = {"name": self.name, "namespace": self.namespace, "labels": self.labels}
        return self.site.item(self.application, template, self.document.source, needs=needs, **{**common, **values})

    def problem(self, code: str, message: str, path: str, fix: str, severity: Severity = Severity.ERROR) -> None:
        """Note a wish that this cluster cannot meet, at the field that says it."""
        at = self.document.locate(path)
        text = f"{message} (on {self.site.name})"
        sure = Confidence.CERTAIN if severity is Severity.ERROR else Confidence.LIKELY
        self.site.problem(Finding(code, text, at, severity, sure, path=path, fix=fix))


def served(site: Site) -> Iterator[Served]:
    """The services of a cluster; those whose team or pool is missing have findings already."""
    for document in site.platform.services_on(site.name):
        team = site.platform.team(document.model.spec.team)
        pool = site.cluster.spec.pool(document.model.spec.gpus.pool)
        if team is not None and pool is not None:
            yield Served(site, document, team.model, pool)
