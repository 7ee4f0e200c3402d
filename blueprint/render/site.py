"""One cluster of a platform as the families of objects see it, and the way to write an object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from blueprint.finding import Finding, Ref, Source
from blueprint.objects import Manifest
from blueprint.render.canonical import canonical
from blueprint.render.plan import Item
from blueprint.render.templates import Templates
from blueprint.spec import Cluster, Delivery, Document, Platform

#: Labels on every rendered object; teams and services add their own.
MANAGED_BY = {"app.kubernetes.io/managed-by": "blueprint"}


@dataclass(frozen=True, slots=True)
class Site:
    """What a family of objects is rendered from.

    A family is a function `items(site) -> Iterator[Item]`: it reads the platform, does the arithmetic in Python and
    calls `item` for each object. Templates hold the shape, never arithmetic. What a family notices on the way it tells
    `problem`; the findings gather in `problems`.
    """

    platform: Platform
    document: Document[Cluster]
    delivery: Document[Delivery]
    templates: Templates
    problems: list[Finding] = field(default_factory=list, compare=False, repr=False)

    def problem(self, finding: Finding) -> None:
        """Note a wish that this cluster cannot meet as it was written."""
        self.problems.append(finding)

    @property
    def cluster(self) -> Cluster:
        """The cluster's spec."""
        return self.document.model

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.document.model.metadata.name

    def item(
        self,
        application: str,
        template: str,
        source: Source,
        *,
        needs: Sequence[Ref] = (),
        **values: Any,  # noqa: ANN401 - whatever the template of that kind asks for
    ) -> Item:
        """Render one object from the template of its kind.

        `needs` are objects that must be healthy first and that the object does not name itself: what a field names
        (a service account, a queue, a claim) is found by `blueprint.catalog.references`.
        """
        body = self.templates.render(template, source=source, **values)
        return Item(manifest=Manifest(canonical(body), source), application=application, needs=tuple(needs))
