import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blueprint.catalog.references import references
from blueprint.catalog.schemas import SchemaPack
from blueprint.check import validate
from blueprint.finding import Source
from blueprint.objects import Manifest
from blueprint.quantity import parse_quantity
from blueprint.render import tenancy
from blueprint.render.serving import items
from tests.render.sites import Objects, rendered, site

CANARY = {"slo": {"errors": "1%"}, "rollout": {"canary": ["5%", "50%"]}}
GROUP = {"gpus.tensorParallel": 8, "gpus.pipelineParallel": 2, "gpus.nodes": 2}
SLICE = {"gpus.pool": "mig", "gpus.profile": "1g.10gb", "gpus.memory": "24Gi"}
ADAPTERS = {"adapters": [{"name": "billing", "path": "adapters/billing"}, {"name": "returns", "path": "b"}]}
SCALED = {"replicas": {"min": 1, "max": 3, "scaleOn": "waiting-requests", "target": 8}}
PROMISES = {"slo": {"firstToken": {"p90": "800ms"}, "latency": {"p99": "30s"}, "outputRate": "120/s", "errors": "1%"}}
GPU = "NVIDIA-A100-SXM4-80GB"
DRA = {"nodePools": [{"name": "a100", "purpose": "serving", "devices": "dra", "deviceClass": "a100-80gb", "nodes": 4,
                      "cpu": 120, "memory": "960Gi", "gpus": {"product": GPU, "count": 8}}]}  # fmt: skip
SINGLE = {"nodePools": [{"name": "mig", "purpose": "serving", "nodes": 1, "cpu": 120, "memory": "960Gi",
                         "gpus": {"product": "NVIDIA-A100-SXM4-80GB", "count": 8,
                                  "mig": {"strategy": "single", "layout": {"1g.10gb": 7}}}}]}  # fmt: skip
RACKS = {"nodePools": [{"name": "a100", "purpose": "serving", "nodes": 4, "cpu": 120, "memory": "960Gi",
                        "gpus": {"product": "NVIDIA-A100-SXM4-80GB", "count": 8},
                        "racks": [{"block": "b", "rack": "r1", "nodes": 2}, {"block": "b", "rack": "r2", "nodes": 2}],
                        }]}  # fmt: skip
NOTHING = {"components": {"istio": None, "keda": None, "prometheusOperator": None}, "gateway": None}
WORLDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    (CANARY, {}),
    ({**CANARY, **SCALED, **PROMISES}, {}),
    ({**CANARY, **SCALED}, {"gateway": None}),
    (GROUP, {}),
    ({**GROUP, **SCALED, **ADAPTERS, **PROMISES, "replicas.max": 2}, {}),
    (SLICE, {}),
    (SLICE, SINGLE),
    ({**ADAPTERS, "traffic.clients": ["shop"]}, {}),
    ({"gpus.tensorParallel": 4}, DRA),
    ({}, RACKS),
    (GROUP, RACKS),
    ({}, NOTHING),
    ({**CANARY, **SCALED}, {"components": {"istio": None}}),
    ({"engine.vllm": "0.16.0"}, {"monitoring.scrapeInterval": "1m"}),
    ({"weights.loadTime": "2h", "drain": "10m"}, {"toolsImage": "registry.example.com/tools@sha256:" + "c" * 64}),
]


def templates(objects: Objects) -> Iterator[dict[str, Any]]:
    for kind in ("Deployment", "Rollout"):
        yield from (body["spec"]["template"] for body in objects.all(kind))
    for body in objects.all("LeaderWorkerSet"):
        yield body["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
        yield body["spec"]["leaderWorkerTemplate"]["workerTemplate"]


def main(template: dict[str, Any]) -> dict[str, Any]:
    [container] = template["spec"]["containers"]
    assert isinstance(container, dict)
    return container


@pytest.fixture(scope="module")
def pack() -> SchemaPack:
    return SchemaPack.shipped()


@pytest.mark.parametrize(("changes", "cluster"), WORLDS)
def test_every_world_is_valid(changes: dict[str, Any], cluster: dict[str, Any], pack: SchemaPack) -> None:
    where = site(changes, cluster=cluster)
    manifests = [item.manifest for item in [*tenancy.items(where), *items(where)]]
    assert validate(manifests, pack).findings == []
    assert {finding.code for finding in where.problems} <= {"SRV103", "SRV106"}


@pytest.mark.parametrize(("changes", "cluster"), WORLDS)
def test_every_pod_says_which_engine_serves_which_model(changes: dict[str, Any], cluster: dict[str, Any]) -> None:
    for template in templates(rendered(changes, cluster=cluster)):
        notes = template["metadata"]["annotations"]
        assert notes["platform.blueprint/engine"] == "vllm"
        assert notes["platform.blueprint/engine-version"] == changes.get("engine.vllm", "0.33.0")
        assert notes["platform.blueprint/model"] == "example/model-8b"


@pytest.mark.parametrize(("changes", "cluster"), WORLDS)
def test_pods_are_guaranteed_and_shared_memory_is_within_them(changes: dict[str, Any], cluster: dict[str, Any]) -> None:
    for template in templates(rendered(changes, cluster=cluster)):
        for container in [*template["spec"]["containers"], *template["spec"]["initContainers"]]:
            resources = container["resources"]
            assert resources["requests"] == resources["limits"]
            assert {"cpu", "memory"} <= resources["limits"].keys()
            # A queue refuses a pod that asks for a resource which it does not cover.
            assert "ephemeral-storage" not in resources["requests"]
        [shm] = [v["emptyDir"] for v in template["spec"]["volumes"] if v["name"] == "shm"]
        assert shm["medium"] == "Memory"
        memory = main(template)["resources"]["limits"]["memory"]
        assert parse_quantity(shm["sizeLimit"]) < parse_quantity(memory)


@pytest.mark.parametrize(("changes", "cluster"), WORLDS)
def test_a_pod_lives_until_it_has_left_and_drained(changes: dict[str, Any], cluster: dict[str, Any]) -> None:
    for template in templates(rendered(changes, cluster=cluster)):
        container = main(template)
        asked = [a.partition("=")[2] for a in container["args"] if a.startswith("--shutdown-timeout")]
        drain = int(asked[0]) if asked else 0
        leave = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert template["spec"]["terminationGracePeriodSeconds"] > leave + (drain if "startupProbe" in container else 0)


@pytest.mark.parametrize(("changes", "cluster"), WORLDS)
def test_everything_that_is_written_can_be(changes: dict[str, Any], cluster: dict[str, Any]) -> None:
    for template in templates(rendered(changes, cluster=cluster)):
        container = main(template)
        mounts = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
        assert {"/tmp", "/cache", "/dev/shm"} <= mounts
        assert container["securityContext"]["readOnlyRootFilesystem"]
        for entry in container["env"]:
            value = entry.get("value", "")
            assert not value.startswith("/") or any(value.startswith(mount) for mount in mounts), entry


def test_a_load_as_long_as_is_said_and_a_half_is_no_failure() -> None:
    for load, seconds in (("1m", 300), ("8m", 720), ("25m", 2250)):
        objects = rendered({"weights.loadTime": load})
        [template] = templates(objects)
        probe = main(template)["startupProbe"]
        assert probe["periodSeconds"] * probe["failureThreshold"] == seconds
        assert objects["Deployment"]["spec"]["progressDeadlineSeconds"] > seconds


def test_probes_of_a_server() -> None:
    [template] = templates(rendered())
    container = main(template)
    assert container["livenessProbe"]["failureThreshold"] >= 3
    assert "initialDelaySeconds" not in container["livenessProbe"]
    assert container["readinessProbe"]["httpGet"]["port"] == "http"
    assert container["command"] == ["vllm", "serve"]


def test_a_new_version_of_the_weights_rolls_the_pods() -> None:
    [old], [new] = (list(templates(rendered({"weights.version": version}))) for version in ("v1", "v2"))
    assert old != new
    step = new["spec"]["initContainers"][0]
    assert step["args"][0] == "/weights/model-8b/v2" == main(new)["args"][0]


def _run(step: dict[str, Any], *args: object) -> subprocess.CompletedProcess[str]:
    command = ["sh", *step["command"][1:], *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "model 8b" / "v1"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model 1.safetensors").write_text("x")
    digest = "0" * 64
    (folder / "SHA256SUMS").write_text(f"{digest}  config.json\n{digest} *model 1.safetensors")
    return folder


def test_complete_weights_let_the_server_start(weights: Path) -> None:
    [template] = templates(rendered())
    assert _run(template["spec"]["initContainers"][0], weights, "SHA256SUMS", 0).returncode == 0


@pytest.mark.parametrize("spoil", ["manifest", "empty manifest", "file", "empty file", "version"])
def test_incomplete_weights_keep_the_pod_pending(weights: Path, spoil: str) -> None:
    [template] = templates(rendered())
    match spoil:
        case "manifest":
            (weights / "SHA256SUMS").unlink()
        case "empty manifest":
            (weights / "SHA256SUMS").write_text("")
        case "file":
            (weights / "model 1.safetensors").unlink()
        case "empty file":
            (weights / "config.json").write_text("")
    asked = weights.with_name("v2") if spoil == "version" else weights
    result = _run(template["spec"]["initContainers"][0], asked, "SHA256SUMS", 0)
    assert result.returncode == 1
    assert str(asked) in result.stderr


def test_adapters_are_copied_for_each_replica(tmp_path: Path) -> None:
    [template] = templates(rendered(ADAPTERS))
    step = template["spec"]["initContainers"][1]
    assert step["args"] == ["/weights", "/adapters", "billing", "adapters/billing", "returns", "b"]
    for folder in ("adapters/billing", "b"):
        (tmp_path / "from" / folder).mkdir(parents=True)
        (tmp_path / "from" / folder / "adapter_config.json").write_text(folder)
    result = _run(step, tmp_path / "from", tmp_path / "to", *step["args"][2:])
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "to/returns/adapter_config.json").read_text() == "b"
    [volume] = [v for v in template["spec"]["volumes"] if v["name"] == "adapters"]
    assert "emptyDir" in volume
    [mount] = [m for m in main(template)["volumeMounts"] if m["name"] == "adapters"]
    assert mount["readOnly"]


def test_the_tools_image_checks_the_weights_where_there_is_one() -> None:
    tools = "registry.example.com/tools@sha256:" + "c" * 64
    [template] = templates(rendered(cluster={"toolsImage": tools}))
    assert template["spec"]["initContainers"][0]["image"] == tools
    [template] = templates(rendered())
    assert template["spec"]["initContainers"][0]["image"] == main(template)["image"]


def test_one_claim_serves_all_who_name_it_at_the_largest_size() -> None:
    where = site({"weights.size": "1Ti"}, {"weights.size": "2Ti"}, {"weights.claim": "other"})
    claims = [item for item in items(where) if item.manifest.kind == "PersistentVolumeClaim"]
    sizes = {c.manifest.ref.name: c.manifest.body["spec"]["resources"]["requests"]["storage"] for c in claims}
    assert sizes == {"weights": "2Ti", "other": "1Ti"}
    assert {claim.application for claim in claims} == {"data-chat"}
    assert all(claim.manifest.body["spec"]["accessModes"] == ["ReadWriteMany"] for claim in claims)


def test_single_pods_stand_in_the_queue_and_a_group_does_as_one() -> None:
    queue = {"kueue.x-k8s.io/queue-name": "serving", "kueue.x-k8s.io/priority-class": "platform-high"}
    [template] = templates(rendered())
    assert queue.items() <= template["metadata"]["labels"].items()
    objects = rendered(GROUP)
    assert queue.items() <= objects["LeaderWorkerSet"]["metadata"]["labels"].items()
    for template in templates(objects):
        assert not queue.keys() & template["metadata"]["labels"].keys()


def test_the_workload_waits_for_its_queue() -> None:
    for changes in ({}, CANARY):
        [workload] = [i for i in items(site(changes)) if i.manifest.kind in ("Deployment", "Rollout")]
        assert {need.kind for need in workload.needs} >= {"LocalQueue", "WorkloadPriorityClass"}  # type: ignore[union-attr]


def test_flavors_place_the_pods() -> None:
    [template] = templates(rendered())
    assert not template["spec"].keys() & {"nodeSelector", "tolerations", "affinity"}


def test_a_group_asks_for_all_gpus_of_the_model() -> None:
    spec = rendered(GROUP)["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    each = [int(main(t)["resources"]["limits"]["nvidia.com/gpu"]) for t in templates(rendered(GROUP))]
    assert spec["size"] * each[0] == 8 * 2
    assert each[0] == each[1]


def test_requests_go_to_leaders_only() -> None:
    objects = rendered(GROUP)
    leader, worker = templates(objects)
    for selector in (
        objects["Service"]["spec"]["selector"],
        objects["PodMonitor"]["spec"]["selector"]["matchLabels"],
        objects["AuthorizationPolicy"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= leader["metadata"]["labels"].items()
        assert not selector.items() <= worker["metadata"]["labels"].items()
    assert not main(worker).keys() & {"startupProbe", "readinessProbe", "livenessProbe", "ports"}


def test_workers_outlive_the_leader_that_drains() -> None:
    leader, worker = templates(rendered({**GROUP, "drain": "5m"}))
    stays = main(worker)["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert stays >= main(leader)["lifecycle"]["preStop"]["sleep"]["seconds"] + 300


def test_the_group_does_not_take_the_name_of_the_service() -> None:
    objects = rendered(GROUP)
    assert objects["LeaderWorkerSet"]["metadata"]["name"] != objects["Service"]["metadata"]["name"]


@pytest.mark.parametrize(("cluster", "resource"), [({}, "nvidia.com/mig-1g.10gb"), (SINGLE, "nvidia.com/gpu")])
def test_a_slice_is_asked_for_by_its_name(cluster: dict[str, Any], resource: str) -> None:
    [template] = templates(rendered(SLICE, cluster=cluster))
    assert main(template)["resources"]["limits"][resource] == "1"
    assert "--gpu-memory-utilization=0.85" in main(template)["args"]


def test_devices_come_by_claim_where_the_pool_hands_them_out_so() -> None:
    objects = rendered({"gpus.tensorParallel": 4}, cluster=DRA)
    [template] = templates(objects)
    assert template["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == "chat-gpus"
    assert main(template)["resources"]["claims"] == [{"name": "gpus"}]
    assert not any("nvidia.com" in key for key in main(template)["resources"]["limits"])
    [request] = objects["ResourceClaimTemplate"]["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["count"] == 4
    assert template["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "serving-dra"


def test_a_pool_with_racks_wants_a_wish() -> None:
    prefix = "kueue.x-k8s.io/podset"
    [template] = templates(rendered(cluster=RACKS))
    assert template["metadata"]["annotations"][f"{prefix}-unconstrained-topology"] == "true"
    for template in templates(rendered(GROUP, cluster=RACKS)):
        notes = template["metadata"]["annotations"]
        assert notes[f"{prefix}-preferred-topology"] == "topology.blueprint/rack"
        assert notes[f"{prefix}-group-name"] == "replica"


def test_rollouts_give_up_in_time_and_say_no_replicas_that_load_decides() -> None:
    spec = rendered({**CANARY, **SCALED})["Rollout"]["spec"]
    assert spec["progressDeadlineAbort"]
    assert "replicas" not in spec
    assert spec["strategy"]["canary"]["dynamicStableScale"]
    assert "scaleDownDelaySeconds" not in spec["strategy"]["canary"]
    fixed = rendered(CANARY)["Rollout"]["spec"]
    assert fixed["replicas"] == 1
    assert "dynamicStableScale" not in fixed["strategy"]["canary"]


def test_without_the_controller_a_canary_is_a_plain_update() -> None:
    objects = rendered(CANARY, cluster={"components": {"argoRollouts": None}})
    assert "Deployment" in objects.kinds()
    assert not objects.kinds() & {"Rollout", "AnalysisTemplate"}
    assert [body["metadata"]["name"] for body in objects.all("Service")] == ["chat"]


def test_a_drain_of_a_node_goes_on_with_one_replica() -> None:
    budget = rendered()["PodDisruptionBudget"]["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_names_of_the_team_are_not_taken() -> None:
    where = site({})
    taken = {item.manifest.ref for item in tenancy.items(where)}
    assert not taken & {item.manifest.ref for item in items(where)}


def test_what_fields_name_is_there() -> None:
    where = site({**CANARY, **SCALED, **ADAPTERS})
    there = {item.manifest.ref for item in [*tenancy.items(where), *items(where)]}
    outside = {"StorageClass", "PriorityClass", "ClusterQueue"}
    for item in items(where):
        for reference in references(item.manifest):
            assert reference.target in there or reference.target.kind in outside, reference


def test_environment_of_services_stays_out_of_the_pods() -> None:
    for template in templates(rendered(GROUP)):
        assert template["spec"]["enableServiceLinks"] is False
        assert template["spec"]["automountServiceAccountToken"] is False


def test_the_place_of_the_spec_goes_with_each_object() -> None:
    for item in items(site({})):
        assert isinstance(item.manifest, Manifest)
        assert item.manifest.source == Source("chat.yaml", 1)
