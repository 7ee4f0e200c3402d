"""Team: people, namespaces and the share of the machines that is theirs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from blueprint.spec.base import API_VERSION, Cores, Metadata, Model, Name, Size, fault


class Member(Model):
    """A group of the identity provider, or one user or service account, and what it may do."""

    group: str | None = Field(default=None, min_length=1)
    """A group of the identity provider."""
    user: str | None = Field(default=None, min_length=1)
    """A user, or `system:serviceaccount:<namespace>:<name>`."""
    role: Literal["viewer", "developer", "lead"] = "developer"
    """`viewer` reads, `developer` also runs jobs and enters pods, `lead` also changes claims, runtimes and rollouts."""

    @model_validator(mode="after")
    def _one_subject(self) -> Member:
        if (self.group is None) == (self.user is None):
            raise ValueError("a member is either a group or a user")
        return self


class Quota(Model):
    """A share of one node pool on one cluster, in GPUs (or MIG slices of one profile)."""

    cluster: Name
    """The cluster of the pool."""
    pool: Name
    """The node pool."""
    profile: str | None = None
    """MIG profile, for a pool that is cut."""
    gpus: int = Field(ge=0)
    """What is the team's own: whole GPUs, or slices of the profile."""
    borrow: int | None = Field(default=None, ge=0)
    """How many more it may take from idle quota of others; no limit when absent."""
    lend: int | None = Field(default=None, ge=0)
    """How many of its own others may take while they are idle; all when absent."""
    cpu: Cores | None = None
    """Cores; in proportion to the GPUs of a node when absent."""
    memory: Size | None = None
    """Memory; in proportion to the GPUs of a node when absent."""

    @model_validator(mode="after")
    def _lends_what_it_has(self) -> Quota:
        if self.lend is not None and self.lend > self.gpus:
            raise fault("lend", f"lends {self.lend} of {self.gpus}: a team can lend only what is its own")
        return self


class TeamSpec(Model):
    """The body of a Team."""

    namespace: Name | None = None
    """The team's namespace; its own name unless given."""
    members: tuple[Member, ...] = Field(min_length=1)
    """Who belongs to the team."""
    quotas: tuple[Quota, ...] = Field(min_length=1)
    """Shares of node pools. The order is the order in which Kueue tries the flavors of a queue."""
    weight: int = Field(default=1, ge=1, le=100)
    """Share of idle machines, relative to the other teams."""
    queueing: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    """`StrictFIFO` holds the queue behind a run that does not fit, `BestEffortFIFO` lets later ones pass."""
    max_pods: int = Field(default=200, ge=1)
    """Pods in the namespace at once."""
    storage: Size = "10Ti"
    """Sum of all volume claims of the namespace."""


class Team(Model):
    """A tenant of the platform."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["Team"]
    metadata: Metadata
    spec: TeamSpec

    @property
    def namespace(self) -> str:
        """The namespace of the team, its own name unless given."""
        return self.spec.namespace or self.metadata.name
