"""From a rendered tree to a branch that Argo CD follows: commits, promotions, roll-backs, pull requests."""

from blueprint.deliver.commit import Order, Outcome, Status, deliver
from blueprint.deliver.promote import running, source_of_promotion, source_of_rollback
from blueprint.deliver.release import Release, read_tree
from blueprint.deliver.remote import Remote
from blueprint.deliver.specs import Specs, specs_at

__all__ = [
    "Order",
    "Outcome",
    "Release",
    "Remote",
    "Specs",
    "Status",
    "deliver",
    "read_tree",
    "running",
    "source_of_promotion",
    "source_of_rollback",
    "specs_at",
]
