"""What people write: typed specs."""

from blueprint.spec.cluster import Cluster
from blueprint.spec.delivery import Delivery
from blueprint.spec.inference import InferenceService
from blueprint.spec.platform import Document, Platform
from blueprint.spec.policy import Policy
from blueprint.spec.team import Team
from blueprint.spec.training import TrainingJob

__all__ = ["Cluster", "Delivery", "Document", "InferenceService", "Platform", "Policy", "Team", "TrainingJob"]
