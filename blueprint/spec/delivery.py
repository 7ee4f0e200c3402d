"""Delivery: the Git repository, Argo CD's place in it, the promotion order and who may sign."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from blueprint.spec.base import API_VERSION, Metadata, Model, Name, RelativePath
from blueprint.spec.policy import Identity


class Repository(Model):
    """Where the rendered tree is committed and what Argo CD follows."""

    url: str = Field(min_length=1)
    revision: str = "main"
    path: RelativePath = "rendered"


class DeliverySpec(Model):
    """The body of a Delivery. `promotion` names clusters in the order in which a change reaches them."""

    repository: Repository
    project: Name = "ai-platform"
    namespace: Name = "argocd"
    promotion: tuple[tuple[Name, ...], ...] = ()
    automated: bool = True
    signing_keys: tuple[str, ...] = ()
    signers: tuple[Identity, ...] = ()


class Delivery(Model):
    """How the tree gets to the clusters."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["Delivery"]
    metadata: Metadata
    spec: DeliverySpec
