"""What people write: typed specs.

The models are loaded when they are first asked for: whoever only looks for spec files does not wait for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blueprint.spec.cluster import Cluster
    from blueprint.spec.delivery import Delivery
    from blueprint.spec.inference import InferenceService
    from blueprint.spec.platform import Document, Platform
    from blueprint.spec.policy import Policy
    from blueprint.spec.team import Team
    from blueprint.spec.training import TrainingJob

__all__ = ["Cluster", "Delivery", "Document", "InferenceService", "Platform", "Policy", "Team", "TrainingJob"]

_MODULES = {
    "Cluster": "cluster",
    "Delivery": "delivery",
    "Document": "platform",
    "InferenceService": "inference",
    "Platform": "platform",
    "Policy": "policy",
    "Team": "team",
    "TrainingJob": "training",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
