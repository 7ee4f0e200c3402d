"""Policy: a rule written once in CEL, or an image gate, enforced by the engines of a cluster."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from blueprint.spec.base import API_VERSION, Duration, Metadata, Model, Name, Url, fault
from blueprint.spec.cluster import Cluster

Engine = Literal["ValidatingAdmissionPolicy", "Kyverno", "Gatekeeper"]

#: Variables that every policy has; Gatekeeper reserves `params` too (gatekeeper v3.23.1 k8scel/schema/schema.go).
GIVEN_VARIABLES: Final = ("anyObject", "byController")
_RESERVED: Final = (*GIVEN_VARIABLES, "params")


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
    root: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+={0,2}$")]
    """Its root.json in base64."""


class ImageProvider(Model):
    """The service that Gatekeeper asks about signatures."""

    url: Annotated[Url, Field(pattern=r"^https://")]
    """Address of the service."""
    ca_bundle: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+={0,2}$")]
    """PEM of its authority in base64."""


class ImageGate(Model):
    """Images of tenants under these prefixes must carry a signature of one of the identities.

    `max_age` is how old it may be. Gatekeeper's provider tells when an image was signed; Kyverno cannot, and asks for
    SLSA provenance by the same signers whose build ended no longer ago.
    """

    prefixes: tuple[Annotated[str, Field(pattern=r"^[a-z0-9.\-]+(:[0-9]+)?/[a-z0-9._/\-]*$")], ...] = Field(
        min_length=1
    )
    """Images that are judged, such as `registry.example.com/`."""
    signers: tuple[Identity, ...] = Field(min_length=1)
    """Who may have signed."""
    max_age: Duration | None = None
    """How old the signature may be."""
    trust: SignatureTrust | None = None
    """Keys of a Sigstore of one's own; Kyverno asks the public one without it."""
    provider: ImageProvider | None = None
    """The service that Gatekeeper asks."""


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
