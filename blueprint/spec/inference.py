"""InferenceService: a model, its shape on the GPUs, its promises and how a new version is let in."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from blueprint.spec.base import (
    API_VERSION,
    Cores,
    Duration,
    Host,
    Image,
    Metadata,
    Model,
    Name,
    Percent,
    Rate,
    RelativePath,
    Size,
    Version,
    fault,
)


class Engine(Model):
    """The vLLM that serves: the version decides flags and metrics, the image must be that version."""

    vllm: Version
    image: Image
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class Shape(Model):
    """GPUs of one replica: tensorParallel x pipelineParallel; more than one node means a LeaderWorkerSet.

    With `profile` each replica runs on one MIG slice: a CUDA process sees a single MIG device, so there is no
    tensor parallelism over slices.
    """

    pool: Name
    tensor_parallel: int = Field(default=1, ge=1)
    pipeline_parallel: int = Field(default=1, ge=1)
    nodes: int = Field(default=1, ge=1)
    profile: str | None = None
    cpu: Cores = "8"
    memory: Size
    shared_memory: Size = "16Gi"

    @property
    def gpus_per_pod(self) -> int:
        """GPUs (or slices) that one pod asks for."""
        return self.tensor_parallel * self.pipeline_parallel // self.nodes

    @model_validator(mode="after")
    def _divides(self) -> Shape:
        world = self.tensor_parallel * self.pipeline_parallel
        if world % self.nodes:
            raise fault("nodes", f"{world} GPUs (tensor x pipeline) do not divide over {self.nodes} nodes")
        if self.profile and world > 1:
            raise fault("profile", "a process sees one MIG device: use tensorParallel 1 and more replicas")
        return self


class Weights(Model):
    """Where the weights come from: a claim that holds them, and the version whose arrival a replica waits for."""

    claim: Name
    path: RelativePath
    version: str
    size: Size
    load_time: Duration = Field(default="5m", validate_default=True)


class Adapter(Model):
    """A LoRA adapter; each replica loads its own read-only copy."""

    name: Name
    path: RelativePath


class Replicas(Model):
    """How many, and what makes them more: waiting requests or requests per second, per replica."""

    min: int = Field(default=1, ge=1)
    max: int = Field(default=1, ge=1)
    scale_on: Literal["waiting-requests", "request-rate"] | None = None
    target: Rate | int | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Replicas:
        if self.max < self.min:
            raise fault("max", f"max {self.max} is less than min {self.min}")
        if self.max > self.min and self.scale_on is None:
            raise fault("max", "min and max differ, so say scaleOn: waiting-requests or request-rate")
        return self


class Quantile(Model):
    """One quantile of a latency and its bound; exactly one is given."""

    p50: Duration | None = None
    p90: Duration | None = None
    p95: Duration | None = None
    p99: Duration | None = None

    @model_validator(mode="after")
    def _one(self) -> Quantile:
        if sum(v is not None for v in (self.p50, self.p90, self.p95, self.p99)) != 1:
            raise ValueError("give exactly one of p50, p90, p95, p99")
        return self


class Slo(Model):
    """Promises. `first_token` and `latency` are upper bounds, `output_rate` is tokens per second that 95 % of
    requests reach, `errors` the share of requests that may fail."""

    first_token: Quantile | None = None
    latency: Quantile | None = None
    output_rate: Rate | None = None
    errors: Percent | None = None

    @model_validator(mode="after")
    def _promises_something(self) -> Slo:
        if not any((self.first_token, self.latency, self.output_rate, self.errors)):
            raise ValueError("an SLO without any promise")
        return self


class Rollout(Model):
    """A canary: shares of traffic in rising order; analysis runs at each step and aborts on a broken promise."""

    canary: tuple[Percent, ...] = Field(min_length=1)
    pause: Duration = Field(default="5m", validate_default=True)
    abort_on: Literal["slo"] = "slo"

    @model_validator(mode="after")
    def _rises(self) -> Rollout:
        if any(a >= b for a, b in zip(self.canary, self.canary[1:], strict=False)):
            raise fault("canary", "the shares of a canary rise from step to step")
        if self.canary[-1] >= 1:
            raise fault("canary", "100% is what follows the last step; leave it out")
        return self


class Traffic(Model):
    """Reach: the host is `<name>.<gateway domain>` unless given; `timeout` bounds one request."""

    host: Host | None = None
    timeout: Duration = Field(default="10m", validate_default=True)
    clients: tuple[Name, ...] = ()


class InferenceServiceSpec(Model):
    """The body of an InferenceService; `replicas_on` gives single clusters (a smaller stage) their own numbers."""

    team: Name
    clusters: tuple[Name, ...] = Field(min_length=1)
    model: str
    served_name: str | None = None
    engine: Engine
    gpus: Shape
    weights: Weights
    context: int | None = Field(default=None, ge=256)
    adapters: tuple[Adapter, ...] = ()
    replicas: Replicas = Replicas()
    replicas_on: dict[Name, Replicas] = {}
    slo: Slo | None = None
    rollout: Rollout | None = None
    traffic: Traffic = Traffic()
    drain: Duration = Field(default="2m", validate_default=True)
    priority: Literal["low", "normal", "high"] = "high"

    def replicas_for(self, cluster: str) -> Replicas:
        """The replicas on one cluster: `replicas` unless `replicasOn` says otherwise."""
        return self.replicas_on.get(cluster, self.replicas)

    @model_validator(mode="after")
    def _canary_can_judge(self) -> InferenceServiceSpec:
        if self.rollout and self.slo is None:
            raise fault("rollout", "a canary that aborts on the SLO needs slo")
        if self.rollout and self.gpus.nodes > 1:
            raise fault(
                "rollout", "Argo Rollouts cannot canary a LeaderWorkerSet: leave rollout out for more than one node"
            )
        return self


class InferenceService(Model):
    """A served model."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["InferenceService"]
    metadata: Metadata
    spec: InferenceServiceSpec
