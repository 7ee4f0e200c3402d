"""The image gate runs from what is rendered for it: the same files, at the places where the pod mounts them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from blueprint.runtime.configuration import load
from blueprint.runtime.gate import Gate
from blueprint.runtime.gateconfig import GateConfig
from blueprint.runtime.service import Service
from tests.attest.oci import FakeRegistry, provenance, signature
from tests.attest.world import MALLORY, RENDERER, Office
from tests.render.worlds import PLAIN, World, cluster, team
from tests.runtime.conftest import Keys
from tests.runtime.test_gate import Caller, request, status

NAME = "image-gate-signed"


def rendered(folder: Path, office: Office, keys: Keys, registry: FakeRegistry) -> World:
    policy = {
        "apiVersion": "platform.blueprint/v1alpha1",
        "kind": "Policy",
        "metadata": {"name": "signed"},
        "spec": {
            "description": "Images are signed.",
            "engines": ["Gatekeeper"],
            "images": {
                "prefixes": [f"{registry.host}/"],
                "signers": [{"subject": RENDERER, "issuer": office.store.issuer}],
                "maxAge": "1h",
                "provider": {
                    "caBundle": base64.b64encode(keys.authority.read_bytes()).decode(),
                    "service": {
                        "image": "registry.example.com/platform/blueprint@sha256:" + "0" * 64,
                        "trustedRoot": base64.b64encode(json.dumps(office.store.trusted_root()).encode()).decode(),
                        "registry": {"plainHttp": [registry.host], "credentials": "pull"},
                    },
                },
            },
        },
    }
    quota = "[{cluster: here, pool: gpu, gpus: 8}]"
    return World(folder, cluster(f"[{PLAIN}]"), team(quota), json.dumps(policy))


def pod(world: World, root: Path, secrets: dict[str, dict[str, bytes]]) -> Path:
    """What a kubelet would mount, below `root`; the path of the configuration, with every path in it moved there."""
    spec = world.get("Deployment", NAME)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    sources = {volume["name"]: volume for volume in spec["volumes"]}
    for mount in container["volumeMounts"]:
        folder = root / mount["mountPath"].removeprefix("/")
        folder.mkdir(parents=True)
        for name, data in _files(sources[mount["name"]], world, secrets):
            (folder / name).write_bytes(data)
    (file,) = container["args"]
    place = root / file.removeprefix("/")
    text = place.read_text()
    for mount in container["volumeMounts"]:
        text = text.replace(f" {mount['mountPath']}/", f" {root}{mount['mountPath']}/")
    place.write_text(f"{text}address: 127.0.0.1\n".replace("8443", "0").replace("8081", "0"))
    return place


def _files(volume: dict[str, Any], world: World, secrets: dict[str, dict[str, bytes]]) -> list[tuple[str, bytes]]:
    if "configMap" in volume:
        data = world.get("ConfigMap", volume["configMap"]["name"])["data"]
        return [(name, text.encode()) for name, text in data.items()]
    held = secrets[volume["secret"]["secretName"]]
    return [(item["path"], held[item["key"]]) for item in volume["secret"]["items"]]


def test_it_answers_gatekeeper_and_nobody_else(office: Office, keys: Keys, tmp_path: Path) -> None:
    with FakeRegistry.running() as registry:
        good, bad, other = (registry.image(f"serving/{name}") for name in ("good", "bad", "other"))
        registry.refer(good, signature(office, good))
        registry.refer(good, provenance(office, good))
        registry.refer(other, signature(office, other, MALLORY))
        registry.token = "a-pull-token"
        login = {"auths": {registry.host: {"username": "robot", "password": "pull"}}}
        secrets = {
            f"{NAME}-tls": {"tls.crt": keys.certificate.read_bytes(), "tls.key": keys.key.read_bytes()},
            "gatekeeper-webhook-server-cert": {"ca.crt": keys.authority.read_bytes(), "tls.key": b"Gatekeeper's own"},
            "pull": {".dockerconfigjson": json.dumps(login).encode()},
        }
        world = rendered(tmp_path / "specs", office, keys, registry)
        config = load(GateConfig, pod(world, tmp_path / "pod", secrets))
        assert not [file for file in (tmp_path / "pod").rglob("*") if file.is_file() and b"own" in file.read_bytes()]
        with Service(config, Gate.of(config)) as running:
            code, body = Caller(running.port, keys, caller=True).post(request(good, bad, other))
            with pytest.raises(OSError):
                Caller(running.port, keys).post(request(good))
            assert status(running, "/readyz")[0] == 200
        assert code == 200
        items = json.loads(body)["response"]["items"]
        assert items[0]["value"]["identity"] == RENDERER
        assert [item.get("error", "")[:6] for item in items] == ["", "SIG403", "SIG104"]
