"""All specs of one platform, each with the place where it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from blueprint.finding import Source
from blueprint.spec.base import Model
from blueprint.spec.cluster import Cluster
from blueprint.spec.delivery import Delivery
from blueprint.spec.inference import InferenceService
from blueprint.spec.policy import Policy
from blueprint.spec.positions import Segment, segments
from blueprint.spec.team import Team
from blueprint.spec.training import TrainingJob

M_co = TypeVar("M_co", bound=Model, covariant=True)


@dataclass(frozen=True, slots=True)
class Document(Generic[M_co]):
    """A spec, where it begins, and a way to find the line of a field (`spec.quotas[0].lend`).

    `mistakes` are fields that could not be taken: the model holds nothing of them, and they are told already.
    """

    model: M_co
    source: Source
    locate: Callable[[str], Source]
    mistakes: frozenset[tuple[Segment, ...]] = frozenset()

    def knows(self, *paths: str) -> bool:
        """Whether no mistake is at, above or below any of the fields."""
        wanted = [segments(path) for path in paths] if self.mistakes else []
        return not any(one[: len(mistake)] == mistake[: len(one)] for one in wanted for mistake in self.mistakes)


@dataclass(frozen=True, slots=True)
class Platform:
    """Everything that people wrote, in the order of names."""

    clusters: tuple[Document[Cluster], ...] = ()
    teams: tuple[Document[Team], ...] = ()
    training_jobs: tuple[Document[TrainingJob], ...] = ()
    services: tuple[Document[InferenceService], ...] = ()
    policies: tuple[Document[Policy], ...] = ()
    deliveries: tuple[Document[Delivery], ...] = ()

    def team(self, name: str) -> Document[Team] | None:
        """The team of that name."""
        return next((d for d in self.teams if d.model.metadata.name == name), None)

    def teams_on(self, cluster: str) -> Iterator[Document[Team]]:
        """Teams with a quota on the cluster."""
        return (d for d in self.teams if any(q.cluster == cluster for q in d.model.spec.quotas))

    def training_on(self, cluster: str) -> Iterator[Document[TrainingJob]]:
        """Training jobs of the cluster."""
        return (d for d in self.training_jobs if cluster in d.model.spec.clusters)

    def services_on(self, cluster: str) -> Iterator[Document[InferenceService]]:
        """Inference services of the cluster."""
        return (d for d in self.services if cluster in d.model.spec.clusters)

    def policies_on(self, cluster: str) -> Iterator[Document[Policy]]:
        """Policies of the cluster; a policy without clusters holds on all."""
        return (d for d in self.policies if not d.model.spec.clusters or cluster in d.model.spec.clusters)
