"""Why a job is not admitted, or not known to be: values with a code, never exceptions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from blueprint.finding import Ref


class Verdict(StrEnum):
    """What a reason means for the answer."""

    NEVER = "never"
    """The job cannot be admitted with these objects."""
    UNKNOWN = "unknown"
    """Something that decides is not among the objects."""
    NOTE = "note"
    """The answer stands, but there is something to know."""


class Kind(StrEnum):
    """The class of a reason, after the names of Kueue's own reasons where it has some."""

    NOT_QUEUED = "NotQueued"
    """No Workload is made, or it reaches no queue."""
    INACTIVE = "ClusterQueueInactive"
    NAMESPACE = "NamespaceMismatch"
    INVALID = "InvalidResources"
    UNCOVERED = "ResourceUnavailable"
    MAX_QUOTA = "ExceedsMaxQuota"
    WAITING = "WaitingForQuota"
    FLAVOR = "NoMatchingFlavor"
    TOPOLOGY = "TopologyPlacementFailed"
    DEVICES = "DevicesInadmissible"
    UNKNOWN = "Unknown"
    AFTER = "AfterAdmission"
    """Admitted, but the pods would not start as written."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The number that binds: `field` of `object`, for a resource on a flavor; `value` is None for an absent limit."""

    field: str
    object: Ref
    flavor: str
    resource: str
    value: int | None


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. `missing` is by how much the amount exceeds `limit`, in Kueue's integers."""

    code: str
    kind: Kind
    message: str
    verdict: Verdict = Verdict.NEVER
    podset: str = ""
    flavor: str = ""
    resource: str = ""
    object: Ref | None = None
    limit: Limit | None = None
    missing: int = 0


def unique(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Each reason once, in the order in which they were found."""
    return tuple(dict.fromkeys(reasons))


def refusals(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Those that keep the job out."""
    return tuple(reason for reason in reasons if reason.verdict is Verdict.NEVER)
