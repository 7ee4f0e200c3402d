from typing import Any

import pytest

from tests.render.queries import selectors
from tests.render.sites import rendered

WAITING = {"replicas": {"min": 2, "max": 6, "scaleOn": "waiting-requests", "target": 8}}
RATE = {"replicas": {"min": 2, "max": 6, "scaleOn": "request-rate", "target": "2.5/s"}}
CANARY = {"slo": {"errors": "1%"}, "rollout": {"canary": ["50%"]}}
GROUP = {"gpus.tensorParallel": 8, "gpus.pipelineParallel": 2, "gpus.nodes": 2}


def scaler(changes: dict[str, Any], **where: Any) -> dict[str, Any]:
    spec: dict[str, Any] = rendered(changes, **where)["ScaledObject"]["spec"]
    return spec


@pytest.mark.parametrize(
    ("changes", "kind", "version"),
    [
        (WAITING, "Deployment", "apps/v1"),
        ({**WAITING, **CANARY}, "Rollout", "argoproj.io/v1alpha1"),
        ({**WAITING, **GROUP}, "LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"),
    ],
)
def test_it_scales_what_runs_the_pods(changes: dict[str, Any], kind: str, version: str) -> None:
    objects = rendered(changes)
    target = objects["ScaledObject"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["apiVersion"]) == (kind, version)
    workload = objects[f"{kind}/{target['name']}"]
    assert "replicas" not in workload["spec"]


@pytest.mark.parametrize(("changes", "threshold"), [(WAITING, "8"), (RATE, "2.5")])
def test_the_trigger_gives_one_number_for_all_replicas(changes: dict[str, Any], threshold: str) -> None:
    [trigger] = scaler(changes)["triggers"]
    assert trigger["metadata"]["threshold"] == threshold
    assert trigger["metricType"] == "AverageValue"
    [found] = selectors(trigger["metadata"]["query"])
    assert found.inside == ("sum",)
    assert found.labels == {"namespace": "chat", "service": "chat"}


def test_silence_takes_no_replicas_away() -> None:
    spec = scaler(WAITING)
    assert spec["triggers"][0]["metadata"]["ignoreNullValues"] == "false"
    assert spec["fallback"]["replicas"] == spec["minReplicaCount"] == 2
    assert spec["fallback"]["behavior"] == "currentReplicasIfHigher"


def test_the_last_replica_stays_since_the_signal_comes_from_the_pods() -> None:
    assert scaler({"replicas": {**WAITING["replicas"], "min": 1}})["minReplicaCount"] == 1


def test_it_waits_longer_before_it_gives_up_what_takes_long_to_load() -> None:
    def settle(load: str) -> int:
        behaviour = scaler({**WAITING, "weights.loadTime": load})["advanced"]["horizontalPodAutoscalerConfig"][
            "behavior"
        ]
        seconds: int = behaviour["scaleDown"]["stabilizationWindowSeconds"]
        return seconds

    assert settle("1m") == 300
    assert settle("8m") == 960
    assert settle("2h") == 3600  # the API server takes no more


@pytest.mark.parametrize("cluster", [{"components": {"keda": None}}, {"components": {"prometheusOperator": None}}])
def test_where_nothing_can_scale_the_least_number_runs(cluster: dict[str, Any]) -> None:
    objects = rendered(WAITING, cluster=cluster)
    assert "ScaledObject" not in objects.kinds()
    assert objects["Deployment"]["spec"]["replicas"] == 2


def test_a_fixed_number_needs_no_scaler() -> None:
    objects = rendered({"replicas": {"min": 3, "max": 3}})
    assert "ScaledObject" not in objects.kinds()
    assert objects["Deployment"]["spec"]["replicas"] == 3


def test_a_cluster_can_have_its_own_numbers() -> None:
    own = {"min": 1, "max": 2, "scaleOn": "request-rate", "target": 9}
    spec = scaler({**WAITING, "replicasOn": {"prod": own}})
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, 2)
    assert spec["triggers"][0]["metadata"]["threshold"] == "9"
