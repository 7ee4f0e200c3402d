"""The image gate's own service, as it is rendered: what it may, what it reaches, and what waits for it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import validate
from blueprint.check.pods import pod_templates
from blueprint.check.standards import Policy, violations
from blueprint.finding import Source
from blueprint.objects import Manifest
from tests.render.worlds import PLAIN, World, cluster, team

QUOTA = "[{cluster: here, pool: gpu, gpus: 8}]"
IMAGE = "registry.example.com/platform/blueprint@sha256:" + "0" * 64
ROOT = {
    "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "tlogs": [{}],
    "certificateAuthorities": [{}],
    "timestampAuthorities": [{}],
}
PEM = "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n"
NAME = "image-gate-gate"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def policy(engines: str = "Gatekeeper", **service: Any) -> str:
    """An image gate with our service."""
    given = {"image": IMAGE, "trustedRoot": encoded(json.dumps(ROOT))} | service
    body = {
        "apiVersion": "platform.blueprint/v1alpha1",
        "kind": "Policy",
        "metadata": {"name": "gate"},
        "spec": {
            "description": "d",
            "engines": engines.split(),
            "images": {
                "prefixes": ["registry.example.com/"],
                "signers": [{"subject": "s", "issuer": "i"}],
                "maxAge": "2d",
                "provider": {"caBundle": encoded(PEM), "service": given},
            },
        },
    }
    return json.dumps(body)


def world(folder: Path, text: str) -> World:
    return World(folder, cluster(f"[{PLAIN}]"), team(QUOTA), text)


@pytest.fixture
def plain(tmp_path: Path) -> World:
    return world(tmp_path, policy(issuer="platform-authority"))


def test_everything_that_the_service_needs_is_rendered(plain: World) -> None:
    assert plain.findings == ()
    kinds = {file.manifest.kind for file in plain.cluster.files if file.application == "image-gate"}
    assert kinds == {
        "Certificate",
        "ConfigMap",
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "PodMonitor",
        "Service",
        "ServiceAccount",
    }
    checked = validate([file.manifest for file in plain.cluster.files], SchemaPack.shipped())
    assert [finding for finding in checked.findings if finding.fails] == []
    url = plain.get("Provider", "gate")["spec"]["url"]
    (host,) = [name for name in plain.get("Certificate", NAME)["spec"]["dnsNames"] if name.endswith(".svc")]
    (port,) = plain.get("Service", NAME)["spec"]["ports"]
    assert url == f"https://{host}:{port['port']}/verify"


def test_its_pods_are_restricted_and_have_no_right(plain: World) -> None:
    deployment = plain.get("Deployment", NAME)
    pod = deployment["spec"]["template"]["spec"]
    (template,) = pod_templates(Manifest(deployment, Source("deployment")))
    assert violations(template, Policy("restricted")) == []
    assert pod["containers"][0]["image"] == IMAGE
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["automountServiceAccountToken"] is False
    assert plain.get("ServiceAccount", NAME)["automountServiceAccountToken"] is False
    bound = [subject for kind in ("RoleBinding", "ClusterRoleBinding") for subject in _subjects(plain, kind)]
    assert NAME not in bound
    keys = {
        volume["secret"]["secretName"]: [item["key"] for item in volume["secret"]["items"]]
        for volume in pod["volumes"]
        if "secret" in volume
    }
    assert keys == {f"{NAME}-tls": ["tls.crt", "tls.key"], "gatekeeper-webhook-server-cert": ["ca.crt"]}


def _subjects(world: World, kind: str) -> list[str]:
    return [subject["name"] for body in world.all(kind).values() for subject in body["subjects"]]


def test_it_stands_before_the_constraint_that_asks_it(plain: World) -> None:
    waves = {application.name: application for application in plain.cluster.applications}
    assert waves["image-gate"].wave < waves["policies"].wave
    assert "image-gate" in waves["policies"].needs
    wave = "argocd.argoproj.io/sync-wave"
    certificate, deployment = plain.get("Certificate", NAME), plain.get("Deployment", NAME)
    assert wave not in certificate["metadata"].get("annotations", {})
    assert deployment["metadata"]["annotations"][wave] == "1"
    provider, constraint = plain.get("Provider", "gate"), plain.get("BlueprintGate", "gate")
    assert wave not in provider["metadata"].get("annotations", {})
    assert int(constraint["metadata"]["annotations"][wave]) > 0


def test_only_gatekeeper_asks_and_only_a_registry_is_reached(plain: World) -> None:
    spec = plain.get("NetworkPolicy", NAME)["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    asks, scrapes = spec["ingress"]
    assert asks["from"] == [{"podSelector": {"matchLabels": {"gatekeeper.sh/system": "yes"}}}]
    assert [rule["ports"][0]["port"] for rule in (asks, scrapes)] == ["https", "status"]
    assert [port["port"] for rule in spec["egress"] for port in rule["ports"]] == [53, 53, 443]
    budget = plain.get("PodDisruptionBudget", NAME)["spec"]
    assert budget["selector"] == spec["podSelector"] == {"matchLabels": plain.get("Service", NAME)["spec"]["selector"]}


def test_without_a_network_to_the_outside(tmp_path: Path) -> None:
    """A copy of the registry inside: its addresses, its authority and a right to pull, and nothing else is reached."""
    registry = {
        "addresses": ["10.80.4.0/24", "fd00:80::/64"],
        "namespace": "registry",
        "port": 5000,
        "authority": encoded(PEM),
        "credentials": "pull",
        "plainHttp": ["registry.registry.svc:5000"],
    }
    inside = world(tmp_path, policy(registry=registry))
    assert inside.findings == ()
    assert not inside.all("Certificate"), "somebody else brings the Secret"
    files = inside.get("ConfigMap", NAME)["data"]
    assert files["registry-ca.crt"] == PEM
    assert yaml.safe_load(files["gate.yaml"])["registries"] == {
        "authority": "/etc/image-gate/registry-ca.crt",
        "credentials": "/registry/config.json",
        "plainHttp": ["registry.registry.svc:5000"],
    }
    _, reached = inside.get("NetworkPolicy", NAME)["spec"]["egress"]
    assert reached == {
        "to": [
            {"ipBlock": {"cidr": "10.80.4.0/24"}},
            {"ipBlock": {"cidr": "fd00:80::/64"}},
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "registry"}}},
        ],
        "ports": [{"protocol": "TCP", "port": 5000}],
    }
    pod = inside.get("Deployment", NAME)["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert "https://" not in json.dumps(pod) + files["gate.yaml"]


def test_another_configuration_is_another_pod(plain: World, tmp_path: Path) -> None:
    other = world(
        tmp_path / "other", policy(issuer="platform-authority", registry={"port": 5000, "plainHttp": ["a:1"]})
    )
    first, second = (w.get("Deployment", NAME)["spec"]["template"]["metadata"]["annotations"] for w in (plain, other))
    assert first != second


def test_another_engine_asks_nobody(tmp_path: Path) -> None:
    assert "image-gate" not in {file.application for file in world(tmp_path, policy("Kyverno")).cluster.files}
