"""The service that Gatekeeper asks about images, beside Gatekeeper: it reads one registry, and nothing of the cluster.

It has an Application of its own, so that a gate that does not come up holds back its constraint and no other change.
What it is told is `blueprint.runtime.gateconfig`; tests read what is rendered here with that model.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

from blueprint.finding import Ref
from blueprint.render.emit import emit
from blueprint.render.gate import APP, PORT, Gate, gates
from blueprint.render.outside import GATEKEEPER
from blueprint.render.plan import External, Item
from blueprint.render.series import span
from blueprint.render.site import MANAGED_BY, Site
from blueprint.render.tenancy import DNS
from blueprint.spec.policy import GateRegistry

_STATUS: Final = 8081
_TRUST, _TLS, _CALLERS, _CREDENTIALS = "/etc/image-gate", "/tls", "/callers", "/registry"

#: Labels of the pods that ask: the webhook and the audit (gatekeeper v3.23.1 charts/gatekeeper/templates).
_GATEKEEPER: Final = {"gatekeeper.sh/system": "yes"}

_SAMPLES, _LABELS, _VALUE_LENGTH = 500, 64, 256


def items(site: Site) -> Iterator[Item]:
    """The services of all gates of the cluster."""
    for gate in gates(site):
        yield from _service(gate)


def _service(gate: Gate) -> Iterator[Item]:
    """Account, configuration, certificate, network, Service, Deployment, budget and monitor."""
    data = _data(gate)
    yield gate.item("ServiceAccount")
    yield gate.item("ConfigMap", annotations=None, data=data)
    if gate.service.issuer:
        hosts = [gate.host, f"{gate.host}.cluster.local"]
        yield gate.item("Certificate", secret=gate.secret, hosts=hosts, issuer=gate.service.issuer)
    yield gate.item(
        "NetworkPolicy",
        selector={"matchLabels": gate.selector},
        types=["Ingress", "Egress"],
        ingress=_ingress(gate.site),
        egress=[DNS, _egress(gate.service.registry)],
    )
    yield gate.item(
        "Service",
        selector=gate.selector,
        ports=[{"name": "https", "port": PORT, "targetPort": "https", "protocol": "TCP"}],
    )
    yield _deployment(gate, data)
    yield gate.item("PodDisruptionBudget", selector=gate.selector, unavailable=1)
    if gate.site.cluster.spec.components.prometheus_operator:
        yield _monitor(gate)


def _data(gate: Gate) -> dict[str, str]:
    """The files of the ConfigMap: the configuration, whom to believe, and the registry's authority."""
    images, registry = gate.images, gate.service.registry
    registries = {
        "plainHttp": list(registry.plain_http) or None,
        "authority": f"{_TRUST}/registry-ca.crt" if registry.authority else None,
        "credentials": f"{_CREDENTIALS}/config.json" if registry.credentials else None,
    }
    configuration = {
        "port": PORT,
        "statusPort": _STATUS,
        "tls": {
            "certificate": f"{_TLS}/tls.crt",
            "key": f"{_TLS}/tls.key",
            "clientAuthority": f"{_CALLERS}/ca.crt",
        },
        "trustedRoot": f"{_TRUST}/trusted_root.json",
        "signers": [signer.model_dump() for signer in images.signers],
        "prefixes": list(images.prefixes),
        "maxAge": _seconds(images.max_age),
        "registries": {key: value for key, value in registries.items() if value is not None},
    }
    files = {
        "gate.yaml": emit({key: value for key, value in configuration.items() if value is not None}),
        "trusted_root.json": json.dumps(json.loads(base64.b64decode(gate.service.trusted_root)), indent=1) + "\n",
    }
    if registry.authority:
        files["registry-ca.crt"] = base64.b64decode(registry.authority).decode()
    return files


def _seconds(span: timedelta | None) -> str | None:
    return None if span is None else f"{int(span.total_seconds())}s"


def _ingress(site: Site) -> list[dict[str, Any]]:
    """Gatekeeper asks, Prometheus reads the figures; probes come from the node, which no policy holds up."""
    asks = {"from": [{"podSelector": {"matchLabels": _GATEKEEPER}}], "ports": [{"protocol": "TCP", "port": "https"}]}
    monitoring = {"kubernetes.io/metadata.name": site.cluster.spec.monitoring.namespace}
    scrapes = {
        "from": [{"namespaceSelector": {"matchLabels": monitoring}}],
        "ports": [{"protocol": "TCP", "port": "status"}],
    }
    return [asks, scrapes]


def _egress(registry: GateRegistry) -> dict[str, Any]:
    """The registry and nothing else, as far as the spec says where it is."""
    to: list[dict[str, Any]] = [{"ipBlock": {"cidr": network}} for network in registry.addresses]
    if registry.namespace:
        to.append({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": registry.namespace}}})
    ports = [{"protocol": "TCP", "port": registry.port}]
    return {"to": to, "ports": ports} if to else {"ports": ports}


def _deployment(gate: Gate, data: dict[str, str]) -> Item:
    service = gate.service
    volumes: list[dict[str, Any]] = [
        _volume("configuration", _TRUST, config_map=gate.name),
        _volume("certificate", _TLS, gate.secret, {"tls.crt": "tls.crt", "tls.key": "tls.key"}),
        _volume("callers", _CALLERS, service.callers, {"ca.crt": "ca.crt"}),
    ]
    secrets = [gate.secret, service.callers]
    if credentials := service.registry.credentials:
        volumes.append(_volume("registry", _CREDENTIALS, credentials, {".dockerconfigjson": "config.json"}))
        secrets.append(credentials)
    pod = gate.site.templates.render(
        "ImageGatePod",
        source=gate.document.source,
        service_account=gate.name,
        pull=[{"name": credentials}] if credentials else None,
        selector=gate.selector,
        image=service.image,
        args=[f"{_TRUST}/gate.yaml"],
        ports=[
            {"name": "https", "containerPort": PORT, "protocol": "TCP"},
            {"name": "status", "containerPort": _STATUS, "protocol": "TCP"},
        ],
        volumes=volumes,
    )
    issued = [Ref("cert-manager.io", "Certificate", GATEKEEPER, gate.name)] if service.issuer else []
    item = gate.item(
        "Deployment",
        replicas=service.replicas,
        deadline=300,
        selector=gate.selector,
        surge=1,
        gap=0,
        pod_labels=MANAGED_BY | gate.selector,
        # The program reads its configuration once: another one is another pod.
        pod_annotations={"platform.blueprint/configuration": sha256(emit(data).encode()).hexdigest()},
        pod=pod,
        needs=(*issued, Ref("networking.k8s.io", "NetworkPolicy", GATEKEEPER, gate.name)),
    )
    brought = tuple(External(Ref("", "Secret", GATEKEEPER, secret), "Secret") for secret in secrets)
    return Item(item.manifest, item.application, (*item.needs, *brought))


def _volume(
    title: str, path: str, secret: str = "", keys: dict[str, str] | None = None, *, config_map: str = ""
) -> dict[str, Any]:
    rows = [{"key": key, "path": file} for key, file in (keys or {}).items()]
    return {"name": title, "path": path, "secret": secret, "keys": rows, "config_map": config_map}


def _monitor(gate: Gate) -> Item:
    monitoring = gate.site.cluster.spec.monitoring
    return gate.item(
        "PodMonitor",
        labels={**MANAGED_BY, **gate.selector, **monitoring.labels},
        selector=gate.selector,
        pod_labels=[APP],
        samples=_SAMPLES,
        label_limit=_LABELS,
        value_length=_VALUE_LENGTH,
        port="status",
        path="/metrics",
        interval=span(monitoring.scrape_interval.total_seconds()),
        relabelings=[{"action": "keep", "sourceLabels": ["__name__"], "regex": "blueprint_image_gate_.*"}],
    )
