"""The configuration of the image gate: closed, and nothing in it accepts anybody by default."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from blueprint.spec.base import Duration, Model
from blueprint.spec.policy import Identity

File = Annotated[str, Field(min_length=1)]
"""A path, as the container sees it."""


class Tls(Model):
    """The certificate of the service; with `client_authority` only callers with a certificate of it are heard."""

    certificate: File
    """PEM of the certificate and its chain."""
    key: File
    """PEM of its key."""
    client_authority: File | None = None
    """PEM of the authority of callers (Gatekeeper's own)."""


class Registries(Model):
    """How registries are asked."""

    plain_http: tuple[str, ...] = ()
    """Hosts without TLS; for tests, or registries inside of the cluster."""
    authority: File | None = None
    """PEM of a private authority."""
    credentials: File | None = None
    """A config.json of Docker."""
    timeout: Duration = Field(default="1500ms", validate_default=True)
    """How long all requests about one image may take; the webhook that waits for us has about two seconds."""


class Limits(Model):
    """What a caller may ask for."""

    concurrent: int = Field(default=32, ge=1, le=1024)
    """Requests at once; more are told to come again."""
    answer: Duration = Field(default="10s", validate_default=True)
    """How long a request may be worked on: images that are not reached by then are refused."""
    waiting: int = Field(default=64, ge=1, le=1024)
    """Callers without a whole request at once; of more, those that wait longest are cut off."""
    arrival: Duration = Field(default="5s", validate_default=True)
    """How long a handshake and a request may take together."""
    keys: int = Field(default=128, ge=1, le=4096)
    """Images in a request."""
    body: int = Field(default=256 * 1024, ge=1024)
    """Bytes of a request."""


class Cache(Model):
    """How long answers are kept. A signature that is revoked, or an image signed anew, shows after that time."""

    signed: Duration = Field(default="5m", validate_default=True)
    """Of an image whose signature holds."""
    refused: Duration = Field(default="10s", validate_default=True)
    """Of one whose does not."""
    entries: int = Field(default=4096, ge=1)
    """Answers that are kept; the oldest go first."""


class GateConfig(Model):
    """Everything that the service needs."""

    address: str = "0.0.0.0"  # noqa: S104 - a pod's own address
    """Where it listens."""
    port: int = Field(default=8443, ge=0, le=65535)
    """The port of Gatekeeper's requests, with TLS."""
    status_port: int = Field(default=8081, ge=0, le=65535)
    """The port of /healthz, /readyz and /metrics, without TLS."""
    tls: Tls
    """The certificate."""
    trusted_root: File
    """Keys of the Sigstore, as a file: nothing is fetched."""
    signers: tuple[Identity, ...] = Field(min_length=1)
    """Who may sign images, both exact."""
    prefixes: tuple[Annotated[str, Field(min_length=4)], ...] = Field(min_length=1)
    """Images that are looked at; others are refused, and no registry is asked."""
    max_age: Duration | None = None
    """How long ago a build may have ended, as the signers' provenance says it."""
    registries: Registries = Registries()
    """How registries are asked."""
    cache: Cache = Cache()
    """How long answers are kept."""
    limits: Limits = Limits()
    """What a caller may ask for."""
