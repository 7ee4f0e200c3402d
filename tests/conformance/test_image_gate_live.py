"""The image gate, live: what the rendered policy lets in and what not, by Gatekeeper with our service, and by Kyverno.

The API server, Gatekeeper and Kyverno run as processes. Each engine judges alone, so that its verdict is its own; the
cases are the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from blueprint.attest.evidence import World
from blueprint.attest.policy_evidence import in_force
from blueprint.conform.client import Answer, Client, Target
from blueprint.conform.component import Component
from blueprint.conform.components.gatekeeper import GATEKEEPER
from blueprint.conform.components.kyverno import KYVERNO
from blueprint.conform.local import LocalCluster
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.runtime.gate import Gate
from blueprint.runtime.service import Service
from tests.attest.conftest import office  # noqa: F401 - a fixture
from tests.conformance.conftest import program
from tests.conformance.test_image_gate import TENANT, Gallery, Premises, pod_of, premises, rendered_of  # noqa: F401
from tests.render.worlds import World as Platform
from tests.runtime.conftest import Keys, keys  # noqa: F401 - a fixture
from tests.runtime.test_gate import Caller, request

pytestmark = pytest.mark.conformance

PATIENCE = 90.0


@dataclass
class Hall:
    """The cluster with everything that the gate needs around it."""

    cluster: LocalCluster
    gallery: Gallery
    world: Platform

    @property
    def client(self) -> Client:
        return self.cluster.client

    def pod(self, image: str, namespace: str = TENANT, **lists: Any) -> Answer:
        return self.client.create(pod_of("probe", image, namespace, **lists), dry_run=True)

    def rendered(self, *kinds: str) -> list[dict[str, Any]]:
        return rendered_of(self.world, *kinds)

    def create(self, body: dict[str, Any]) -> None:
        answer = self.client.create(body)
        assert answer.ok, answer.message

    def until_refused(self, image: str) -> None:
        """Engines take seconds to take up a policy; until then they let everything in."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.pod(image).status in (400, 403):
                return
            time.sleep(0.5)
        pytest.fail(f"{image} was not refused within {PATIENCE} s")


class Engine(LocalCluster):
    """An API server and one policy engine: admission needs no nodes and no controllers, and pods are not run here."""

    def __init__(self, folder: Path, *components: Component) -> None:
        super().__init__([], folder=folder)
        self._components = components

    def _start(self) -> None:
        for component in self._components:
            self.start(component)


@contextmanager
def opened(component: Component, premises: Premises) -> Iterator[Hall]:  # noqa: F811
    """The hall of one engine."""
    for name in ("etcd", "kube-apiserver", component.program):
        program(name)
    with Engine(premises.folder / component.name, component) as running:
        running.plane.namespace(TENANT, {"platform.blueprint/team": "a"})
        running.plane.namespace("kube-system")
        yield Hall(running, premises.gallery, premises.world)


def _cases(hall: Hall) -> dict[str, tuple[Answer, bool]]:
    """What every engine must say of every image, wherever in a pod it stands."""
    gallery = hall.gallery
    side = [{"name": "side", "image": gallery.unsigned}]
    models, others = ([{"name": "models", "image": {"reference": image}}] for image in (gallery.good, gallery.unsigned))
    return {
        "signed": (hall.pod(gallery.good), True),
        "unsigned": (hall.pod(gallery.unsigned), False),
        "another identity": (hall.pod(gallery.other_identity), False),
        "another issuer": (hall.pod(gallery.other_issuer), False),
        "too old": (hall.pod(gallery.old), False),
        "signed today, of an old build": (hall.pod(gallery.rebuilt), False),
        "signed long ago, of a young build": (hall.pod(gallery.resigned), True),
        "of a build that nobody of ours dates": (hall.pod(gallery.undated), False),
        "attested, and not signed": (hall.pod(gallery.attested), False),
        "with signatures of others beside ours": (hall.pod(gallery.noisy), True),
        "a tag": (hall.pod(gallery.tag), False),
        "an unsigned init container": (hall.pod(gallery.good, initContainers=side), False),
        "an unsigned image by another name of its registry": (hall.pod(gallery.unsigned.replace(":", ":0", 1)), False),
        "a signed image that is mounted": (hall.pod(gallery.good, volumes=models), True),
        "an unsigned image that is mounted": (hall.pod(gallery.good, volumes=others), False),
        "an unsigned ephemeral container": (_ephemeral(hall, gallery.unsigned), False),
        "an image of somebody else's registry": (hall.pod("registry.example.com/other:1"), True),
        "an unsigned image of the system": (hall.pod(gallery.unsigned, "kube-system"), True),
    }


def _ephemeral(hall: Hall, image: str) -> Answer:
    """Add an ephemeral container to a pod that runs; it is a subresource, which policies forget."""
    answer = hall.client.create(pod_of("running", hall.gallery.good))
    assert answer.ok or answer.status == 409, answer.message
    change = {"spec": {"ephemeralContainers": [{"name": "debug", "image": image, "targetContainerName": "main"}]}}
    return hall.client.patch(Target("v1", "Pod", TENANT, "running"), change, part="ephemeralcontainers")


def _held(hall: Hall) -> None:
    wrong = [
        f"{name}: {'let in' if answer.ok else answer.message[:300]}"
        for name, (answer, wanted) in _cases(hall).items()
        if answer.ok is not wanted
    ]
    assert wrong == []


def _mutual(premises: Premises, hall: Hall) -> Service:  # noqa: F811
    """The service once more, for Gatekeeper alone."""
    tls = premises.config.tls.model_copy(update={"client_authority": str(hall.cluster.folder / "certificates/ca.crt")})
    config = premises.config.model_copy(update={"tls": tls})
    return Service(config, Gate.of(config)).__enter__()


def test_gatekeeper_asks_our_service(premises: Premises, keys: Keys) -> None:  # noqa: F811
    with opened(GATEKEEPER, premises) as hall:
        # As it is rendered: only who shows a certificate of Gatekeeper's own authority is heard.
        asked = _mutual(premises, hall)
        (provider,) = hall.rendered("Provider")
        provider["spec"]["url"] = f"https://127.0.0.1:{asked.port}/verify"
        (constraint,) = hall.rendered("BlueprintSignedImages")
        (template,) = [
            body
            for body in hall.rendered("ConstraintTemplate")
            if body["metadata"]["name"] == constraint["kind"].lower()
        ]
        hall.create(provider)
        hall.create(template)
        deadline = time.monotonic() + PATIENCE
        while not hall.client.serves(constraint["apiVersion"], constraint["kind"]) and time.monotonic() < deadline:
            time.sleep(0.5)
        hall.create(constraint)
        hall.until_refused(hall.gallery.unsigned)
        _held(hall)
        with pytest.raises(OSError):
            Caller(asked.port, keys).post(request(hall.gallery.good))
        # What Gatekeeper keeps of both is what was rendered, as a credential holds it to.
        kept = [hall.client.get(Target.of(body)).body for body in (template, constraint)]
        seen = World.of([Manifest(body, Source("cluster")) for body in kept])
        for body in (template, constraint):
            in_force(Manifest(body, Source("tree")), seen)
        assert [refused.message for refused in seen.refusals] == []
        # Down means refused, for an image that nobody has asked about yet; and the system goes on.
        asked.__exit__(None, None, None)
        down = hall.pod(hall.gallery.fresh)
        assert not down.ok
        assert "provider failed" in down.message or "connection refused" in down.message
        assert hall.pod(hall.gallery.fresh, "kube-system").ok


def test_kyverno_says_the_same(premises: Premises) -> None:  # noqa: F811
    with opened(KYVERNO, premises) as hall:
        (policy,) = hall.rendered("ImageValidatingPolicy")
        hall.create(policy)
        hall.until_refused(hall.gallery.unsigned)
        _held(hall)
