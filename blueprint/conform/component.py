"""A program of the platform that runs beside the control plane: what it needs, how it is started, when it is ready."""

from __future__ import annotations

import http.client
import ssl
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blueprint.conform.certificates import Authority
from blueprint.conform.client import Client
from blueprint.conform.controlplane import ControlPlane
from blueprint.conform.daemon import NotReady

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shipped:
    """Folders of a Go module with CustomResourceDefinitions, of one `kind` where only that is wanted.

    `pinned` is the folder of `tools/` that says which version.
    """

    module: str
    folders: tuple[str, ...]
    pinned: str = "crds"
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a component starts on: the control plane, a folder of its own, ports by name, certificates, the tree.

    `others` are the ports of all components that stand on the same control plane.
    """

    plane: ControlPlane
    kubeconfig: Path
    folder: Path
    ports: Mapping[str, int]
    authority: Authority
    objects: Sequence[Body]
    isolated: bool
    others: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def client(self) -> Client:
        """The administrator's client."""
        return self.plane.client

    def of_kind(self, kind: str, name: str = "") -> list[Body]:
        """Objects of the rendered tree."""
        return [b for b in self.objects if b["kind"] == kind and name in ("", b["metadata"]["name"])]

    def create(self, *bodies: Body) -> None:
        """Create objects that may be there already; raises NotReady naming one that is refused."""
        for body in bodies:
            answer = self.client.create(body)
            if not answer.ok and answer.status != 409:
                raise NotReady(f"{body['kind']} {body['metadata']['name']} is refused: {answer.message}")


Arguments = Callable[[Ground], Sequence[str | Path]]


@dataclass(frozen=True, slots=True)
class Component:
    """One program. Everything is a function of the ground, so that nothing but data decides a start.

    `user` and `groups` are who it is for the API server. `prepare` writes what it reads when it starts; `hooks` makes
    the webhook configurations that are written once it listens. It is ready when `ready` (a URL, if there is one)
    answers 200 and every port of `listens` accepts a connection. `after` names components that must be ready before it
    starts.
    """

    name: str
    program: str
    arguments: Arguments
    ready: Callable[[Ground], str] = field(default=lambda _: "")
    ports: tuple[str, ...] = ()
    listens: tuple[str, ...] = ()
    user: str = ""
    groups: tuple[str, ...] = ("system:masters",)
    environment: Callable[[Ground], Mapping[str, str]] = field(default=lambda _: {})
    prepare: Callable[[Ground], None] = field(default=lambda _: None)
    hooks: Callable[[Ground], Sequence[Body]] = field(default=lambda _: ())
    crds: tuple[Shipped, ...] = ()
    convert: Callable[[Ground, Body], Body] = field(default=lambda _, crd: crd)
    namespaces: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """The user name of its token."""
        return self.user or f"component:{self.name}"


def answers(url: str) -> bool:
    """Whether a URL on loopback answers 200; its certificate is not looked at."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as response:  # noqa: S310 - a URL of ours
            return bool(response.status == 200)
    except (OSError, ValueError, http.client.HTTPException):
        return False


def hooks_by_url(bodies: Sequence[Body], base: str, bundle: str, *, prefix: str = "") -> list[Body]:
    """Webhook configurations whose services are replaced by URLs below `base`, where no Service leads to a process."""
    found = []
    for body in bodies:
        if not str(body.get("kind", "")).endswith("WebhookConfiguration"):
            continue
        hooks = []
        for hook in body["webhooks"]:
            path = hook["clientConfig"].get("service", {}).get("path", "/")
            hooks.append({**hook, "clientConfig": {"url": f"{base}{path}", "caBundle": bundle}})
        found.append({**body, "metadata": {"name": f"{prefix}{body['metadata']['name']}"}, "webhooks": hooks})
    return found
