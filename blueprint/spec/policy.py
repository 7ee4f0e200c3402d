"""Policy: a rule written once in CEL, or an image gate, enforced by the engines of a cluster."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from blueprint.spec.base import API_VERSION, Duration, Metadata, Model, Name, fault

Engine = Literal["ValidatingAdmissionPolicy", "Kyverno", "Gatekeeper"]


class Match(Model):
    """What a rule sees: kinds as `resource.group` in the plural (`pods`, `jobs.batch`), where, and on which verbs."""

    resources: tuple[str, ...] = Field(min_length=1)
    operations: tuple[Literal["CREATE", "UPDATE", "DELETE"], ...] = ("CREATE", "UPDATE")
    namespaces: Literal["tenants", "platform", "all"] = "tenants"


class Variable(Model):
    """A named CEL expression that rules may use as `variables.<name>`."""

    name: str = Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")
    expression: str


class Rule(Model):
    """A CEL expression over `object` (and `oldObject`) that must hold, and what to say when it does not."""

    expression: str
    message: str


class Identity(Model):
    """Who may sign: the exact identity and its issuer; there is no default that accepts anybody."""

    subject: str = Field(min_length=1)
    issuer: str = Field(min_length=1)


class ImageGate(Model):
    """Images under these prefixes must carry a signature of one of the identities, not older than `max_age`."""

    prefixes: tuple[str, ...] = Field(min_length=1)
    signers: tuple[Identity, ...] = Field(min_length=1)
    max_age: Duration | None = None


class PolicySpec(Model):
    """The body of a Policy: either `rules` or `images`."""

    description: str
    clusters: tuple[Name, ...] = ()
    engines: tuple[Engine, ...] = ("ValidatingAdmissionPolicy",)
    action: Literal["Deny", "Audit", "Warn"] = "Deny"
    match: Match | None = None
    variables: tuple[Variable, ...] = ()
    rules: tuple[Rule, ...] = ()
    images: ImageGate | None = None

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


class Policy(Model):
    """A rule for the whole platform."""

    api_version: Literal["platform.blueprint/v1alpha1"] = API_VERSION
    kind: Literal["Policy"]
    metadata: Metadata
    spec: PolicySpec
