"""The image gate's own service as what names it sees it: where it is, and what must stand before it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from blueprint.finding import Ref
from blueprint.render.names import name
from blueprint.render.outside import GATEKEEPER
from blueprint.render.plan import Item
from blueprint.render.site import MANAGED_BY, Site
from blueprint.spec import Document, Policy
from blueprint.spec.policy import GateService, ImageGate, has_engine

APPLICATION: Final = "image-gate"
PORT: Final = 8443

APP, COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate of one policy on one cluster."""

    site: Site
    document: Document[Policy]
    images: ImageGate
    service: GateService

    @property
    def name(self) -> str:
        """The name of the service, and of what stands around it."""
        return name("Service", "image-gate", self.document.model.metadata.name)

    @property
    def host(self) -> str:
        """The name in the certificate."""
        return f"{self.name}.{GATEKEEPER}.svc"

    @property
    def url(self) -> str:
        """Where Gatekeeper asks."""
        return f"https://{self.host}:{PORT}/verify"

    @property
    def secret(self) -> str:
        """The Secret with the certificate."""
        return name("Secret", self.name, "tls")

    @property
    def selector(self) -> dict[str, str]:
        """What its pods carry and no others."""
        return {APP: self.name, COMPONENT: "image-gate"}

    @property
    def refs(self) -> tuple[Ref, ...]:
        """What must answer before anything is asked."""
        return (Ref("apps", "Deployment", GATEKEEPER, self.name), Ref("", "Service", GATEKEEPER, self.name))

    def item(self, template: str, **values: Any) -> Item:  # noqa: ANN401 - whatever the template asks for
        """An object of the gate's Application."""
        given = {"name": self.name, "namespace": GATEKEEPER, "labels": MANAGED_BY | self.selector} | values
        return self.site.item(APPLICATION, template, self.document.source, **given)


def gates(site: Site) -> Iterator[Gate]:
    """The gates whose service is rendered on this cluster."""
    if not has_engine(site.cluster, "Gatekeeper"):
        return
    for document in site.platform.policies_on(site.name):
        if (gate := gate_of(site, document)) is not None:
            yield gate


def gate_of(site: Site, document: Document[Policy]) -> Gate | None:
    """The gate of one policy, None where Gatekeeper asks nobody, or a service that is there."""
    spec = document.model.spec
    if "Gatekeeper" not in spec.engines or spec.images is None or spec.images.provider is None:
        return None
    service = spec.images.provider.service
    return Gate(site, document, spec.images, service) if service else None
