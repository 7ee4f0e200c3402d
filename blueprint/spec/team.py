"""Team: people, namespaces and the share of the machines that is theirs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from blueprint.spec.base import API_VERSION, Cores, Metadata, Model, Name, Size, fault


class Member(Model):
    """A group of the identity provider, or one user or service account, and what it may do."""

    group: str | None = None
    user: str | None = None
    role: Literal["viewer", "developer", "lead"] = "developer"

    @model_validator(mode="after")
    def _one_subject(self) -> Member:
        if (self.group is None) == (self.user is None):
            raise ValueError("a member is either a group or a user")
        return self


class Quota(Model):
    """A share of one node pool on one cluster, in GPUs (or MIG slices of one profile).

    `gpus` is nominal quota; `borrow` is how much more may be taken from the cohort, `lend` how much of the own
    quota others may take while it is idle; absent means no limit. CPU and memory follow the GPUs in proportion
    to the nodes of the pool unless they are given.
    """

    cluster: Name
    pool: Name
    profile: str | None = None
    gpus: int = Field(ge=0)
    borrow: int | None = Field(default=None, ge=0)
    lend: int | None = Field(default=None, ge=0)
    cpu: Cores | None = None
    memory: Size | None = None

    @model_validator(mode="after")
    def _lends_what_it_has(self) -> Quota:
        if self.lend is not None and self.lend > self.gpus:
            raise fault("lend", f"lends {self.lend} of {self.gpus}: a team can lend only what is its own")
        return self


class TeamSpec(Model):
    """The body of a Team."""

    namespace: Name | None = None
    members: tuple[Member, ...] = Field(min_length=1)
    quotas: tuple[Quota, ...] = Field(min_length=1)
    weight: int = Field(default=1, ge=1, le=100)
    queueing: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    max_pods: int = Field(default=200, ge=1)
    storage: Size = "10Ti"


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
