"""Which clusters a commit reaches, and on which branches: the promotion order of the Delivery, put to use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from blueprint.errors import UsageError
from blueprint.spec import Platform


@dataclass(frozen=True, slots=True)
class Route:
    """How the tree gets to the clusters: the address, the folder of the tree, cluster → branch, and the stages."""

    address: str
    path: str
    branches: Mapping[str, str]
    stages: tuple[tuple[str, ...], ...]

    def branch(self, cluster: str) -> str:
        """The branch that a cluster follows. Raises UsageError for a cluster that there is not."""
        if cluster not in self.branches:
            raise UsageError(f"no cluster is called {cluster}", hint=f"clusters here: {', '.join(self.branches)}")
        return self.branches[cluster]

    def first(self) -> tuple[str, ...]:
        """The clusters that a commit reaches: the first stage, and those that no stage names."""
        later = {cluster for stage in self.stages[1:] for cluster in stage}
        return tuple(cluster for cluster in self.branches if cluster not in later)

    def by_branch(self, clusters: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Branch → those of the clusters that follow it, both sorted."""
        branches = sorted({self.branch(cluster) for cluster in clusters})
        return {branch: tuple(sorted(c for c in clusters if self.branch(c) == branch)) for branch in branches}


def route(platform: Platform, *, address: str = "", branch: str = "") -> Route:
    """The way of a platform, from its Delivery; `address` and `branch` go before what that says.

    Raises UsageError without a Delivery.
    """
    if not platform.deliveries:
        raise UsageError("no Delivery says where the tree goes", hint="write one into argocd/")
    spec = platform.deliveries[0].model.spec
    clusters = {each.model.metadata.name: each.model.spec.environment for each in platform.clusters}
    branches = {name: branch or spec.repository.branch(name, place) for name, place in sorted(clusters.items())}
    return Route(address or spec.repository.url, spec.repository.path, branches, spec.promotion)


def named(platform: Platform, wanted: Collection[str]) -> tuple[str, ...]:
    """Clusters by their own names or by that of their environment, sorted. Raises UsageError for what is neither."""
    found: set[str] = set()
    places = {each.model.metadata.name: str(each.model.spec.environment) for each in platform.clusters}
    for name in wanted:
        matching = {name} if name in places else {cluster for cluster, place in places.items() if place == name}
        if not matching:
            raise UsageError(f"no cluster or environment is called {name}", hint=f"clusters here: {', '.join(places)}")
        found |= matching
    return tuple(sorted(found))
