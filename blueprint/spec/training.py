"""TrainingJob: one run, or a kind of run, with its machines, data and checkpoints."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from blueprint.spec.base import API_VERSION, AbsolutePath, Cores, Duration, Image, Metadata, Model, Name, Size, fault


class Dataset(Model):
    """A claim that is mounted read-only; with `size` the claim is rendered, without it must exist."""

    name: Name
    claim: Name
    path: AbsolutePath
    size: Size | None = None


class Checkpoint(Model):
    """Where and how often a run saves; it compiles to a claim, arguments, grace period and restart policy."""

    path: AbsolutePath = "/checkpoints"
    size: Size = "100Gi"
    every_steps: int = Field(default=500, ge=1)
    grace: Duration = Field(default="5m", validate_default=True)


class Placement(Model):
    """Topology wishes, kept apart.

    `required` must hold for each group of `group_size` pods (all pods when absent); `preferred` is tried for the
    whole run and given up where it does not fit.
    """

    required: Literal["block", "rack", "host"] | None = None
    preferred: Literal["block", "rack", "host"] | None = None
    group_size: int | None = Field(default=None, ge=1)


class TrainingJobSpec(Model):
    """The body of a TrainingJob. All amounts are per pod; `nodes` is the number of pods.

    On a pool whose GPUs come by Dynamic Resource Allocation, `gpus` becomes a claim of that many devices.
    """

    team: Name
    clusters: tuple[Name, ...] = Field(min_length=1)
    api: Literal["PyTorchJob", "TrainJob"] = "PyTorchJob"
    pool: Name
    nodes: int = Field(default=1, ge=1)
    gpus: int = Field(default=1, ge=0)
    cpu: Cores = "8"
    memory: Size
    shared_memory: Size = "16Gi"
    placement: Placement = Placement()
    priority: Literal["low", "normal", "high"] = "normal"
    image: Image
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    datasets: tuple[Dataset, ...] = ()
    checkpoint: Checkpoint | None = None
    max_runtime: Duration | None = None
    retries: int = Field(default=3, ge=0)

    @model_validator(mode="after")
    def _groups_divide(self) -> TrainingJobSpec:
        size = self.placement.group_size
        if size is not None and (self.placement.required is None or self.nodes % size):
            raise fault(
                "placement.groupSize", f"groupSize {size} needs placement.required and must divide nodes {self.nodes}"
            )
        return self


class TrainingJob(Model):
    """A training run."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["TrainingJob"]
    metadata: Metadata
    spec: TrainingJobSpec
