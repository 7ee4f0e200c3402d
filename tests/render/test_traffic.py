from typing import Any

import pytest

from blueprint.render import tenancy
from tests.render.sites import Objects, rendered, site

CANARY = {"slo": {"errors": "1%"}, "rollout": {"canary": ["5%"]}}
GROUP = {"gpus.tensorParallel": 8, "gpus.pipelineParallel": 2, "gpus.nodes": 2}
NO_MESH = {"components": {"istio": None}}
NO_GATEWAY = {"gateway": None}
MESH_KINDS = {"VirtualService", "DestinationRule", "PeerAuthentication", "AuthorizationPolicy"}


def destinations(objects: Objects) -> dict[str, int]:
    [route] = objects["VirtualService"]["spec"]["http"]
    return {entry["destination"]["host"]: entry["weight"] for entry in route["route"]}


def pod(objects: Objects, kind: str = "Deployment") -> dict[str, Any]:
    template: dict[str, Any] = objects[kind]["spec"]["template"]
    return template


def test_a_canary_begins_without_traffic_and_the_rollout_finds_its_route() -> None:
    objects = rendered(CANARY)
    assert destinations(objects) == {"chat": 100, "chat-canary": 0}
    canary = objects["Rollout"]["spec"]["strategy"]["canary"]
    # argo-rollouts compares destinations with the names of the Services as they are.
    assert {canary["stableService"], canary["canaryService"]} == set(destinations(objects))
    named = canary["trafficRouting"]["istio"]["virtualService"]
    assert named["name"] == objects["VirtualService"]["metadata"]["name"]
    assert named["routes"] == [route["name"] for route in objects["VirtualService"]["spec"]["http"]]


def test_every_destination_has_a_service_and_limits() -> None:
    objects = rendered(CANARY)
    services = {body["metadata"]["name"] for body in objects.all("Service")}
    assert set(destinations(objects)) == services
    assert {body["spec"]["host"] for body in objects.all("DestinationRule")} == services


def test_both_services_select_the_pods_and_nothing_else() -> None:
    objects = rendered(CANARY)
    for service in objects.all("Service"):
        assert service["spec"]["selector"].items() <= pod(objects, "Rollout")["metadata"]["labels"].items()
        assert service["spec"]["selector"]["app.kubernetes.io/component"] == "inference"


@pytest.mark.parametrize("cluster", [NO_MESH, NO_GATEWAY])
def test_without_mesh_or_gateway_pods_are_the_weights(cluster: dict[str, Any]) -> None:
    objects = rendered(CANARY, cluster=cluster)
    canary = objects["Rollout"]["spec"]["strategy"]["canary"]
    assert not canary.keys() & {"trafficRouting", "stableService", "canaryService", "dynamicStableScale"}
    assert canary["maxSurge"] == 1
    assert [body["metadata"]["name"] for body in objects.all("Service")] == ["chat"]


def test_without_a_mesh_nothing_of_it_is_rendered() -> None:
    objects = rendered(CANARY, cluster=NO_MESH)
    assert not objects.kinds() & MESH_KINDS
    template = pod(objects, "Rollout")["metadata"]
    assert not any("istio" in key for key in [*template["labels"], *template.get("annotations", {})])
    [port] = pod(objects, "Rollout")["spec"]["containers"][0]["ports"]
    assert port["name"] == "http"


def test_names_of_a_service() -> None:
    assert rendered()["VirtualService"]["spec"]["hosts"] == [
        "chat.models.example.com",
        "chat.chat.svc.cluster.local",
    ]
    own = rendered({"traffic.host": "ask.example.com"})["VirtualService"]["spec"]
    assert own["hosts"][0] == "ask.example.com"
    inside = rendered(cluster=NO_GATEWAY)["VirtualService"]["spec"]
    assert inside["hosts"] == ["chat.chat.svc.cluster.local"]
    assert inside["gateways"] == ["mesh"]


def test_the_timeout_is_that_of_the_spec_and_bounds_no_single_try() -> None:
    [route] = rendered({"traffic.timeout": "30m"})["VirtualService"]["spec"]["http"]
    assert route["timeout"] == "1800s"
    assert "perTryTimeout" not in route["retries"]
    # An answer that has begun is never asked for again, and overload is not answered with more of it.
    assert not {"5xx", "gateway-error", "reset", "retriable-4xx"} & set(route["retries"]["retryOn"].split(","))


def test_overloaded_replicas_are_not_left_out() -> None:
    rule = rendered()["DestinationRule"]["spec"]["trafficPolicy"]
    assert rule["outlierDetection"]["consecutive5xxErrors"] == 0
    assert rule["outlierDetection"]["consecutiveGatewayErrors"] == 0
    assert rule["outlierDetection"]["consecutiveLocalOriginFailures"] > 0


def test_limits_grow_with_the_replicas() -> None:
    def most(replicas: dict[str, Any]) -> int:
        rule = rendered({"replicas": replicas})["DestinationRule"]["spec"]["trafficPolicy"]
        connections: int = rule["connectionPool"]["tcp"]["maxConnections"]
        return connections

    assert most({"min": 3, "max": 3}) == 3 * most({"min": 1, "max": 1})
    assert most({"min": 1, "max": 3, "scaleOn": "request-rate", "target": 6}) == 3 * most({"min": 1, "max": 1})


def test_strict_mtls_leaves_the_scraper_its_port() -> None:
    objects = rendered()
    assert objects["PeerAuthentication"]["spec"]["mtls"]["mode"] == "STRICT"
    ports = {port["name"]: port["containerPort"] for port in pod(objects)["spec"]["containers"][0]["ports"]}
    [endpoint] = objects["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert ports[endpoint["port"]] == 15020
    assert endpoint["path"] == "/stats/prometheus"
    notes = pod(objects)["metadata"]["annotations"]
    assert notes["prometheus.io/port"] == str(ports["http"])


@pytest.mark.parametrize("cluster", [{}, NO_MESH])
def test_the_scraper_gets_through_the_network(cluster: dict[str, Any]) -> None:
    objects = rendered(cluster=cluster)
    [endpoint] = objects["PodMonitor"]["spec"]["podMetricsEndpoints"]
    team = Objects(tenancy.items(site({}, cluster=cluster)))
    allowed = set()
    for policy in [*objects.all("NetworkPolicy"), team["NetworkPolicy/allow-scrape"]]:
        for entry in policy["spec"].get("ingress", []):
            names = [peer["namespaceSelector"]["matchLabels"].values() for peer in entry["from"]]
            if any("monitoring" in values for values in names):
                allowed |= {port["port"] for port in entry["ports"]}
    assert endpoint["port"] in allowed


def test_only_the_gateway_and_named_clients_come_in() -> None:
    objects = rendered({"traffic.clients": ["shop", "search"]})
    [entry] = objects["NetworkPolicy"]["spec"]["ingress"]
    assert entry["ports"] == [{"protocol": "TCP", "port": "http"}]
    sources = [peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for peer in entry["from"]]
    assert sources == ["istio-ingress", "search", "shop"]
    [rule] = objects["AuthorizationPolicy"]["spec"]["rules"]
    assert rule["from"] == [{"source": {"namespaces": ["chat", "istio-ingress", "search", "shop"]}}]
    assert rule["to"] == [{"operation": {"paths": ["/v1/*"]}}]


def test_nobody_but_the_team_comes_in_without_gateway_and_clients() -> None:
    objects = rendered(cluster={**NO_GATEWAY, "components": {"istio": None, "prometheusOperator": None}})
    policy = objects["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress"]


def test_a_sidecar_reaches_the_control_plane_of_the_mesh() -> None:
    policy = rendered()["NetworkPolicy"]["spec"]
    [egress] = policy["egress"]
    assert egress["ports"] == [{"protocol": "TCP", "port": 15012}]
    assert "Egress" in policy["policyTypes"]


def test_the_work_of_a_group_does_not_go_through_proxies() -> None:
    template = rendered(GROUP)["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    leader, worker = template["leaderTemplate"]["metadata"], template["workerTemplate"]["metadata"]
    assert leader["labels"]["sidecar.istio.io/inject"] == "true"
    assert leader["annotations"]["traffic.sidecar.istio.io/includeInboundPorts"] == "8000"
    assert leader["annotations"]["traffic.sidecar.istio.io/includeOutboundIPRanges"] == ""
    assert worker["labels"]["sidecar.istio.io/inject"] == "false"


def test_a_sidecar_leaves_its_pod_guaranteed() -> None:
    notes = pod(rendered())["metadata"]["annotations"]
    for what in ("CPU", "Memory"):
        assert notes[f"sidecar.istio.io/proxy{what}"] == notes[f"sidecar.istio.io/proxy{what}Limit"]
