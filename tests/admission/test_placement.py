"""Topology-aware placement: Kueue's own cases, and laws that hold for every cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from blueprint.admission.amounts import amounts, resources
from blueprint.admission.match import HOSTNAME, Placement, Taint
from blueprint.admission.nodes import Node
from blueprint.admission.placement import Gates, Request, place
from blueprint.admission.podsets import Wish
from blueprint.admission.topology import Failure, Topology
from tests.admission.writing import GPU, decided, flavor, gpus, kueue, local, node, pods, workload

DATA: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("placements.yaml").read_text())
ANYWHERE = Placement({}, None, ())


def _full(label: str) -> str:
    return HOSTNAME if label == "host" else label


def _node(index: int, row: str) -> Node:
    labels, offered = (dict(pair.split("=", 1) for pair in part.split()) for part in row.split("|"))
    return Node(f"n{index}", {_full(k): v for k, v in labels.items()}, (), amounts(resources(offered)))


def _wish(written: dict[str, Any]) -> Wish:
    fields = {k: _full(v) if isinstance(v, str) and k != "group" else v for k, v in written.items()}
    if "layers" in fields:
        fields["layers"] = tuple((_full(level), size) for level, size in fields["layers"])
    return Wish(**fields)


@pytest.mark.parametrize("case", DATA["cases"], ids=range(len(DATA["cases"])))
def test_upstream_cases(case: dict[str, Any]) -> None:
    nodes = [_node(index, row) for index, row in enumerate(DATA["nodes"][case["nodes"]])]
    topology = Topology("t", [_full(level) for level in case["levels"]], nodes, case.get("labels", {}), ())
    gates = case.get("gates", {})
    wanted = [
        Request(str(n), each["count"], each["pod"], ANYWHERE, wish, implied=not wish.explicit)
        for n, each in enumerate(case["pods"])
        for wish in (_wish(each.get("wish", {})),)
    ]
    found = place(
        topology, wanted, Gates(gates.get("TASProfileMixed", True), gates.get("TASMultiLayerTopology", False))
    )
    if any(each.get("fails") for each in case["pods"]):
        assert isinstance(found, Failure)
        return
    assert not isinstance(found, Failure)
    for n, each in enumerate(case["pods"]):
        if "on" in each:
            assert {"/".join(values): count for values, count in found[str(n)]} == each["on"]


def test_taints_selectors_and_affinity_keep_pods_off_hosts() -> None:
    hosts = [
        Node("tainted", {HOSTNAME: "a"}, (Taint("gpu", "", "NoSchedule"),), {"cpu": 1000, "pods": 9}),
        Node("other", {HOSTNAME: "b", "zone": "x"}, (), {"cpu": 1000, "pods": 9}),
        Node("small", {HOSTNAME: "c", "zone": "y"}, (), {"cpu": 10, "pods": 9}),
    ]
    topology = Topology("t", [HOSTNAME], hosts, {}, ())
    placement = Placement({"zone": "y"}, None, ())
    found = place(topology, [Request("p", 1, {"cpu": 100}, placement, Wish(required=HOSTNAME), implied=False)])
    assert isinstance(found, Failure)
    assert found.excluded is not None
    assert str(found.excluded) == "node selector: 1, resource cpu: 1, taint gpu:NoSchedule: 1"


def test_without_hosts_taints_are_not_looked_at() -> None:
    hosts = [Node("a", {"rack": "r"}, (Taint("gpu", "", "NoSchedule"),), {"cpu": 500, "pods": 9})] * 2
    topology = Topology("t", ["rack"], hosts, {}, ())
    found = place(topology, [Request("p", 1, {"cpu": 1000}, ANYWHERE, Wish(required="rack"), implied=False)])
    assert found == {"p": [(("r",), 1)]}, "two halves of a pod make a place"


def test_a_number_of_pods_that_overflows_is_lost() -> None:
    topology = Topology("t", [HOSTNAME], [Node("a", {HOSTNAME: "a"}, (), {"memory": 32 * 2**30, "pods": 9})], {}, ())
    request = Request("p", 1, {"memory": 2}, ANYWHERE, Wish(unconstrained=True), implied=False)
    assert isinstance(place(topology, [request]), Failure)


@st.composite
def clusters(draw: st.DrawFn) -> Topology:
    nodes = [
        Node(f"n{n}", {"block": f"b{b}", "rack": f"b{b}-r{r}", HOSTNAME: f"n{n}"}, (), {"cpu": cpu, "pods": 20})
        for n, (b, r, cpu) in enumerate(
            draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 6)), min_size=1, max_size=8))
        )
    ]
    return Topology("t", ["block", "rack", HOSTNAME], nodes, {}, ())


wishes = st.sampled_from(
    [
        Wish(required="rack"),
        Wish(required="block"),
        Wish(preferred="rack"),
        Wish(preferred=HOSTNAME),
        Wish(unconstrained=True),
        Wish(required="block", slice_level="rack", slice_size=2),
        Wish(slice_level="rack", slice_size=2),
    ]
)


@given(clusters(), wishes, st.integers(1, 6), st.integers(1, 3))
def test_every_placement_has_room_and_keeps_its_wish(topology: Topology, wish: Wish, half: int, cpu: int) -> None:
    count = 2 * half
    found = place(topology, [Request("p", count, {"cpu": cpu}, ANYWHERE, wish, implied=False)])
    room = {leaf: topology.leaves[leaf].free["cpu"] // cpu for leaf in topology.leaves}
    if isinstance(found, Failure):
        loose = wish.slice_level is None and wish.required is None
        assert not loose or sum(room.values()) < count
        return
    spread = dict(found["p"])
    assert sum(spread.values()) == count
    assert all(pods <= room[leaf] for leaf, pods in spread.items())
    domains = {
        level: {topology.leaves[leaf].values[: n + 1] for leaf in spread} for n, level in enumerate(topology.levels)
    }
    if wish.required is not None:
        assert len(domains[wish.required]) == 1
    if wish.slice_level is not None:
        for rack in domains["rack"]:
            inside = sum(pods for leaf, pods in spread.items() if topology.leaves[leaf].values[:2] == rack)
            assert inside % 2 == 0


def test_a_topology_without_levels_is_no_topology() -> None:
    bodies = [
        kueue("Topology", "t", {"levels": []}),
        flavor("f", nodeLabels={"p": "f"}, topologyName="t"),
        node("n", {"p": "f"}, {GPU: 4}),
        gpus("q", 4),
        local("lq", "q"),
        workload(pods(requests={GPU: 1}, topology={"unconstrained": True})),
    ]
    decision = decided(*bodies)
    assert decision.admissible is False
    assert decision.reasons
