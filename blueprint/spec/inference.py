"""InferenceService: a model, its shape on the GPUs, its promises and how a new version is let in."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from blueprint.quantity import parse_quantity
from blueprint.spec.base import (
    API_VERSION,
    Cores,
    Duration,
    Host,
    Image,
    LabelValue,
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

#: Arguments of vLLM that follow from a field of the spec: the field wins, so they may not be written a second time.
RESERVED_ARGS: Final = {
    "--model": "weights",
    "--served-model-name": "servedName",
    "--tensor-parallel-size": "gpus.tensorParallel",
    "-tp": "gpus.tensorParallel",
    "--pipeline-parallel-size": "gpus.pipelineParallel",
    "-pp": "gpus.pipelineParallel",
    "--nnodes": "gpus.nodes",
    "-n": "gpus.nodes",
    "--max-model-len": "context",
    "--enable-lora": "adapters",
    "--lora-modules": "adapters",
    "--max-loras": "adapters",
    "--max-lora-rank": "adapters",
    "--shutdown-timeout": "drain",
    "--custom-histogram-buckets": "slo",
    "--port": "",
    "--host": "",
    "--disable-log-stats": "",
}
#: A switch that lets clients load weights into a running server, from wherever they like.
RUNTIME_LORA: Final = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"


class Engine(Model):
    """The vLLM that serves: the version decides flags and metrics, the image must be that version.

    `args` are added to those that follow from the other fields.
    """

    vllm: Version
    image: Image
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}

    @model_validator(mode="after")
    def _leaves_what_follows(self) -> Engine:
        for arg in self.args:
            option = arg.partition("=")[0]
            option = option.replace("_", "-") if option.startswith("--") else option
            field = RESERVED_ARGS.get(option.replace("--no-", "--", 1))
            if field is not None:
                raise fault("args", f"{option} is not yours to set" + (f": it follows from {field}" if field else ""))
        if RUNTIME_LORA in self.env:
            raise fault("env", f"{RUNTIME_LORA} lets clients change a running server: write adapters instead")
        return self


class Shape(Model):
    """GPUs of one replica: tensorParallel x pipelineParallel; more than one node means a LeaderWorkerSet.

    `shared_memory` is a part of `memory`: a quarter of it, at most 16Gi, unless given.
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
    shared_memory: Size | None = None

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
        if self.shared_memory and parse_quantity(self.shared_memory) >= parse_quantity(self.memory):
            raise fault("sharedMemory", f"sharedMemory {self.shared_memory} is taken from memory {self.memory}")
        return self


class Weights(Model):
    """Where the weights come from: a claim that holds them, and the version whose arrival a replica waits for.

    The files lie in the folder `<path>/<version>` of the claim, so that two versions can be served beside each other
    during a canary. The file `SHA256SUMS` in it names all others and is written last.
    """

    claim: Name
    path: RelativePath
    version: Annotated[LabelValue, Field(min_length=1)]
    size: Size
    load_time: Duration = Field(default="5m", validate_default=True)


class Adapter(Model):
    """A LoRA adapter in a folder of the claim of the weights; each replica loads its own read-only copy."""

    name: Name
    path: RelativePath
    rank: int = Field(default=16, ge=1, le=512)


class Replicas(Model):
    """How many, and what makes them more: `target` waiting requests, or requests per second, for each replica."""

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
        if self.scale_on and not self.target:
            raise fault("target", f"scaleOn {self.scale_on} needs a target, the load of one replica")
        if self.scale_on == "waiting-requests" and not isinstance(self.target, int):
            raise fault("target", "waiting requests are a number, not a rate")
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
        if any(share * 100 % 1 or not share for share in self.canary):
            raise fault("canary", "the shares of a canary are whole percents from 1% on")
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

    @model_validator(mode="after")
    def _models_have_own_names(self) -> InferenceServiceSpec:
        names = [self.served_name or self.model, *(adapter.name for adapter in self.adapters)]
        if twice := [name for name in names if names.count(name) > 1]:
            raise fault("adapters", f"two models are called {twice[0]}: a client asks for one by its name")
        return self


class InferenceService(Model):
    """A served model."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["InferenceService"]
    metadata: Metadata
    spec: InferenceServiceSpec

    @model_validator(mode="after")
    def _not_a_setting(self) -> InferenceService:
        # A Service `vllm` puts VLLM_PORT=tcp://… into the pods of its namespace (vllm envs.py get_vllm_port).
        if self.metadata.name == "vllm" or self.metadata.name.startswith("vllm-"):
            raise fault("metadata.name", "a Service of this name would set VLLM_ variables in pods")
        return self
