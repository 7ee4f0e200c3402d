"""The image gate: images in a real registry, signed by cosign through the offline Sigstore, judged by both engines.

Here without a cluster: our service, which Gatekeeper asks, and Kyverno's own program, air-gapped, with a TUF mirror.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from blueprint.attest.evidence import written
from blueprint.runtime.gate import Gate
from blueprint.runtime.gateconfig import GateConfig
from blueprint.runtime.service import Service
from tests.attest.conftest import office  # noqa: F401 - a fixture
from tests.attest.sigstore.tuf import write_repository
from tests.attest.world import MALLORY, RENDERER, Office
from tests.conformance.conftest import program
from tests.conformance.test_cosign import Cosign, Registry, serving
from tests.conformance.test_policies_cli import write
from tests.loopback import http_server
from tests.render.worlds import PLAIN, World, cluster, job, team
from tests.runtime.conftest import Keys, keys  # noqa: F401 - a fixture

pytestmark = pytest.mark.conformance

TENANT = "team-a"


@dataclass
class Gallery:
    """Images by what is the matter with them."""

    good: str
    unsigned: str
    other_identity: str
    other_issuer: str
    old: str
    tag: str
    fresh: str
    rebuilt: str
    resigned: str
    undated: str
    attested: str
    noisy: str
    twice: str
    tomorrow: str


@contextmanager
def _files(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http_server(partial(Quiet, directory=str(folder))) as server:
        yield f"http://127.0.0.1:{server.server_port}"


PLAIN_HTTP = ("--allow-insecure-registry", "--allow-http-registry")


def _sign(cosign: Cosign, image: str, identity: str) -> None:
    services = cosign.services
    (cosign.folder / "token").write_text(cosign.office.store.token(identity))
    cosign.done("sign", *services, *PLAIN_HTTP, image)


def _attest(cosign: Cosign, image: str, identity: str, finished: timedelta) -> None:
    """Say when the build of an image ended."""
    services = cosign.services
    (cosign.folder / "token").write_text(cosign.office.store.token(identity))
    predicate = {
        "buildDefinition": {"buildType": "https://example.com/build", "externalParameters": {}},
        "runDetails": {
            "builder": {"id": identity},
            "metadata": {"finishedOn": written(datetime.now(UTC) - finished)},
        },
    }
    (cosign.folder / "predicate.json").write_text(json.dumps(predicate))
    given = ["--predicate", "predicate.json", "--type", "slsaprovenance1"]
    cosign.done("attest", *services, *PLAIN_HTTP, *given, image)


def _both(cosign: Cosign, image: str, identity: str, finished: timedelta) -> None:
    _sign(cosign, image, identity)
    _attest(cosign, image, identity, finished)


def _gallery(registry: Registry, folder: Path, office: Office) -> Gallery:  # noqa: F811
    names = tuple(field.name.replace("_", "-") for field in fields(Gallery) if field.name != "tag")
    made = {name.replace("-", "_"): registry.image(name) for name in names}
    cosign, fulcio = Cosign(folder, office), office.store.fulcio
    recent, long_ago = timedelta(minutes=1), timedelta(days=20)
    _both(cosign, made["good"], RENDERER, recent)
    _both(cosign, made["fresh"], RENDERER, recent)
    _both(cosign, made["other_identity"], MALLORY, recent)
    # The two times apart: what was signed today of an old build, and a build of today that was signed long ago.
    _both(cosign, made["rebuilt"], RENDERER, long_ago)
    _attest(cosign, made["resigned"], RENDERER, recent)
    _sign(cosign, made["undated"], RENDERER)
    _attest(cosign, made["undated"], MALLORY, recent)
    _attest(cosign, made["attested"], RENDERER, recent)
    # What others attach changes nothing.
    _both(cosign, made["noisy"], MALLORY, long_ago)
    _both(cosign, made["noisy"], RENDERER, recent)
    _both(cosign, made["noisy"], MALLORY, long_ago)
    _both(cosign, made["twice"], RENDERER, long_ago)
    _attest(cosign, made["twice"], RENDERER, recent)
    _both(cosign, made["tomorrow"], RENDERER, timedelta(days=-1))
    real = fulcio.issue
    fulcio.issue = lambda public, identity, _: real(public, identity, "https://token.example.net")  # type: ignore[method-assign]
    _both(cosign, made["other_issuer"], RENDERER, recent)
    del fulcio.issue  # type: ignore[method-assign]
    fulcio.offset = office.store.tsa.offset = -long_ago
    _both(cosign, made["old"], RENDERER, long_ago)
    _sign(cosign, made["resigned"], RENDERER)
    fulcio.offset = office.store.tsa.offset = timedelta(0)
    return Gallery(**made, tag=f"{registry.host}/serving/good:1")


@dataclass
class Premises:
    """What the gate needs beside a cluster: images, the service, and the policy as it is rendered."""

    folder: Path
    gallery: Gallery
    world: World
    config: GateConfig
    service: Service


@pytest.fixture(scope="module")
def premises(
    office: Office,  # noqa: F811
    keys: Keys,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Premises]:
    for name in ("cosign", "crane"):
        program(name)
    folder = tmp_path_factory.mktemp("gate")
    signers = [{"subject": RENDERER, "issuer": office.store.issuer}]
    root = folder / "root.json"
    root.write_text(json.dumps(office.store.trusted_root()))
    anchor = write_repository(office.store, folder / "tuf")
    with serving(folder) as registry, _files(folder / "tuf") as mirror:
        gallery = _gallery(registry, folder, office)
        given = {
            "address": "127.0.0.1",
            "port": 0,
            "statusPort": 0,
            "tls": {"certificate": str(keys.certificate), "key": str(keys.key)},
            "trustedRoot": str(root),
            "signers": signers,
            "prefixes": [f"{registry.host}/"],
            "maxAge": "7d",
            "registries": {"plainHttp": [registry.host], "timeout": "20s"},
        }
        config = GateConfig.model_validate(given, strict=False)
        with Service(config, Gate.of(config)) as service:
            policy = {
                "apiVersion": "platform.blueprint/v1alpha1",
                "kind": "Policy",
                "metadata": {"name": "signed-images"},
                "spec": {
                    "description": "Images are signed.",
                    "engines": ["Kyverno", "Gatekeeper"],
                    "images": {
                        "prefixes": [f"{registry.host}/"],
                        "signers": signers,
                        "maxAge": "7d",
                        "trust": {"mirror": mirror, "root": base64.b64encode(anchor).decode()},
                        "provider": {
                            "url": f"https://127.0.0.1:{service.port}/verify",
                            "caBundle": base64.b64encode(keys.authority.read_bytes()).decode(),
                        },
                    },
                },
            }
            quota = "[{cluster: here, pool: gpu, gpus: 8}]"
            world = World(folder / "world", cluster(f"[{PLAIN}]"), team(quota), job(pool="gpu"), json.dumps(policy))
            yield Premises(folder, gallery, world, config, service)


VERDICTS = {
    "good": True,
    "fresh": True,
    "unsigned": False,
    "other_identity": False,
    "other_issuer": False,
    "old": False,
    "tag": False,
    "rebuilt": False,
    "resigned": True,
    "undated": False,
    "attested": False,
    "noisy": True,
    "tomorrow": False,
}


def test_our_service_and_kyverno_give_the_same_verdicts(premises: Premises) -> None:
    """Without a cluster: the rendered policy in Kyverno's own program, air-gapped, against what our service answers."""
    gate, gallery, folder = Gate.of(premises.config), vars(premises.gallery), premises.folder
    ours = {name: gate.answer(image).signature is not None for name, image in gallery.items()}
    # Of several the last one in the registry's list counts: which that is, is the registry's affair, and one for both.
    twice = {"twice": ours["twice"]}
    assert ours == VERDICTS | twice
    (policy,) = rendered_of(premises.world, "ImageValidatingPolicy")
    pods = [pod_of(name.replace("_", "-"), image) for name, image in gallery.items()]
    pods.append(pod_of("init", gallery["good"], initContainers=[{"name": "side", "image": gallery["unsigned"]}]))
    pods.append(pod_of("alias", gallery["unsigned"].replace(":", ":0", 1)))
    for name, image in (("volume", "unsigned"), ("signed-volume", "fresh")):
        pods.append(pod_of(name, gallery["good"], volumes=[{"name": "models", "image": {"reference": gallery[image]}}]))
    labels = {"platform.blueprint/team": "a", "kubernetes.io/metadata.name": TENANT}
    values = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "Values", "metadata": {"name": "values"}}
    values["namespaceSelector"] = [{"name": TENANT, "labels": labels}]
    command = [program("kyverno"), "apply", write(folder / "policy.yaml", policy), "--registry"]
    command += ["--resource", write(folder / "pods.yaml", *pods)]
    command += ["--values-file", write(folder / "values.yaml", values), "--policy-report", "--output-format", "json"]
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert "{" in done.stdout, done.stderr[-2000:]
    results = json.loads(done.stdout[done.stdout.index("{") :])["results"]
    theirs = {row["resources"][0]["name"].replace("-", "_"): row["result"] == "pass" for row in results}
    assert theirs == VERDICTS | twice | {
        "init": False,
        "alias": False,
        "volume": False,
        "signed_volume": True,
    }


def rendered_of(world: World, *kinds: str) -> list[dict[str, Any]]:
    bodies = [file.manifest.body for file in world.cluster.files]
    return [body for kind in kinds for body in bodies if body["kind"] == kind]


def pod_of(name: str, image: str, namespace: str = TENANT, **lists: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": image}], **lists}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
