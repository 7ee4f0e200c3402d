"""Delivery: the Git repository, Argo CD's place in it, the promotion order and who may sign."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from blueprint.spec.base import API_VERSION, Metadata, Model, Name, RelativePath
from blueprint.spec.policy import Identity


class Repository(Model):
    """Where the rendered tree is committed and what Argo CD follows."""

    url: str = Field(min_length=1)
    """Where the tree is committed."""
    revision: str = "main"
    """Branch or tag that Argo CD follows."""
    path: RelativePath = "rendered"
    """Folder of the tree in the repository."""


class DeliverySpec(Model):
    """The body of a Delivery."""

    repository: Repository
    """Where the tree lives."""
    project: Name = "ai-platform"
    """Argo CD project of the Applications."""
    namespace: Name = "argocd"
    """Namespace of Argo CD."""
    promotion: tuple[tuple[Name, ...], ...] = ()
    """Clusters by stage, in the order in which a change reaches them. Recorded: nothing is rendered from it."""
    automated: bool = True
    """Whether Argo CD syncs by itself; runs are always synced by hand."""
    signing_keys: tuple[str, ...] = ()
    """GnuPG keys that may sign commits. Recorded: nothing is rendered from it."""
    signers: tuple[Identity, ...] = ()
    """Identities that may sign the tree. Recorded: nothing is rendered from it."""


class Delivery(Model):
    """How the tree gets to the clusters."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["Delivery"]
    metadata: Metadata
    spec: DeliverySpec
