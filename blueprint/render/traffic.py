"""Traffic to a served model: who may reach it, by which name, and what a proxy does under load.

The mesh needs the CNI node agent: the init container that would set up redirection otherwise asks for NET_ADMIN, which
the Pod Security Standard `restricted` refuses (istio.io docs/setup/additional-setup/cni).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blueprint.finding import Ref
from blueprint.render.plan import Item
from blueprint.render.served import HTTP, MERGED_METRICS, Served

ROUTE = "primary"
#: What clients may ask for; /metrics, /health, /docs and the like are not for them.
API = "/v1/"
ISTIOD_NAMESPACE, ISTIOD_PORT = "istio-system", 15012

#: Requests that one replica works on at once before it queues (vllm `--max-num-seqs` on GPUs below 70 GiB).
_BATCH = 256
#: CPU and memory of a sidecar. Limits as requests: a pod is Guaranteed only if all its containers are.
_SIDECAR = {"proxyCPU": "500m", "proxyCPULimit": "500m", "proxyMemory": "512Mi", "proxyMemoryLimit": "512Mi"}


def sidecar_labels(served: Served, *, serves: bool = True) -> dict[str, str]:
    """Labels of a pod that put it into the mesh; the working pods of a group stay out of it."""
    return {"sidecar.istio.io/inject": "true" if serves else "false"} if served.meshed else {}


def sidecar_annotations(served: Served) -> dict[str, str]:
    """How a serving pod's sidecar is made.

    It is a native one, so it is there before the first and after the last container. The agent merges its metrics with
    those that `prometheus.io/*` points at. In a group only the serving port is redirected: the traffic of NCCL between
    its pods does not go through proxies.
    """
    if not served.meshed:
        return {}
    notes = {f"sidecar.istio.io/{key}": value for key, value in _SIDECAR.items()}
    notes |= {
        "sidecar.istio.io/nativeSidecar": "true",
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(HTTP),
        "prometheus.io/path": "/metrics",
    }
    if served.grouped:
        notes |= {
            "traffic.sidecar.istio.io/includeInboundPorts": str(HTTP),
            "traffic.sidecar.istio.io/includeOutboundIPRanges": "",
        }
    return notes


def ports(served: Served) -> list[dict[str, Any]]:
    """Ports of the serving container; that of the merged metrics is the sidecar's, named here for who scrapes it."""
    found: list[dict[str, Any]] = [{"name": "http", "containerPort": HTTP, "protocol": "TCP"}]
    if served.meshed:
        found.append({"name": "metrics", "containerPort": MERGED_METRICS, "protocol": "TCP"})
    return found


def hosts(served: Served) -> list[str]:
    """The names by which clients know the service: in the cluster, and outside if there is a gateway."""
    inside = f"{served.name}.{served.namespace}.svc.cluster.local"
    gateway = served.site.cluster.spec.gateway
    if gateway is None:
        return [inside]
    return [served.spec.traffic.host or f"{served.document.model.metadata.name}.{gateway.domain}", inside]


def objects(served: Served) -> Iterator[Item]:
    """The network policy, and in a mesh the route, the limits of proxies, strict mTLS and who may call."""
    yield _network(served)
    if not served.meshed:
        return
    yield _route(served)
    yield _limits(served, served.name)
    if served.routed:
        yield _limits(served, served.canary_name)
    yield served.item("PeerAuthentication", selector=served.selector)
    yield served.item(
        "AuthorizationPolicy",
        selector=served.entrance,
        namespaces=sorted({served.namespace, *_callers(served)}),
        paths=[f"{API}*"],
    )


def _callers(served: Served) -> list[str]:
    """Namespaces other than the team's own that may call."""
    gateway = served.site.cluster.spec.gateway
    return [*([gateway.namespace] if gateway else []), *served.spec.traffic.clients]


def _network(served: Served) -> Item:
    """Ingress from the gateway, named clients and the scraper; egress to the control plane of the mesh.

    The team's own pods reach each other, and the merged metrics are open to the scraper, by policies of the team.
    """
    scraper = [] if served.meshed else [served.site.cluster.spec.monitoring.namespace]
    sources = sorted({*_callers(served), *scraper})
    ingress = [{"from": [_namespace(name) for name in sources], "ports": [{"protocol": "TCP", "port": "http"}]}]
    egress = [{"to": [_namespace(ISTIOD_NAMESPACE)], "ports": [{"protocol": "TCP", "port": ISTIOD_PORT}]}]
    return served.item(
        "NetworkPolicy",
        name=served.account,
        selector={"matchLabels": served.selector},
        types=["Ingress", *(["Egress"] if served.meshed else [])],
        ingress=ingress if sources else None,
        egress=egress if served.meshed else None,
    )


def _namespace(name: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def _route(served: Served) -> Item:
    """The VirtualService. Argo Rollouts finds the two Services by their short names and shifts the weights.

    A request is tried again only where it surely reached no server: generation is neither cheap nor idempotent.
    """
    gateway = served.site.cluster.spec.gateway
    weights = [(served.name, 100), (served.canary_name, 0)] if served.routed else [(served.name, 100)]
    return served.item(
        "VirtualService",
        hosts=hosts(served),
        gateways=[*([gateway.name] if gateway else []), "mesh"],
        route=ROUTE,
        prefix=API,
        destinations=[{"host": host, "weight": weight} for host, weight in weights],
        timeout=f"{served.spec.traffic.timeout.total_seconds():g}s",
        needs=tuple(Ref("", "Service", served.namespace, host) for host, _ in weights),
    )


def _limits(served: Served, host: str) -> Item:
    """The DestinationRule of one Service: more requests than all replicas can batch are refused at once.

    A replica is left out when connections to it fail, never because it says 503: under overload all of them do, and to
    leave out some sends their load to the others until none is left.
    """
    batch = _BATCH * served.most
    return served.item(
        "DestinationRule",
        name=host,
        host=host,
        connections=batch,
        pending=batch // 2,
        needs=(Ref("", "Service", served.namespace, host),),
    )
