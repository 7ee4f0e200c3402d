"""TrainingJob: one run, or a kind of run, with its machines, data and checkpoints."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from blueprint.quantity import parse_quantity
from blueprint.spec.base import (
    API_VERSION,
    AbsolutePath,
    Cores,
    Duration,
    EnvName,
    Image,
    Metadata,
    Model,
    Name,
    Size,
    fault,
)

#: What every pod of a run has already: volumes by name, and the paths where they are mounted.
_VOLUMES: Final = ("shm", "tmp", "checkpoints")
_MOUNTS: Final = {"": "the whole image is", "/dev/shm": "shared memory is", "/tmp": "scratch space is"}  # noqa: S108


class Dataset(Model):
    """A volume claim that is mounted read-only."""

    name: Name
    """Name of the volume in the pod."""
    claim: Name
    """The volume claim in the team's namespace."""
    path: AbsolutePath
    """Where it is mounted, read-only."""
    size: Size | None = None
    """Renders the claim; without it the claim must exist."""


class Checkpoint(Model):
    """Where and how often a run saves; it compiles to a claim, arguments, grace period and restart policy."""

    path: AbsolutePath = "/checkpoints"
    """Where the run saves; also `CHECKPOINT_DIR`."""
    size: Size = "100Gi"
    """Size of the claim `<run>-checkpoints`."""
    every_steps: int = Field(default=500, ge=1)
    """How often the run saves; handed to it as `CHECKPOINT_EVERY_STEPS`."""
    grace: Duration = Field(default="5m", validate_default=True)
    """Time to save when the run is stopped."""

    @model_validator(mode="after")
    def _is_told(self) -> Checkpoint:
        # With a grace period of 0 a pod gets no SIGTERM at all and its object goes at once.
        if self.grace.total_seconds() < 1:
            raise fault("grace", "grace is at least 1s: with less a run is not told that it is stopped")
        return self


class Placement(Model):
    """Topology wishes: what must hold, and what is tried."""

    required: Literal["block", "rack", "host"] | None = None
    """Every pod of a group (of the run without `groupSize`) in one such place, or the run waits."""
    preferred: Literal["block", "rack", "host"] | None = None
    """Tried for the whole run, and given up where it does not fit."""
    group_size: int | None = Field(default=None, ge=1)
    """Pods of a group; divides `nodes`."""


class TrainingJobSpec(Model):
    """The body of a TrainingJob. All amounts are per pod; `nodes` is the number of pods.

    On a pool whose GPUs come by Dynamic Resource Allocation, `gpus` becomes a claim of that many devices.
    """

    team: Name
    """Whose run it is."""
    clusters: tuple[Name, ...] = Field(min_length=1)
    """Where it runs: one run on each."""
    api: Literal["PyTorchJob", "TrainJob"] = "PyTorchJob"
    """The kind that is rendered."""
    pool: Name
    """The machines."""
    nodes: int = Field(default=1, ge=1)
    """Number of pods."""
    gpus: int = Field(default=1, ge=0)
    """GPUs of each pod."""
    cpu: Cores = "8"
    """Cores of each pod."""
    memory: Size
    """Memory of each pod."""
    shared_memory: Size = "16Gi"
    """Size of `/dev/shm` in each pod; counts as memory of the pod."""
    placement: Placement = Placement()
    """Where the pods stand to each other."""
    priority: Literal["low", "normal", "high"] = "normal"
    """Order in the queue."""
    image: Image
    """The image of all pods."""
    command: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Replaces the entry point of the image."""
    args: tuple[str, ...] = ()
    """Arguments."""
    env: dict[EnvName, str] = {}
    """Environment variables."""
    datasets: tuple[Dataset, ...] = ()
    """Data, mounted read-only."""
    checkpoint: Checkpoint | None = None
    """Where the run saves; without it a run that is stopped starts over."""
    max_runtime: Duration | None = None
    """The run fails after that time."""
    retries: int = Field(default=3, ge=0)
    """How often a failed run is started again."""

    @model_validator(mode="after")
    def _groups_divide(self) -> TrainingJobSpec:
        size = self.placement.group_size
        if size is not None and (self.placement.required is None or self.nodes % size):
            raise fault(
                "placement.groupSize", f"groupSize {size} needs placement.required and must divide nodes {self.nodes}"
            )
        return self

    @model_validator(mode="after")
    def _memory_holds_what_is_shared(self) -> TrainingJobSpec:
        given = "shared_memory" in self.model_fields_set
        if given and parse_quantity(self.shared_memory) >= parse_quantity(self.memory):
            raise fault("sharedMemory", f"sharedMemory {self.shared_memory} is taken from memory {self.memory}")
        return self

    @model_validator(mode="after")
    def _saves_in_one_place(self) -> TrainingJobSpec:
        # The claim is mounted at `checkpoint.path`: a run that saves elsewhere loses what it saved with its pod.
        follows = self.checkpoint and {
            "CHECKPOINT_DIR": ("path", self.checkpoint.path),
            "CHECKPOINT_EVERY_STEPS": ("everySteps", str(self.checkpoint.every_steps)),
        }
        for name, (field, value) in (follows or {}).items():
            if self.env.get(name, value) != value:
                message = f"{name} is {value}: it follows from checkpoint.{field}, leave it out here"
                raise fault(f"env.{name}", message)
        return self

    @model_validator(mode="after")
    def _mounts_each_place_once(self) -> TrainingJobSpec:
        taken = dict(_MOUNTS)
        taken |= {self.checkpoint.path.rstrip("/"): "the checkpoints are"} if self.checkpoint else {}
        for index, data in enumerate(self.datasets):
            if what := taken.get(data.path.rstrip("/")):
                raise fault(f"datasets.{index}.path", f"{data.path} is where {what}: mount the data elsewhere")
            if data.name in _VOLUMES:
                raise fault(f"datasets.{index}.name", f"every run has a volume called {data.name}: choose another name")
        if self.checkpoint and (what := _MOUNTS.get(self.checkpoint.path.rstrip("/"))):
            raise fault("checkpoint.path", f"{self.checkpoint.path} is where {what}: save elsewhere")
        return self

    @model_validator(mode="after")
    def _has_time(self) -> TrainingJobSpec:
        if self.max_runtime is not None and self.max_runtime.total_seconds() < 1:
            raise fault("maxRuntime", "maxRuntime is at least 1s: with less the run fails before it starts")
        return self


class TrainingJob(Model):
    """A training run."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["TrainingJob"]
    metadata: Metadata
    spec: TrainingJobSpec
