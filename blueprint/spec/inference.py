"""InferenceService: a model, its shape on the GPUs, its promises and how a new version is let in."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from blueprint.quantity import parse_quantity
from blueprint.spec.base import (
    API_VERSION,
    Cores,
    Duration,
    EnvName,
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
#: As model hubs have it: `organisation/name`; no blanks, and no `$(…)`, which Kubernetes would expand in an argument.
ModelName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$", max_length=200)]
#: The version in a tag of vLLM's own images, beside the digest; another image counts its versions by itself.
_OWN_TAG: Final = re.compile(r"/vllm(?:-openai)?:v?(\d+\.\d+\.\d+)[^/@]*@")
#: Tokens a second of one request, beyond what any machine does; buckets of vLLM are no finer either.
_FASTEST: Final = 10000


class Engine(Model):
    """The vLLM that serves."""

    vllm: Version
    """Version of vLLM; decides flags and metrics."""
    image: Image
    """The image, which must be that version."""
    args: tuple[str, ...] = ()
    """Further arguments of `vllm serve`; those that follow from other fields cannot be given."""
    env: dict[EnvName, str] = {}
    """Environment variables."""

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

    @model_validator(mode="after")
    def _is_that_version(self) -> Engine:
        tagged = _OWN_TAG.search(self.image)
        if tagged and tagged[1] != self.vllm:
            raise fault("image", f"the tag of the image says vLLM {tagged[1]}, vllm says {self.vllm}: which is it?")
        return self


class Shape(Model):
    """GPUs of one replica: tensorParallel x pipelineParallel; more than one node means a LeaderWorkerSet.

    With `profile` each replica runs on one MIG slice: a CUDA process sees a single MIG device, so there is no
    tensor parallelism over slices.
    """

    pool: Name
    """The machines."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs that share each layer."""
    pipeline_parallel: int = Field(default=1, ge=1)
    """Groups of GPUs that share the layers."""
    nodes: int = Field(default=1, ge=1)
    """Nodes of one replica."""
    profile: str | None = None
    """MIG profile of a replica's one slice."""
    cpu: Cores = "8"
    """Cores of each pod."""
    memory: Size
    """Memory of each pod."""
    shared_memory: Size | None = None
    """Size of `/dev/shm`, out of `memory`; a quarter of it, at most 16Gi, unless given."""

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
    """The volume claim in the team's namespace; services may share one."""
    path: RelativePath
    """Folder of the model in the claim."""
    version: Annotated[LabelValue, Field(min_length=1)]
    """Folder below `path`; a change rolls the service."""
    size: Size
    """Size of the claim."""
    load_time: Duration = Field(default="5m", validate_default=True)
    """How long a replica takes to load; bounds of probes and deadlines follow."""

    @model_validator(mode="after")
    def _takes_time(self) -> Weights:
        if self.load_time.total_seconds() < 1:
            raise fault("loadTime", "loadTime is at least 1s: no replica loads in no time")
        return self


class Adapter(Model):
    """A LoRA adapter in a folder of the claim of the weights; each replica loads its own read-only copy."""

    name: Name
    """The model name that a client asks for."""
    path: RelativePath
    """Folder of the adapter in the claim."""
    rank: int = Field(default=16, ge=1, le=512)
    """Rank of the adapter."""


class Replicas(Model):
    """How many, and what makes them more."""

    min: int = Field(default=1, ge=1)
    """Replicas without load."""
    max: int = Field(default=1, ge=1)
    """Replicas under load."""
    scale_on: Literal["waiting-requests", "request-rate"] | None = None
    """What is measured."""
    target: Rate | int | None = None
    """Load of one replica: a number of waiting requests, or a rate such as `6/s`."""

    @model_validator(mode="after")
    def _ordered(self) -> Replicas:
        if self.max < self.min:
            raise fault("max", f"max {self.max} is less than min {self.min}")
        if self.max > self.min and self.scale_on is None:
            raise fault("max", "min and max differ, so say scaleOn: waiting-requests or request-rate")
        if self.scale_on and (not self.target or self.target < 0):
            raise fault("target", f"scaleOn {self.scale_on} needs a target above zero, the load of one replica")
        if self.scale_on == "waiting-requests" and not isinstance(self.target, int):
            raise fault("target", "waiting requests are a number, not a rate")
        return self


class Quantile(Model):
    """One quantile of a latency and its bound; exactly one is given."""

    p50: Duration | None = None
    """Bound that 50 % of requests meet."""
    p90: Duration | None = None
    """Bound that 90 % of requests meet."""
    p95: Duration | None = None
    """Bound that 95 % of requests meet."""
    p99: Duration | None = None
    """Bound that 99 % of requests meet."""

    @model_validator(mode="after")
    def _one(self) -> Quantile:
        if sum(v is not None for v in (self.p50, self.p90, self.p95, self.p99)) != 1:
            raise ValueError("give exactly one of p50, p90, p95, p99")
        for key in ("p50", "p90", "p95", "p99"):
            bound = getattr(self, key)
            if bound is not None and bound.total_seconds() < 0.001:
                raise fault(key, "no answer comes within less than a millisecond")
        return self


class Slo(Model):
    """Promises: bounds on what clients see. At least one is given."""

    first_token: Quantile | None = None
    """Time to the first token."""
    latency: Quantile | None = None
    """Time to the whole answer."""
    output_rate: Rate | None = None
    """Tokens a second that 95 % of requests reach."""
    errors: Percent | None = None
    """Share of requests that may fail."""

    @model_validator(mode="after")
    def _promises_something(self) -> Slo:
        if self == Slo.model_construct():
            raise ValueError("an SLO without any promise")
        if self.output_rate is not None and not 0 < self.output_rate <= _FASTEST:
            raise fault("outputRate", f"write more than 0/s and at most {_FASTEST}/s")
        if self.errors == 1:
            raise fault("errors", "a promise that all requests may fail is none")
        return self


class Rollout(Model):
    """A canary: shares of traffic in rising order; analysis runs at each step and aborts on a broken promise."""

    canary: tuple[Percent, ...] = Field(min_length=1)
    """Shares of traffic in rising order, whole percents; 100% follows by itself."""
    pause: Duration = Field(default="5m", validate_default=True)
    """Length of each step: a window fills, then it is measured, at least three times: 5m or more at 15s a scrape."""
    abort_on: Literal["slo"] = "slo"
    """What is judged."""

    @model_validator(mode="after")
    def _rises(self) -> Rollout:
        if any(a >= b for a, b in zip(self.canary, self.canary[1:], strict=False)):
            raise fault("canary", "the shares of a canary rise from step to step")
        if self.canary[-1] >= 1:
            raise fault("canary", "100% is what follows the last step; leave it out")
        if any(share * 100 % 1 or not share for share in self.canary):
            raise fault("canary", "the shares of a canary are whole percents from 1% on")
        if self.pause.total_seconds() < 1:
            raise fault("pause", "a pause is at least 1s: in no time nothing is measured")
        return self


class Traffic(Model):
    """How clients reach a service."""

    host: Host | None = None
    """Host name; `<service>.<gateway domain>` unless given."""
    timeout: Duration = Field(default="10m", validate_default=True)
    """Bound on one request."""
    clients: tuple[Name, ...] = ()
    """Namespaces whose pods may call the service directly."""

    @model_validator(mode="after")
    def _waits(self) -> Traffic:
        # Envoy takes a timeout of 0 for none at all, and Istio takes nothing below a millisecond.
        if self.timeout.total_seconds() < 1:
            raise fault("timeout", "timeout is at least 1s: no model answers in no time")
        return self


class InferenceServiceSpec(Model):
    """The body of an InferenceService."""

    team: Name
    """Whose service it is."""
    clusters: tuple[Name, ...] = Field(min_length=1)
    """Where it runs."""
    model: ModelName
    """Name of the model, as its publisher writes it."""
    served_name: ModelName | None = None
    """The model name that a client asks for; `model` unless given."""
    engine: Engine
    """The server."""
    gpus: Shape
    """Machines of one replica."""
    weights: Weights
    """The files of the model."""
    context: int | None = Field(default=None, ge=256)
    """Longest request in tokens, prompt and answer; the model's own unless given."""
    adapters: tuple[Adapter, ...] = ()
    """LoRA adapters, each served under its own name."""
    replicas: Replicas = Replicas()
    """How many replicas."""
    replicas_on: dict[Name, Replicas] = {}
    """Other numbers for single clusters."""
    slo: Slo | None = None
    """What is promised; measured, alerted on and, with `rollout`, judged."""
    rollout: Rollout | None = None
    """A canary; without it new versions roll."""
    traffic: Traffic = Traffic()
    """How the service is reached."""
    drain: Duration = Field(default="2m", validate_default=True)
    """Time for requests under way when a replica stops."""
    priority: Literal["low", "normal", "high"] = "high"
    """Order in the queue."""

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
