"""Delivery: the Git repository, Argo CD's place in it, the promotion order and who may sign."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from blueprint.spec.base import API_VERSION, Metadata, Model, Name, RelativePath, Remote, shown
from blueprint.spec.policy import Identity


class Repository(Model):
    """Where the rendered tree is committed and what Argo CD follows."""

    url: Remote
    """Where the tree is committed."""
    revision: str = Field(default="main", min_length=1)
    """Branch that Argo CD follows; `{cluster}` and `{environment}` in it give each cluster or environment its own."""
    path: RelativePath = "rendered"
    """Folder of the tree in the repository."""

    @field_validator("revision")
    @classmethod
    def _is_a_branch(cls, value: str) -> str:
        # git-check-ref-format(1): what a branch name cannot hold; `-` first would be read as an option.
        for name in re.findall(r"\{([^}]*)\}", value):
            if name not in ("cluster", "environment"):
                raise ValueError(f"no {shown(name)} goes into a branch; write {{cluster}} or {{environment}}")
        plain = re.sub(r"\{(cluster|environment)\}", "x", value)
        if re.search(r"[\x00-\x20~^:?*\[\\{}\x7f]|\.\.|@\{|//|/\.|^[-/.]|[/.]$|\.lock$", plain):
            raise ValueError(f"not a branch: {shown(value)}")
        return value

    def branch(self, cluster: str, environment: str) -> str:
        """The branch that a cluster of an environment follows."""
        return self.revision.replace("{cluster}", cluster).replace("{environment}", environment)


class FluxSource(Model):
    """For clusters of Flux: a source that takes no commit without a signature."""

    secret: Name
    """Secret with the public keys (PGP) of those who may sign commits."""
    namespace: Name = "flux-system"
    """Namespace of Flux."""


class DeliverySpec(Model):
    """The body of a Delivery."""

    repository: Repository
    """Where the tree lives."""
    project: Name = "ai-platform"
    """Argo CD project of the Applications."""
    namespace: Name = "argocd"
    """Namespace of Argo CD."""
    promotion: tuple[tuple[Name, ...], ...] = ()
    """Clusters by stage, in the order in which a change reaches them: `commit` delivers to the first, `promote` to the
    others. Nothing is rendered from it."""
    automated: bool = True
    """Whether Argo CD syncs by itself; runs are always synced by hand."""
    signing_keys: tuple[Annotated[str, Field(pattern=r"^([0-9A-F]{16}|[0-9A-F]{40})$")], ...] = ()
    """Ids of GnuPG keys that sign every commit; with any, Argo CD (3.5 or newer) takes no commit without one."""
    plugin: Name | None = None
    """Argo CD plugin that emits manifests only from a verified tree (docs/signing.md); plain folders without it."""
    flux: FluxSource | None = None
    """Renders a GitRepository for Flux that verifies commits, in `bootstrap/`."""
    signers: tuple[Identity, ...] = ()
    """Identities that may sign the tree. Recorded: verifiers are told outside of the tree, which is what they judge."""


class Delivery(Model):
    """How the tree gets to the clusters."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["Delivery"]
    metadata: Metadata
    spec: DeliverySpec
