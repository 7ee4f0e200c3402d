"""Policy: a rule written once in CEL, or an image gate, enforced by the engines of a cluster."""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import Field, field_validator, model_validator

from blueprint.spec.base import API_VERSION, Duration, Image, Metadata, Model, Name, Url, fault, shown
from blueprint.spec.cluster import Cluster

Engine = Literal["ValidatingAdmissionPolicy", "Kyverno", "Gatekeeper"]

#: Variables that every policy has; Gatekeeper reserves `params` too (gatekeeper v3.23.1 k8scel/schema/schema.go).
GIVEN_VARIABLES: Final = ("anyObject", "byController")
_RESERVED: Final = (*GIVEN_VARIABLES, "params")

Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+={0,2}$")]

#: How far ahead the clock of a build may be; every engine allows the same.
CLOCK_SKEW: Final = timedelta(minutes=5)

_HOST_AND_PORT: Final = r"^[a-z0-9.\-]+(:[0-9]+)?$"
_TRUSTED_ROOT: Final = "application/vnd.dev.sigstore.trustedroot"


class Match(Model):
    """What a rule sees: kinds in the plural with their group, where, and on which verbs.

    `pods`, `jobs.batch`, `pods/ephemeralcontainers`. `tenants` are the namespaces of teams, `platform` those of
    components, `all` every namespace and what is in none; Kubernetes' own and the engines' are never judged.
    """

    resources: tuple[Annotated[str, Field(pattern=r"^[a-z0-9]+(\.[a-z0-9.\-]+)?(/[a-z]+)?$")], ...] = Field(
        min_length=1
    )
    """Kinds, such as `pods` or `jobs.batch`."""
    operations: tuple[Literal["CREATE", "UPDATE", "DELETE"], ...] = Field(default=("CREATE", "UPDATE"), min_length=1)
    """Verbs that are judged."""
    namespaces: Literal["tenants", "platform", "all"] = "tenants"
    """Whose objects are judged."""


class Variable(Model):
    """A named CEL expression that rules may use as `variables.<name>`."""

    name: str = Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")
    """Used as `variables.<name>`."""
    expression: str
    """CEL."""


class Rule(Model):
    """A CEL expression over `object` (and `oldObject`) that must hold, and what to say when it does not.

    Besides its own variables a policy has `variables.anyObject` (the old object when one is deleted) and
    `variables.byController`: false where a person, or a service account of the namespace itself, asks.
    """

    expression: str = Field(min_length=1)
    """CEL that must be true."""
    message: Annotated[str, Field(pattern=r"^[^\r\n]+$")]
    """What the refused person reads."""


class Identity(Model):
    """Who may sign: the exact identity and its issuer; there is no default that accepts anybody."""

    subject: str = Field(min_length=1)
    """The exact identity in the certificate."""
    issuer: str = Field(min_length=1)
    """The exact issuer of the identity."""


class SignatureTrust(Model):
    """The TUF repository with the trusted keys of a Sigstore of one's own.

    Kyverno reads one before it verifies any identity, so a cluster that cannot reach the public one needs this.
    """

    mirror: Url
    """Address of the TUF repository."""
    root: Base64
    """Its root.json in base64."""


def _certificates(value: str) -> str:
    """The value, if it is PEM with a certificate in base64."""
    try:
        text = base64.b64decode(value, validate=True).decode("ascii")
    except ValueError:
        text = ""
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise ValueError("not a certificate; write the base64 of a PEM file")
    return value


class GateRegistry(Model):
    """Where the registry is that the service reads signatures from; by default anywhere, with TLS that is known.

    Without a network to the outside it is a copy inside: name its addresses or namespace, and its authority.
    """

    addresses: tuple[str, ...] = ()
    """Networks in which the registry is (CIDR); the service reaches nothing else."""
    namespace: Name | None = None
    """Namespace in which the registry runs, for one in the cluster."""
    port: int = Field(default=443, ge=1, le=65535)
    """Its port."""
    authority: Base64 | None = None
    """PEM of a private authority in base64."""
    credentials: Name | None = None
    """Secret of type kubernetes.io/dockerconfigjson, beside Gatekeeper, with the right to pull."""
    plain_http: tuple[Annotated[str, Field(pattern=_HOST_AND_PORT)], ...] = ()
    """Hosts without TLS."""

    @field_validator("addresses")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            try:
                ipaddress.ip_network(text)
            except ValueError:
                raise ValueError(f"not a network: {shown(text)}; write it such as 10.20.0.0/24") from None
        return value

    @field_validator("authority")
    @classmethod
    def _is_pem(cls, value: str | None) -> str | None:
        return value if value is None else _certificates(value)


class GateService(Model):
    """Our service, rendered: it runs beside Gatekeeper, with no right in the cluster and no token."""

    image: Image
    """Any image with Python and blueprint in it, by its digest."""
    trusted_root: Base64
    """trusted_root.json of the Sigstore in base64; nothing is fetched."""
    issuer: Name | None = None
    """ClusterIssuer of cert-manager that signs by the authority of `caBundle`; without it somebody else brings the
    Secret with the certificate, whose name is that of the service with `-tls` behind it."""
    callers: Name = "gatekeeper-webhook-server-cert"
    """Secret whose ca.crt signed Gatekeeper's own certificate: nobody else is heard."""
    replicas: int = Field(default=2, ge=1, le=10)
    """Pods; while none answers, no image is let in."""
    registry: GateRegistry = GateRegistry()
    """Where the registry is."""

    @field_validator("trusted_root")
    @classmethod
    def _is_a_root(cls, value: str) -> str:
        try:
            document = json.loads(base64.b64decode(value, validate=True))
        except ValueError:
            document = None
        if not isinstance(document, dict) or not str(document.get("mediaType")).startswith(_TRUSTED_ROOT):
            raise ValueError("not a trusted root; write the base64 of a trusted_root.json")
        for key in ("certificateAuthorities", "tlogs", "timestampAuthorities"):
            if not document.get(key):
                raise ValueError(f"the trusted root has no {key}: no signature would ever hold")
        return value


class ImageProvider(Model):
    """What Gatekeeper asks about signatures: `url` of a service that is there, or ours, which is rendered."""

    url: Annotated[Url, Field(pattern=r"^https://")] | None = None
    """Address of a service that is there."""
    ca_bundle: Base64
    """PEM of its authority in base64."""
    service: GateService | None = None
    """Renders our service."""

    @model_validator(mode="after")
    def _one_of_two(self) -> ImageProvider:
        if (self.url is None) == (self.service is None):
            raise fault("url", "a provider has either url, of a service that is there, or service, which renders ours")
        return self


class ImageGate(Model):
    """Images of tenants under these prefixes must carry a signature of one of the identities.

    With `max_age` they must carry SLSA provenance (v1) of one of them, too, whose build ended no longer ago: Kyverno
    reads what was signed, and not when. Both engines hold the same.
    """

    prefixes: tuple[Annotated[str, Field(pattern=r"^[a-z0-9.\-]+(:[0-9]+)?/[a-z0-9._/\-]*$")], ...] = Field(
        min_length=1
    )
    """Images that are judged, such as `registry.example.com/`."""
    signers: tuple[Identity, ...] = Field(min_length=1)
    """Who may have signed."""
    max_age: Duration | None = None
    """How long ago the build of an image may have ended (`runDetails.metadata.finishedOn` of its provenance)."""
    trust: SignatureTrust | None = None
    """Keys of a Sigstore of one's own; Kyverno asks the public one without it."""
    provider: ImageProvider | None = None
    """The service that Gatekeeper asks."""

    @field_validator("prefixes")
    @classmethod
    def _name_their_registry(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for prefix in value:
            if prefix.partition("/")[0] in ("docker.io", "index.docker.io", "registry-1.docker.io"):
                raise ValueError(
                    f"{shown(prefix)} has names without a host, too, which no prefix sees: use a registry of your own"
                )
        return value


class PolicySpec(Model):
    """The body of a Policy: either `rules` or `images`."""

    description: str
    """What it is for."""
    clusters: tuple[Name, ...] = ()
    """Where it holds; everywhere when empty."""
    engines: tuple[Engine, ...] = ("ValidatingAdmissionPolicy",)
    """Who enforces it."""
    action: Literal["Deny", "Audit", "Warn"] = "Deny"
    """What happens to an object that breaks it."""
    match: Match | None = None
    """What the rules judge."""
    variables: tuple[Variable, ...] = ()
    """Named expressions for the rules."""
    rules: tuple[Rule, ...] = ()
    """What must hold."""
    images: ImageGate | None = None
    """Signatures that images must carry."""

    @model_validator(mode="after")
    def _one_thing(self) -> PolicySpec:
        if bool(self.rules) == (self.images is not None):
            raise ValueError("a policy has either rules or images")
        if self.rules and self.match is None:
            raise fault("rules", "rules need match: the resources that they judge")
        if self.images and "ValidatingAdmissionPolicy" in self.engines:
            raise fault(
                "engines", "a ValidatingAdmissionPolicy cannot ask a registry: use Kyverno or Gatekeeper for images"
            )
        return self

    @model_validator(mode="after")
    def _engines_can(self) -> PolicySpec:
        if self.images and self.match:
            raise fault("match", "an image gate judges the pods of tenants: match is for rules")
        if self.images and "Gatekeeper" in self.engines and self.images.provider is None:
            raise fault("engines", "Gatekeeper asks a service about signatures: add images.provider, or leave it out")
        for variable in self.variables:
            if variable.name in _RESERVED or variable.name.startswith("gatekeeper_internal_"):
                raise fault("variables", f"{variable.name} is a name that policies have already")
        texts = [variable.expression for variable in self.variables] + [rule.expression for rule in self.rules]
        if any(re.search(r"\bauthorizer\b", text) for text in texts) and set(self.engines) != {
            "ValidatingAdmissionPolicy"
        }:
            raise fault("engines", "only a ValidatingAdmissionPolicy knows authorizer: name it alone")
        return self


class Policy(Model):
    """A rule for the whole platform."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["Policy"]
    metadata: Metadata
    spec: PolicySpec


def has_engine(cluster: Cluster, engine: Engine) -> bool:
    """Whether the cluster runs the engine; admission policies are Kubernetes' own."""
    return engine == "ValidatingAdmissionPolicy" or getattr(cluster.spec.components, engine.lower()) is not None
