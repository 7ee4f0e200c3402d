"""The image gate: images of tenants must be signed by somebody whom the policy names, and not too long ago.

Kyverno verifies signatures itself; Gatekeeper asks a service (its external data provider), and its rule accepts an
image only if that service vouched for it: every failure on the way is a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from blueprint.finding import Ref
from blueprint.render import gatekeeper, kyverno
from blueprint.render.gate import gate_of
from blueprint.render.names import name
from blueprint.render.plan import Item
from blueprint.render.rulebook import APPLICATION, Resource, Rulebook, selector
from blueprint.render.site import MANAGED_BY, Site
from blueprint.spec import Document, Policy
from blueprint.spec.policy import CLOCK_SKEW, ImageGate, has_engine

#: Lists of images as Kyverno names them; one that is left out is a way around the gate (kyverno issues 16275, 16947).
LISTS: Final = ("containers", "initContainers", "ephemeralContainers", "volumes")

#: Images that are mounted: unlike those of containers, Kyverno has to be told where they are
#: (kyverno v1.19.1 pkg/cel/compiler/images.go).
_VOLUMES: Final = (
    "(object != null ? object : oldObject).spec.?volumes.orValue([])"
    ".filter(volume, has(volume.image) && has(volume.image.reference)).map(volume, volume.image.reference)"
)

_PODS: Final = [
    Resource("", "v1", plural, "Pod", plural)
    for plural in ("pods", "pods/ephemeralcontainers")  # a subresource is not matched by its parent
]

#: JSON schema of the constraint's parameters, closed as far as a structural schema can be.
_PARAMETERS: Final = {
    "provider": {"type": "string"},
    "prefixes": {"type": "array", "items": {"type": "string"}},
    "signers": {
        "type": "array",
        "items": {"type": "object", "properties": {"subject": {"type": "string"}, "issuer": {"type": "string"}}},
    },
    "maxAgeSeconds": {"type": "integer", "minimum": 1},
}


def items(site: Site, document: Document[Policy]) -> Iterator[Item]:
    """The gate for each engine that the policy names and the cluster has."""
    spec, gate = document.model.spec, document.model.spec.images
    if gate is None:
        return
    book = Rulebook(
        policy=document.model.metadata.name,
        source=document.source,
        description=" ".join(spec.description.split()),
        action=spec.action,
        resources=_PODS,
        operations=["CREATE", "UPDATE"],
        namespaces=selector(site, "tenants"),
        variables=[],
        rules=[],
    )
    if "Kyverno" in spec.engines and has_engine(site.cluster, "Kyverno"):
        yield _kyverno(site, book, gate)
    if "Gatekeeper" in spec.engines and has_engine(site.cluster, "Gatekeeper"):
        yield from _gatekeeper(site, document, book, gate)


def _kyverno(site: Site, book: Rulebook, gate: ImageGate) -> Item:
    """One attestor: its identities are alternatives (kyverno v1.19.1 pkg/image/verifiers/ivpol/cosign)."""
    return site.item(
        APPLICATION,
        "ImageValidatingPolicy",
        book.source,
        name=kyverno.ref(book.policy, images=True).name,
        labels=MANAGED_BY,
        annotations=book.annotations,
        actions=[book.action],
        constraints=book.constraints(site),
        globs=[f"{prefix}*" for prefix in gate.prefixes],
        aliases=" || ".join(f"ref.lowerAscii().matches(r'{_alias(prefix)}')" for prefix in gate.prefixes),
        signers=gate.signers,
        trust=gate.trust,
        volumes=_VOLUMES,
        dated=gate.max_age is not None,
        rules=_rules(gate.max_age),
    )


def _alias(prefix: str) -> str:
    """RE2 for every name that a prefix has, in lower case."""
    host, _, path = prefix.partition("/")
    name, _, port = host.partition(":")
    given = f":0*{int(port)}" if port not in ("", "443", "80") else "(:0*(443|80))?"
    return f"^{re.escape(name)}{given}/{re.escape(path)}"


def _rules(max_age: timedelta | None) -> list[dict[str, str]]:
    """Each list of images: signed, and where there is a limit, of a build that ended within it.

    `verifyImageSignatures` takes any attestation of a signer for a signature, where one is there as a bundle (kyverno
    v1.19.1 pkg/image/verifiers/ivpol/cosign/verifier.go): that it is one is asked beside it.
    """
    rules = []
    for images in LISTS:
        signed = " && ".join(
            (
                "verifyImageSignatures(image, [attestors.signers]) > 0",
                "verifyAttestationSignatures(image, attestations.signature, [attestors.signers]) > 0",
            )
        )
        rules.append(
            {
                "expression": f"images.{images}.all(image, {signed})",
                "message": f"the images of {images} must be signed by one of the platform's signers",
            }
        )
        if max_age is None:
            continue
        proven = "verifyAttestationSignatures(image, attestations.provenance, [attestors.signers]) > 0"
        ended = "timestamp(extractPayload(image, attestations.provenance).predicate.runDetails.metadata.finishedOn)"
        age, ahead = (f"duration('{int(span.total_seconds())}s')" for span in (max_age, CLOCK_SKEW))
        recent = f"{ended} > time.now() - {age} && {ended} < time.now() + {ahead}"
        rules.append(
            {
                "expression": f"images.{images}.all(image, {proven} && {recent})",
                "message": f"the images of {images} must have provenance by the platform's signers that is not too old",
            }
        )
    return rules


def _gatekeeper(site: Site, document: Document[Policy], book: Rulebook, gate: ImageGate) -> Iterator[Item]:
    if gate.provider is None:  # the spec refuses this
        return
    provider, url = name("Provider", book.policy), gate.provider.url
    needs: tuple[Ref, ...] = ()
    if (ours := gate_of(site, document)) is not None:
        url, needs = ours.url, ours.refs
    yield site.item(
        APPLICATION,
        "Provider",
        book.source,
        name=provider,
        labels=MANAGED_BY,
        url=url,
        bundle=gate.provider.ca_bundle,
        needs=needs,
    )
    source = site.templates.render("ImageGateSource", source=book.source)
    yield gatekeeper.template(site, book, "Rego", source, _PARAMETERS)
    age = None if gate.max_age is None else int(gate.max_age.total_seconds())
    item = gatekeeper.constraint(
        site,
        book,
        {
            "provider": provider,
            "prefixes": list(gate.prefixes),
            "signers": [signer.model_dump() for signer in gate.signers],
        }
        | ({} if age is None else {"maxAgeSeconds": age}),
    )
    yield Item(item.manifest, item.application, (Ref("externaldata.gatekeeper.sh", "Provider", "", provider),))
