"""ClusterQueues, Cohorts, LocalQueues and ResourceFlavors as Kueue reads them.

Source: kueue v0.17.0 apis/kueue/v1beta2/*_types.go, pkg/cache/scheduler/clusterqueue.go, pkg/util/admissioncheck. The
older v1beta1 is read as Kueue's conversion does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blueprint.admission.amounts import FlavorResource, amount, quantity
from blueprint.admission.body import Body, at, labels, mapping, rows, text, texts, whole
from blueprint.admission.match import LabelSelector, Taint, Toleration, taints, tolerations
from blueprint.admission.quota import Quota
from blueprint.finding import Ref
from blueprint.objects import Manifest

GROUP = "kueue.x-k8s.io"


@dataclass(frozen=True, slots=True)
class Group:
    """One resource group: the resources it covers, and its flavors in order."""

    covered: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fungibility:
    """When a search goes on to the next flavor, and what it prefers (`flavorFungibility`)."""

    next_when_borrowing: bool = False
    next_when_preempting: bool = True
    preemption_over_borrowing: bool = False


@dataclass(frozen=True, slots=True)
class Policies:
    """Whom a queue may preempt (`preemption`); `threshold` bounds the priority of those it borrows from."""

    within_queue: str = "Never"
    within_cohort: str = "Never"
    borrow: bool = False
    threshold: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """One ClusterQueue. `selector` is None where it matches no namespace; `checks` are names with their flavors."""

    ref: Ref
    cohort: str
    groups: tuple[Group, ...]
    quotas: Mapping[FlavorResource, Quota]
    strict: bool
    selector: LabelSelector | None
    stopped: str
    fungibility: Fungibility
    policies: Policies
    checks: Mapping[str, frozenset[str]]
    weight: float

    @property
    def name(self) -> str:
        """Its name."""
        return self.ref.name

    def group(self, resource: str) -> Group | None:
        """The first group that covers the resource."""
        return next((group for group in self.groups if resource in group.covered), None)

    @property
    def flavors(self) -> tuple[str, ...]:
        """All its flavors."""
        return tuple(dict.fromkeys(flavor for group in self.groups for flavor in group.flavors))


@dataclass(frozen=True, slots=True)
class Cohort:
    """One Cohort object; `parent` is "" for a root."""

    ref: Ref
    parent: str
    quotas: Mapping[FlavorResource, Quota]
    weight: float


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """One LocalQueue."""

    ref: Ref
    cluster_queue: str
    stopped: str


@dataclass(frozen=True, slots=True)
class Flavor:
    """One ResourceFlavor; `topology` is "" without topology-aware scheduling."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    tolerations: tuple[Toleration, ...]
    topology: str


def cluster_queue(manifest: Manifest) -> ClusterQueue:
    """Read a ClusterQueue."""
    spec = mapping(manifest.body, "spec")
    old = manifest.api_version == f"{GROUP}/v1beta1"
    selector = at(spec, "namespaceSelector")
    fungibility = mapping(spec, "flavorFungibility")
    groups = tuple(
        Group(tuple(texts(group, "coveredResources")), tuple(text(f, "name") for f in rows(group, "flavors")))
        for group in rows(spec, "resourceGroups")
    )
    flavors = frozenset(flavor for group in groups for flavor in group.flavors)
    return ClusterQueue(
        ref=manifest.ref,
        cohort=text(spec, "cohort" if old else "cohortName"),
        groups=groups,
        quotas=quotas(spec),
        strict=text(spec, "queueingStrategy") == "StrictFIFO",
        selector=LabelSelector.of(selector) if isinstance(selector, dict) else None,
        stopped=_stopped(spec),
        fungibility=Fungibility(
            text(fungibility, "whenCanBorrow") == "TryNextFlavor",
            text(fungibility, "whenCanPreempt") in ("", "TryNextFlavor"),
            text(fungibility, "preference") == "PreemptionOverBorrowing",
        ),
        policies=_policies(mapping(spec, "preemption")),
        checks=_checks(spec, flavors, old=old),
        weight=weight(spec),
    )


def _policies(written: Body) -> Policies:
    borrow = mapping(written, "borrowWithinCohort")
    return Policies(
        text(written, "withinClusterQueue") or "Never",
        text(written, "reclaimWithinCohort") or "Never",
        text(borrow, "policy") not in ("", "Never"),
        whole(borrow, "maxPriorityThreshold"),
    )


def _checks(spec: Body, flavors: frozenset[str], *, old: bool) -> dict[str, frozenset[str]]:
    """Names of checks with the flavors that they stand before; all flavors where none are named."""
    if old and texts(spec, "admissionChecks"):
        return dict.fromkeys(texts(spec, "admissionChecks"), flavors)
    return {
        text(row, "name"): frozenset(texts(row, "onFlavors")) or flavors
        for row in rows(spec, "admissionChecksStrategy", "admissionChecks")
    }


def cohort(manifest: Manifest) -> Cohort:
    """Read a Cohort."""
    spec = mapping(manifest.body, "spec")
    return Cohort(manifest.ref, text(spec, "parentName") or text(spec, "parent"), quotas(spec), weight(spec))


def local_queue(manifest: Manifest) -> LocalQueue:
    """Read a LocalQueue."""
    spec = mapping(manifest.body, "spec")
    return LocalQueue(manifest.ref, text(spec, "clusterQueue"), _stopped(spec))


def flavor(manifest: Manifest) -> Flavor:
    """Read a ResourceFlavor."""
    spec = mapping(manifest.body, "spec")
    return Flavor(
        manifest.ref.name,
        labels(spec, "nodeLabels"),
        taints(spec, "nodeTaints"),
        tolerations(spec, "tolerations"),
        text(spec, "topologyName"),
    )


def quotas(spec: Body) -> dict[FlavorResource, Quota]:
    """The rows of `resourceGroups`; a nominal quota that is left out is 0."""
    found: dict[FlavorResource, Quota] = {}
    for group in rows(spec, "resourceGroups"):
        for flavor_row in rows(group, "flavors"):
            for row in rows(flavor_row, "resources"):
                resource = text(row, "name")
                nominal, borrowing, lending = (
                    None if (value := quantity(row.get(field))) is None else amount(resource, value)
                    for field in ("nominalQuota", "borrowingLimit", "lendingLimit")
                )
                found[FlavorResource(text(flavor_row, "name"), resource)] = Quota(nominal or 0, borrowing, lending)
    return found


def weight(spec: Body) -> float:
    """The weight in fair sharing; 1 unless given."""
    value = quantity(at(spec, "fairSharing", "weight"))
    return 1.0 if value is None else float(value)


def _stopped(spec: Body) -> str:
    policy = text(spec, "stopPolicy")
    return "" if policy == "None" else policy
