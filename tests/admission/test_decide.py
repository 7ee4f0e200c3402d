"""Decisions: numbers of quota, the order of flavors, gates before quota, and what is not known."""

from __future__ import annotations

import pytest

from tests.admission.writing import (
    GPU,
    Body,
    codes,
    decided,
    flavor,
    flavors,
    gpus,
    group,
    kueue,
    load,
    local,
    node,
    pods,
    queue,
    row,
    workload,
)

F = flavor("f")
LQ = local("lq", "a")


def cohort(name: str, parent: str = "", *groups: Body) -> Body:
    return kueue("Cohort", name, ({"parentName": parent} if parent else {}) | {"resourceGroups": list(groups)})


def job(count: int) -> Body:
    return workload(pods(count=1, requests={GPU: count}))


NUMBERS: list[tuple[str, list[Body], int, int]] = [
    ("a queue alone", [gpus("a", 8)], 8, 9),
    ("borrowing limit", [gpus("a", 8, 4, cohort="c"), gpus("b", 8, cohort="c")], 12, 13),
    ("lending limit of another", [gpus("a", 8, cohort="c"), gpus("b", 8, None, 2, cohort="c")], 10, 11),
    ("quota of the cohort alone", [gpus("a", 0, cohort="c"), cohort("c", "", group({"f": [row(GPU, 16)]}))], 16, 17),
    ("no more than it may borrow", [gpus("a", 0, 4, cohort="c"), cohort("c", "", group({"f": [row(GPU, 16)]}))], 4, 5),
    (
        "borrowing limit of a cohort",
        [
            gpus("a", 8, cohort="left"),
            gpus("b", 8, cohort="right"),
            cohort("left", "root", group({"f": [row(GPU, 0, 2)]})),
            cohort("right", "root"),
        ],
        10,
        11,
    ),
    (
        "quota of a stopped queue still counts",
        [gpus("a", 8, cohort="c"), gpus("b", 8, cohort="c", stopPolicy="Hold")],
        16,
        17,
    ),
]


@pytest.mark.parametrize(("name", "world", "most", "above"), NUMBERS, ids=[row[0] for row in NUMBERS])
def test_the_most_that_a_queue_can_get(name: str, world: list[Body], most: int, above: int) -> None:
    assert decided(F, LQ, *world, job(most)).admissible is True
    refused = decided(F, LQ, *world, job(above))
    assert refused.admissible is False
    assert codes(refused) == ["KQ202"]
    assert refused.primary is not None
    assert refused.primary.missing == above - most


@pytest.mark.parametrize(
    ("world", "field", "owner", "value"),
    [
        ([gpus("a", 8)], "nominalQuota", "a", 8),
        ([gpus("a", 8, 4, cohort="c"), gpus("b", 8, cohort="c")], "borrowingLimit", "a", 4),
        ([gpus("a", 8, cohort="c"), gpus("b", 8, None, 2, cohort="c")], "lendingLimit", "b", 2),
        ([gpus("a", 0, cohort="c"), cohort("c", "", group({"f": [row(GPU, 16)]}))], "nominalQuota", "c", 16),
    ],
)
def test_the_limit_that_binds_is_named(world: list[Body], field: str, owner: str, value: int) -> None:
    reason = decided(F, LQ, *world, job(100)).primary
    assert reason is not None
    assert reason.limit is not None
    assert (reason.limit.field, reason.limit.object.name, reason.limit.value) == (field, owner, value)


def test_pods_are_a_resource_where_the_queue_covers_them() -> None:
    world = [F, LQ, queue("a", group({"f": [row("cpu", 100), row("pods", 3)]}))]
    assert decided(*world, workload(pods(count=3, requests={"cpu": 1}))).admissible is True
    assert codes(decided(*world, workload(pods(count=4, requests={"cpu": 1})))) == ["KQ202"]


def test_pod_sets_share_a_flavor() -> None:
    sets = pods("master", 1, {GPU: 8}), pods("worker", 3, {GPU: 8})
    assert codes(decided(F, LQ, gpus("a", 24), workload(*sets))) == ["KQ202"]
    assert decided(F, LQ, gpus("a", 32), workload(*sets)).admissible is True


def test_a_pod_set_moves_on_to_the_flavor_that_holds_it() -> None:
    world = [flavor("x"), flavor("y"), LQ, queue("a", group({"x": [row(GPU, 8)], "y": [row(GPU, 24)]}))]
    found = decided(*world, workload(pods("master", 1, {GPU: 8}), pods("worker", 3, {GPU: 8})))
    assert flavors(found) == {"master": {GPU: "x"}, "worker": {GPU: "y"}}
    assert found.attempts == 1


def test_a_later_attempt_goes_on_from_the_flavor_of_the_one_before() -> None:
    world = [flavor("x"), flavor("y"), LQ, queue("a", group({"y": [row(GPU, 24)], "x": [row(GPU, 8)]}))]
    found = decided(*world, workload(pods("master", 1, {GPU: 8}), pods("worker", 3, {GPU: 8})))
    assert flavors(found) == {"master": {GPU: "x"}, "worker": {GPU: "y"}}
    assert found.attempts == 2


def test_equality_fits_and_fractions_round_up() -> None:
    world = [F, LQ, queue("a", group({"f": [row("cpu", "1.5"), row("memory", "1")]}))]
    assert decided(*world, workload(pods(requests={"cpu": "1500m"}))).admissible is True
    assert decided(*world, workload(pods(requests={"memory": "1.5"}))).admissible is False


def test_partial_admission_takes_the_most_pods_that_fit() -> None:
    found = decided(F, LQ, gpus("a", 5), workload(pods(count=8, requests={GPU: 1}, least=2)))
    assert found.admissible is True
    assert [plan.count for plan in found.podsets] == [5]
    assert decided(F, LQ, gpus("a", 1), workload(pods(count=8, requests={GPU: 1}, least=2))).admissible is False


def test_borrowing_may_move_on_to_a_flavor_of_its_own() -> None:
    groups = group({"x": [row(GPU, 0)], "y": [row(GPU, 8)]})
    others = gpus("b", 8, cohort="c") | {}
    others["spec"]["resourceGroups"] = [group({"x": [row(GPU, 8)], "y": [row(GPU, 0)]})]
    world = [flavor("x"), flavor("y"), LQ, others]
    stays = decided(*world, queue("a", groups, cohort="c"), job(4))
    moves = decided(
        *world, queue("a", groups, cohort="c", flavorFungibility={"whenCanBorrow": "TryNextFlavor"}), job(4)
    )
    assert (flavors(stays)["p"], flavors(moves)["p"]) == ({GPU: "x"}, {GPU: "y"})


def test_two_groups_may_give_two_flavors() -> None:
    world = [flavor("x"), flavor("y"), LQ, queue("a", group({"x": [row("cpu", 8)]}), group({"y": [row(GPU, 8)]}))]
    assert flavors(decided(*world, workload(pods(requests={"cpu": 1, GPU: 1})))) == {"p": {"cpu": "x", GPU: "y"}}


def test_labels_that_contradict_each_other_are_told() -> None:
    world = [flavor("x", nodeLabels={"pool": "cpu"}), flavor("y", nodeLabels={"pool": "gpu"}), LQ]
    world.append(queue("a", group({"x": [row("cpu", 8)]}), group({"y": [row(GPU, 8)]})))
    found = decided(*world, workload(pods(requests={"cpu": 1, GPU: 1})))
    assert (found.admissible, codes(found)) == (True, ["KQ403"])


@pytest.mark.parametrize(
    ("taint", "flavor_tolerates", "pod_tolerates", "admitted"),
    [
        ("NoSchedule", False, False, False),
        ("NoExecute", False, False, False),
        ("PreferNoSchedule", False, False, True),
        ("NoSchedule", True, False, True),
        ("NoSchedule", False, True, True),
    ],
)
def test_taints(taint: str, flavor_tolerates: bool, pod_tolerates: bool, admitted: bool) -> None:
    tolerations = [{"key": GPU, "operator": "Exists"}]
    spec: Body = {"nodeTaints": [{"key": GPU, "value": "true", "effect": taint}]}
    if flavor_tolerates:
        spec["tolerations"] = tolerations
    extra = {"tolerations": tolerations} if pod_tolerates else {}
    found = decided(flavor("f", **spec), LQ, gpus("a", 8), workload(pods(requests={GPU: 1}, **extra)))
    assert found.admissible is admitted
    assert codes(found) == ([] if admitted else ["KQ203"])


def test_keys_of_a_sibling_flavor_count_in_older_releases() -> None:
    world = [flavor("plain", nodeLabels={"pool": "p"}), flavor("zoned", nodeLabels={"pool": "z", "rack": "r9"}), LQ]
    world.append(queue("a", group({"plain": [row("cpu", 10)], "zoned": [row("cpu", 10)]})))
    pinned = workload(pods(requests={"cpu": 1}, nodeSelector={"rack": "r2"}))
    for version, admitted in {
        "0.17.0": False,
        "0.17.5": False,
        "0.17.6": True,
        "0.18.0": False,
        "0.19.2": True,
    }.items():
        assert decided(*world, pinned, version=version).admissible is admitted, version


GATES = {
    "no LocalQueue of that name": ([local("other", "a")], "KQ101"),
    "LocalQueue of no ClusterQueue": ([local("lq", "nowhere")], "KQ101"),
    "LocalQueue stopped": ([local("lq", "a", stopPolicy="Hold")], "KQ107"),
    "ClusterQueue stopped": ([LQ, gpus("a", 8, stopPolicy="HoldAndDrain")], "KQ107"),
    "no namespace selector": ([LQ, gpus("a", 8, namespaceSelector=None)], "KQ103"),
    "flavor missing": ([LQ, queue("a", group({"f": [row(GPU, 8)], "ghost": [row(GPU, 8)]}))], "KQ102"),
    "check missing": ([LQ, gpus("a", 8, admissionChecksStrategy={"admissionChecks": [{"name": "ghost"}]})], "KQ803"),
    "cycle": ([LQ, gpus("a", 8, cohort="x"), cohort("x", "y"), cohort("y", "x")], "KQ102"),
    "own parent": ([LQ, gpus("a", 8, cohort="x"), cohort("x", "x")], "KQ102"),
    "below a cycle": ([LQ, gpus("a", 8, cohort="z"), cohort("z", "x"), cohort("x", "x")], "KQ102"),
}


@pytest.mark.parametrize(("world", "code"), GATES.values(), ids=GATES.keys())
def test_what_stops_a_job_before_quota(world: list[Body], code: str) -> None:
    queues = [] if any(body["kind"] == "ClusterQueue" for body in world) else [gpus("a", 8)]
    found = decided(F, *queues, *world, job(1))
    assert found.admissible is False
    assert found.primary is not None
    assert found.primary.code == code


def test_a_cohort_beside_a_cycle_is_well() -> None:
    world = [gpus("a", 8, cohort="good"), cohort("good"), cohort("x", "y"), cohort("y", "x")]
    assert decided(F, LQ, *world, job(8)).admissible is True


def test_the_namespace_must_match() -> None:
    selector = {"matchLabels": {"team": "red"}}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"team": "red"}}}
    blue = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"team": "blue"}}}
    world = [F, LQ, gpus("a", 8, namespaceSelector=selector)]
    assert decided(*world, space, job(1)).admissible is True
    assert codes(decided(*world, blue, job(1))) == ["KQ103"]
    assert decided(*world, job(1)).admissible is None, "the namespace is not among the objects"
    by_name = gpus("a", 8, namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "team"}})
    assert decided(F, LQ, by_name, job(1)).admissible is True


def test_what_is_not_there_leaves_the_answer_open() -> None:
    assert decided(LQ, gpus("a", 8), job(1)).admissible is None, "no flavor is known"
    assert decided(LQ, gpus("a", 8), job(9)).admissible is False, "a refusal stands"
    assert decided(F, gpus("a", 8), job(1)).admissible is None, "no LocalQueue is known"
    assert (
        decided(
            F,
            LQ,
            gpus("a", 8),
            workload(
                pods(requests={GPU: 1}),
                priorityClassRef={"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"},
            ),
        ).admissible
        is None
    )


def test_hidden_resources_are_traced_to_their_limit_range() -> None:
    limits = {"type": "Container", "defaultRequest": {"ephemeral-storage": "2Gi"}}
    ranges = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "defaults", "namespace": "team"},
        "spec": {"limits": [limits]},
    }
    world = [F, LQ, gpus("a", 8), ranges]
    found = decided(*world, job(1))
    assert codes(found) == ["KQ206"]
    assert "LimitRange team/defaults" in found.reasons[0].message
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "resources": {"excludeResourcePrefixes": ["ephemeral-storage"]},
        "integrations": {"frameworks": ["batch/job"]},
    }
    assert decided(*world, configuration, job(1)).admissible is True


CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: team}
spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
featureGates: {DynamicResourceAllocation: true}
resources: {deviceClassMappings: [{name: example.com/gpu, deviceClassNames: [gpu.example.com]}]}
"""


def test_claims_are_charged_under_the_mapped_name() -> None:
    template, configuration = load(CLAIM)
    world = [F, LQ, queue("a", group({"f": [row("example.com/gpu", 4)]}))]
    claims = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "one"}]}
    assert decided(*world, template, configuration, workload(pods(count=4, **claims))).admissible is True
    assert codes(decided(*world, template, configuration, workload(pods(count=5, **claims)))) == ["KQ202"]
    assert codes(decided(*world, template, workload(pods(count=5, **claims)))) == ["KQ503", "KQ207"], "the gate is off"
    configuration["resources"] = {}
    assert codes(decided(*world, template, configuration, workload(pods(**claims))))[0] == "KQ501"


@pytest.mark.parametrize(
    ("part", "accepted_from"),
    [
        (
            "{requests: [{name: g, exactly: {deviceClassName: gpu.example.com, selectors: [{cel: {expression: x}}]}}]}",
            "0.18.0",
        ),
        (
            "{requests: [{name: g, exactly: {deviceClassName: gpu.example.com}}], constraints: [{matchAttribute: a}]}",
            "0.18.2",
        ),
        ("{requests: [{name: g, exactly: {deviceClassName: gpu.example.com, adminAccess: true}}]}", ""),
        ("{requests: [{name: g, exactly: {deviceClassName: gpu.example.com, allocationMode: All}}]}", ""),
        ("{requests: [{name: g, firstAvailable: [{name: h, deviceClassName: gpu.example.com}]}]}", ""),
    ],
)
def test_what_claims_may_ask_for_depends_on_the_version(part: str, accepted_from: str) -> None:
    template, configuration = load(CLAIM)
    template["spec"]["spec"]["devices"] = load(part)[0]
    world = [F, LQ, queue("a", group({"f": [row("example.com/gpu", 4)]})), template, configuration]
    asked = workload(pods(resourceClaims=[{"name": "g", "resourceClaimTemplateName": "one"}]))
    assert codes(decided(*world, asked))[0] == "KQ502"
    newest = decided(*world, asked, version="0.19.2")
    assert (newest.admissible is True) is bool(accepted_from)
    if accepted_from:
        assert decided(*world, asked, version=accepted_from).admissible is True


TREE = [flavor("t", nodeLabels={"pool": "t"}, topologyName="dc"), LQ]
DC = kueue("Topology", "dc", {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]})


def racks(*sizes: int) -> list[Body]:
    """Nodes with one GPU each, so many to a rack."""
    return [
        node(f"n{rack}{index}", {"pool": "t", "rack": f"r{rack}"}, {GPU: "1"})
        for rack, size in enumerate(sizes)
        for index in range(size)
    ]


def test_required_topology_keeps_to_one_domain() -> None:
    world = [*TREE, DC, queue("a", group({"t": [row(GPU, 100)]})), *racks(2, 3)]
    three = decided(*world, workload(pods(count=3, requests={GPU: 1}, topology={"required": "rack"})))
    assert three.admissible is True
    assert [value for value, _ in three.podsets[0].spread or ()] == [("n10",), ("n11",), ("n12",)]
    four = decided(*world, workload(pods(count=4, requests={GPU: 1}, topology={"required": "rack"})))
    assert codes(four) == ["KQ302"]
    assert "room for only 3 of 4 pods" in four.reasons[0].message
    assert (
        decided(*world, workload(pods(count=4, requests={GPU: 1}, topology={"preferred": "rack"}))).admissible is True
    )


def test_without_nodes_placement_is_not_known() -> None:
    world = [*TREE, DC, queue("a", group({"t": [row(GPU, 100)]}))]
    found = decided(*world, workload(pods(count=3, requests={GPU: 1})))
    assert (found.admissible, codes(found)) == (None, ["KQ404"])


def test_a_queue_of_both_kinds_takes_plain_pods_on_plain_flavors_only() -> None:
    groups = group({"t": [row(GPU, 8)], "f": [row(GPU, 8)]})
    world = [*TREE, F, DC, queue("a", groups), *racks(2)]
    assert flavors(decided(*world, job(1))) == {"p": {GPU: "f"}}
    wishing = workload(pods(requests={GPU: 1}, topology={"unconstrained": True}))
    assert flavors(decided(*world, wishing)) == {"p": {GPU: "t"}}


def test_two_topologies_for_one_pod_are_admitted_without_placement() -> None:
    world = [*TREE, flavor("u", nodeLabels={"pool": "t"}, topologyName="dc"), DC, *racks(1)]
    world.append(queue("a", group({"t": [row("cpu", 8)]}), group({"u": [row(GPU, 800)]})))
    found = decided(*world, workload(pods(count=50, requests={"cpu": "1m", GPU: 1})))
    assert (found.admissible, codes(found), found.podsets[0].spread) == (True, ["KQ303"], None)


def test_a_pod_set_without_pods_is_never_written_where_topology_counts() -> None:
    world = [*TREE, DC, queue("a", group({"t": [row(GPU, 100)]})), *racks(2)]
    found = decided(*world, workload(pods(count=0, requests={GPU: 1})))
    assert (found.admissible, codes(found)) == (False, ["KQ307"])


def test_pods_left_over_by_slices_are_told() -> None:
    world = [*TREE, DC, queue("a", group({"t": [row(GPU, 100)]})), *racks(6)]
    wish = {"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2, "required": "rack"}
    found = decided(*world, workload(pods(count=5, requests={GPU: 1}, topology=wish)))
    assert (found.admissible, codes(found)) == (True, ["KQ306"])
    assert sum(count for _, count in found.podsets[0].spread or ()) == 4


def test_a_slice_of_no_pods_is_refused() -> None:
    world = [*TREE, DC, queue("a", group({"t": [row(GPU, 100)]})), *racks(6)]
    wish = {"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 0}
    assert decided(*world, workload(pods(count=5, requests={GPU: 1}, topology=wish))).admissible is False


def test_a_tower_of_cohorts_is_left_undecided() -> None:
    tower = [cohort(f"c{number}", f"c{number + 1}") for number in range(3_000)]
    found = decided(F, LQ, gpus("a", 8, cohort="c0"), *tower, job(8))
    assert found.admissible is None
    assert found.primary is not None
    assert "more than 200 cohorts" in found.primary.message
    assert decided(F, LQ, gpus("a", 8, cohort="c2900"), *tower, job(8)).admissible is True


def test_a_wide_ring_of_cohorts_is_walked_once() -> None:
    ring = [cohort(f"c{number}", f"c{(number + 1) % 3_000}") for number in range(3_000)]
    found = decided(F, LQ, gpus("a", 8, cohort="c0"), *ring, job(8))
    assert found.primary is not None
    assert found.primary.code == "KQ102"
