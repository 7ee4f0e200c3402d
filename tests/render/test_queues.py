"""Queues: amounts, order of resources, cohorts, flavors and Kueue's own configuration."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from blueprint.quantity import parse_quantity
from blueprint.render.pools import share
from blueprint.render.queues import covered, flavors
from blueprint.spec.cluster import Gpus, Mig, NodePool
from blueprint.spec.team import Quota
from tests.render.worlds import DRA, MIG, PLAIN, RACKS, World, cluster, job, team


def test_nominal_cpu_and_memory_follow_the_gpus(tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team("[{cluster: here, pool: gpu, gpus: 4, borrow: 2, lend: 1}]"))
    queue = world.get("ClusterQueue", "alpha-training-plain")
    amounts = {row["name"]: row for row in queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]}
    assert amounts["cpu"] == {"name": "cpu", "nominalQuota": "32", "borrowingLimit": "16", "lendingLimit": "8"}
    assert amounts["memory"]["nominalQuota"] == "256Gi"
    assert amounts["nvidia.com/gpu"]["borrowingLimit"] == "2"


def test_no_limit_stays_no_limit(tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]"), team("[{cluster: here, pool: gpu, gpus: 4}]"))
    queue = world.get("ClusterQueue", "alpha-training-plain")
    for row in queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]:
        assert "borrowingLimit" not in row
        assert "lendingLimit" not in row


def test_given_cpu_and_memory_win(tmp_path: Path) -> None:
    world = World(
        tmp_path, cluster(f"[{PLAIN}]"), team("[{cluster: here, pool: gpu, gpus: 4, cpu: 10, memory: 100Gi}]")
    )
    rows = world.get("ClusterQueue", "alpha-training-plain")["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert [row["nominalQuota"] for row in rows] == ["10", "100Gi", "4"]


def test_parts_of_cores_and_decimal_sizes_stay_what_they_are(tmp_path: Path) -> None:
    for written, amounts in (
        ("cpu: 500m, memory: 1.5Gi", ["500m", "1536Mi", "0"]),
        ("cpu: 1500m, memory: 64G", ["1500m", "64G", "0"]),
        ('cpu: "2.0", memory: 2048Mi', ["2", "2Gi", "0"]),
    ):
        quota = f"[{{cluster: here, pool: gpu, gpus: 0, {written}}}]"
        (tmp_path / amounts[0]).mkdir()
        world = World(tmp_path / amounts[0], cluster(f"[{PLAIN}]"), team(quota))
        rows = world.get("ClusterQueue", "alpha-training-plain")["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
        assert [row["nominalQuota"] for row in rows] == amounts


def test_each_flavor_lists_each_resource_in_the_same_order(tmp_path: Path) -> None:
    plain = PLAIN.replace("purpose: training", "purpose: serving")
    quotas = "[{cluster: here, pool: gpu, gpus: 4}, {cluster: here, pool: slices, profile: 1g.10gb, gpus: 3}]"
    world = World(tmp_path, cluster(f"[{plain}, {MIG}]"), team(quotas))
    group = world.get("ClusterQueue", "alpha-serving")["spec"]["resourceGroups"][0]
    assert group["coveredResources"] == ["cpu", "memory", "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"]
    for flavor in group["flavors"]:
        assert [row["name"] for row in flavor["resources"]] == group["coveredResources"]
    slices = {row["name"]: row for row in group["flavors"][1]["resources"]}
    assert slices["nvidia.com/gpu"] == {"name": "nvidia.com/gpu", "nominalQuota": "0", "borrowingLimit": "0"}


def test_topology_aware_and_plain_pools_have_queues_of_their_own(tmp_path: Path) -> None:
    quotas = ", ".join(f"{{cluster: here, pool: {pool}, gpus: 2}}" for pool in ("gpu", "racked", "claims"))
    world = World(tmp_path, cluster(f"[{PLAIN}, {RACKS}, {DRA}]"), team(f"[{quotas}]"))
    assert set(world.all("ClusterQueue")) == {"alpha-training", "alpha-training-plain", "alpha-training-dra"}
    assert set(world.all("LocalQueue")) == {"training", "training-plain", "training-dra"}
    flavors = world.all("ResourceFlavor")
    assert flavors["racked"]["spec"]["topologyName"] == "racks"
    assert "topologyName" not in flavors["gpu"]["spec"]


def test_cohorts_hang_below_one_root(tmp_path: Path) -> None:
    world = World(tmp_path, cluster(f"[{PLAIN}]", cohort="all"), team("[{cluster: here, pool: gpu, gpus: 2}]"))
    cohorts = world.all("Cohort")
    assert cohorts["all-training-plain"]["spec"]["parentName"] == "all"
    assert "parentName" not in cohorts["all"]["spec"]
    assert world.get("ClusterQueue", "alpha-training-plain")["spec"]["cohortName"] == "all-training-plain"


def test_borrowing_preempts_only_without_fair_sharing(tmp_path: Path) -> None:
    quotas = "[{cluster: here, pool: gpu, gpus: 2}]"
    fair = World(tmp_path / "fair", cluster(f"[{PLAIN}]"), team(quotas, weight="4"))
    classic = World(tmp_path / "classic", cluster(f"[{PLAIN}]", fairSharing="false"), team(quotas))
    one = fair.get("ClusterQueue", "alpha-training-plain")["spec"]
    other = classic.get("ClusterQueue", "alpha-training-plain")["spec"]
    assert one["fairSharing"] == {"weight": "4"}
    assert "borrowWithinCohort" not in one["preemption"]
    assert other["preemption"]["borrowWithinCohort"]["policy"] == "LowerPriority"
    assert "fairSharing" not in other


def configuration(world: World) -> dict[str, object]:
    data = world.get("ConfigMap", "kueue-manager-config")["data"]["controller_manager_config.yaml"]
    read: dict[str, object] = yaml.safe_load(data)
    return read


def test_kueue_counts_devices_only_where_there_are_some(tmp_path: Path) -> None:
    with_claims = World(tmp_path / "a", cluster(f"[{DRA}]"), team("[{cluster: here, pool: claims, gpus: 2}]"))
    without = World(tmp_path / "b", cluster(f"[{PLAIN}]"), team("[{cluster: here, pool: gpu, gpus: 2}]"))
    mappings = [{"name": "devices.blueprint/h100", "deviceClassNames": ["h100"]}]
    assert configuration(with_claims)["resources"] == {"deviceClassMappings": mappings}
    assert configuration(with_claims)["featureGates"] == {"DynamicResourceAllocation": True}
    assert "resources" not in configuration(without)
    assert "featureGates" not in configuration(without)
    assert set(with_claims.all("DeviceClass")) == {"h100"}


def test_kueue_watches_only_frameworks_that_are_installed(tmp_path: Path) -> None:
    spec = cluster(f"[{PLAIN}]", components="{trainingOperator: null, lws: null}")
    world = World(tmp_path, spec, team("[{cluster: here, pool: gpu, gpus: 2}]"))
    integrations = configuration(world)["integrations"]
    assert isinstance(integrations, dict)
    assert integrations["frameworks"] == ["batch/job", "jobset.x-k8s.io/jobset", "pod", "trainer.kubeflow.org/trainjob"]


pools = st.builds(
    NodePool,
    name=st.just("pool"),
    nodes=st.integers(1, 50),
    cpu=st.integers(1, 512).map(str),
    memory=st.integers(1, 4096).map(lambda gib: f"{gib}Gi"),
    gpus=st.one_of(
        st.builds(Gpus, product=st.just("NVIDIA-L4"), count=st.integers(1, 16)),
        st.builds(
            Gpus,
            product=st.just("NVIDIA-A100-SXM4-80GB"),
            count=st.integers(1, 8),
            mig=st.just(Mig(strategy="mixed", layout={"1g.10gb": 2, "3g.40gb": 1})),
        ),
    ),
)


@given(pools, st.lists(st.integers(0, 40), min_size=1, max_size=6))
@settings(deadline=None)
def test_shares_never_add_up_to_more_than_a_node_has(pool: NodePool, parts: list[int]) -> None:
    shares = [share(pool, gpus) for gpus in parts]
    whole = share(pool, sum(parts))
    assert sum(one.cpu for one in shares) <= whole.cpu
    assert sum(one.memory for one in shares) <= whole.memory


@given(
    st.lists(st.tuples(st.integers(0, 64), st.none() | st.integers(0, 64), st.none() | st.integers(0, 64)), min_size=1)
)
@settings(deadline=None)
def test_no_amount_lends_more_than_it_has(amounts: list[tuple[int, int | None, int | None]]) -> None:
    pool = NodePool(name="pool", nodes=1, cpu="64", memory="512Gi", gpus=Gpus(product="NVIDIA-L4", count=8))
    rows = []
    for gpus, borrow, lend in amounts:
        own = min(lend, gpus) if lend is not None else None
        rows.append((pool, Quota(cluster="here", pool="pool", gpus=gpus, borrow=borrow, lend=own)))
    for flavor in flavors(rows[:1]):
        assert [amount.resource for amount in flavor.amounts] == covered(rows[:1])
        for amount in flavor.amounts:
            if amount.lend is not None:
                assert parse_quantity(amount.lend) <= parse_quantity(amount.nominal)


def test_no_queue_mixes_topology_aware_and_plain_flavors(tmp_path: Path) -> None:
    serving = [pool.replace("purpose: training", "purpose: serving") for pool in (PLAIN, RACKS)]
    quotas = "[{cluster: here, pool: gpu, gpus: 2}, {cluster: here, pool: racked, gpus: 2}]"
    world = World(tmp_path, cluster(f"[{', '.join(serving)}]"), team(quotas))
    aware = {name for name, body in world.all("ResourceFlavor").items() if "topologyName" in body["spec"]}
    assert set(world.all("ClusterQueue")) == {"alpha-serving", "alpha-serving-racked"}
    for queue in world.all("ClusterQueue").values():
        used = {flavor["name"] for group in queue["spec"]["resourceGroups"] for flavor in group["flavors"]}
        assert used <= aware or not used & aware


def test_a_pool_without_gpus_has_a_flavor_where_a_team_may_use_it(tmp_path: Path) -> None:
    system = "{name: system, purpose: system, nodes: 1, cpu: 4, memory: 16Gi}"
    plain = "{name: plain, purpose: training, nodes: 1, cpu: 4, memory: 16Gi}"
    quotas = "[{cluster: here, pool: gpu, gpus: 8}, {cluster: here, pool: plain, gpus: 0, cpu: 4, memory: 16Gi}]"
    world = World(
        tmp_path, cluster(f"[{PLAIN}, {plain}, {system}]"), team(quotas), job(pool="plain", gpus="0", cpu="2")
    )
    assert set(world.all("ResourceFlavor")) == {"gpu", "plain"}
    assert world.get("ResourceFlavor", "plain")["spec"]["nodeLabels"] == {"platform.blueprint/pool": "plain"}
    named = {f["name"] for q in world.all("ClusterQueue").values() for f in q["spec"]["resourceGroups"][0]["flavors"]}
    assert named == {"gpu", "plain"}


def test_a_pool_on_demand_is_checked_on_its_own_flavor(tmp_path: Path) -> None:
    burst = PLAIN.replace("name: gpu", "name: burst")[:-1] + ", provisioning: {className: capacity.example.com}}"
    quotas = "[{cluster: here, pool: gpu, gpus: 2}, {cluster: here, pool: burst, gpus: 2}]"
    world = World(tmp_path, cluster(f"[{PLAIN}, {burst}]"), team(quotas))
    queue = world.get("ClusterQueue", "alpha-training-plain")["spec"]
    assert queue["admissionChecksStrategy"] == {
        "admissionChecks": [{"name": "provision-burst", "onFlavors": ["burst"]}]
    }
    check = world.get("AdmissionCheck", "provision-burst")["spec"]
    assert check["controllerName"] == "kueue.x-k8s.io/provisioning-request"
    config = world.get("ProvisioningRequestConfig", check["parameters"]["name"])["spec"]
    assert config["provisioningClassName"] == "capacity.example.com"
    assert config["managedResources"] == ["nvidia.com/gpu"]
    alone = World(tmp_path / "alone", cluster(f"[{PLAIN}]"), team("[{cluster: here, pool: gpu, gpus: 2}]"))
    assert "admissionChecksStrategy" not in alone.get("ClusterQueue", "alpha-training-plain")["spec"]
