"""What every engine is told of a policy: the same kinds, verbs, namespaces, variables and rules."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Literal

from blueprint.finding import Source
from blueprint.render.outside import COMPONENT_NAMESPACES
from blueprint.render.pools import TEAM_LABEL
from blueprint.render.site import Site

APPLICATION: Final = "policies"

#: Namespaces that no policy judges: a refusal there could keep the cluster, or the engine itself, from starting
#: (kyverno issue 16177, gatekeeper issues 3829 and 4530).
SYSTEM_NAMESPACES: Final = ("gatekeeper-system", "kube-node-lease", "kube-public", "kube-system", "kyverno")

_NAME: Final = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that is judged; `version` is `*` and `kind` is "" where the schema pack does not know it."""

    group: str
    version: str
    plural: str
    kind: str
    written: str


@dataclass(frozen=True, slots=True)
class Rulebook:
    """One policy as the templates want it."""

    policy: str
    source: Source
    description: str
    action: Literal["Deny", "Audit", "Warn"]
    resources: list[Resource]
    operations: list[str]
    namespaces: list[dict[str, Any]]
    variables: list[dict[str, str]]
    rules: list[dict[str, str]]

    @property
    def annotations(self) -> dict[str, str]:
        """What a person finds on the object in the cluster."""
        return {"platform.blueprint/description": self.description}

    @property
    def scans(self) -> bool:
        """Whether objects that exist already can be judged: those that may only be changed in a certain way cannot."""
        return "CREATE" in self.operations

    def constraints(self, site: Site) -> dict[str, Any]:
        """`matchConstraints`, which admission policies and Kyverno write alike."""
        by_group = sorted(self.resources, key=lambda resource: (resource.group, resource.version))
        rules = [
            {"group": group, "version": version, "resources": [resource.plural for resource in rows]}
            for (group, version), rows in groupby(by_group, key=lambda resource: (resource.group, resource.version))
        ]
        return site.templates.render(
            "MatchConstraints",
            source=self.source,
            namespaces=self.namespaces,
            operations=self.operations,
            rules=rules,
        )


def selector(site: Site, namespaces: Literal["tenants", "platform", "all"]) -> list[dict[str, Any]]:
    """The label expressions of the namespaces that a policy judges.

    All engines read them alike: a Namespace by its own labels, and what is in no namespace always.
    """
    others: dict[str, Any] = {"key": _NAME, "operator": "NotIn", "values": list(SYSTEM_NAMESPACES)}
    if namespaces == "tenants":
        return [{"key": TEAM_LABEL, "operator": "Exists"}, others]
    if namespaces == "platform":
        spec = site.cluster.spec
        known = {*COMPONENT_NAMESPACES, spec.monitoring.namespace, site.delivery.model.spec.namespace}
        return [{"key": _NAME, "operator": "In", "values": sorted(known - set(SYSTEM_NAMESPACES))}]
    return [others]
