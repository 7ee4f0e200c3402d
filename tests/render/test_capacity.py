import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.render import capacity
from blueprint.render.capacity import Room, Update, canary_peak
from blueprint.render.served import Served
from tests.render.sites import one, served, site


def room(service: Served) -> Room:
    return capacity.room(service, capacity.demand(service.site))


def update(service: Served) -> Update:
    return capacity.update(service, room(service))


def judge(service: Served) -> None:
    capacity.judge(service, room(service), update(service))


CANARY = {"slo": {"errors": "1%"}, "rollout": {"canary": ["5%", "20%", "50%"]}}


@pytest.mark.parametrize(
    ("replicas", "weights", "peak"),
    [
        (2, [50], 3),  # one of the canary beside both of the stable version, before traffic moves
        (4, [5, 20, 50], 6),
        (1, [5], 2),
        (10, [10], 19),  # the leap from the last share to all costs almost as much as two full versions
        (10, [90], 19),
        (10, [25, 50, 75], 13),
    ],
)
def test_a_shrinking_stable_version_peaks_before_its_traffic_moves(
    replicas: int, weights: list[int], peak: int
) -> None:
    assert canary_peak(replicas, weights, dynamic=True) == peak


def test_a_full_stable_version_peaks_when_the_canary_takes_over() -> None:
    assert canary_peak(4, [5, 20, 50], dynamic=False) == 8


@given(st.integers(1, 50), st.lists(st.integers(1, 99), min_size=1, max_size=6, unique=True).map(sorted))
def test_shrinking_never_needs_more_and_always_needs_one_more_than_usual(replicas: int, weights: list[int]) -> None:
    least = canary_peak(replicas, weights, dynamic=True)
    assert replicas < least <= canary_peak(replicas, weights, dynamic=False)


def test_a_canary_keeps_the_stable_version_whole_where_the_quota_holds_both() -> None:
    service = one({**CANARY, "replicas": {"min": 4, "max": 4}})
    assert update(service).dynamic is False
    assert update(service).peak == 8


def test_it_shrinks_it_where_the_quota_does_not() -> None:
    service = one({**CANARY, "replicas": {"min": 3, "max": 3}, "gpus.tensorParallel": 4})
    assert room(service).sure == 4
    assert update(service).dynamic
    assert update(service).peak == 5


def test_it_shrinks_it_when_load_decides_the_number() -> None:
    scaled = {"min": 2, "max": 4, "scaleOn": "waiting-requests", "target": 8}
    assert update(one({**CANARY, "replicas": scaled})).dynamic


def test_without_weights_of_traffic_a_canary_replaces_pods_one_by_one() -> None:
    plan = update(one({**CANARY, "replicas": {"min": 4, "max": 4}}, cluster={"gateway": None}))
    assert (plan.dynamic, plan.surge, plan.gap, plan.peak) == (False, 1, 0, 5)


def test_an_update_gives_up_a_replica_only_where_there_is_no_room_for_one_more() -> None:
    roomy, full = ({"replicas": {"min": n, "max": n}, "gpus.tensorParallel": 4} for n in (3, 4))
    assert (update(one(roomy)).surge, update(one(roomy)).gap) == (1, 0)
    assert (update(one(full)).surge, update(one(full)).gap) == (0, 1)


def test_other_services_of_the_team_are_counted_at_their_most() -> None:
    other = {"replicas": {"min": 1, "max": 3, "scaleOn": "request-rate", "target": "6/s"}, "gpus.tensorParallel": 4}
    first, _ = served(site({}, other))
    assert room(first).sure == 4
    elsewhere, _ = served(site({}, {"gpus.pool": "mig", "gpus.profile": "1g.10gb"}))
    assert room(elsewhere).sure == 16


def test_borrowing_counts_for_what_can_be_and_not_for_what_is_sure() -> None:
    quota = {"cluster": "prod", "pool": "a100", "gpus": 8}
    assert (room(one(quotas=[quota])).sure, room(one(quotas=[quota])).most) == (8, 32)
    assert room(one(quotas=[{**quota, "borrow": 4}])).most == 12


def test_slices_are_counted_by_profile() -> None:
    service = one({"gpus.pool": "mig", "gpus.profile": "1g.10gb", "gpus.memory": "24Gi"})
    assert room(service).most == 56


@pytest.mark.parametrize(("replicas", "codes"), [(3, []), (4, ["SRV101"])])
def test_a_peak_that_can_never_be_had_is_a_finding(replicas: int, codes: list[str]) -> None:
    quotas = [{"cluster": "prod", "pool": "a100", "gpus": 16, "borrow": 4}]
    changes = {**CANARY, "replicas": {"min": replicas, "max": replicas}, "gpus.tensorParallel": 4}
    service = one(changes, quotas=quotas)
    judge(service)
    assert [finding.code for finding in service.site.problems] == codes
    for finding in service.site.problems:
        assert finding.fails
        assert "24 nvidia.com/gpu" in finding.message
        assert finding.source is not None
        assert finding.source.file == "chat.yaml#spec.replicas"


def test_the_finding_is_where_the_numbers_of_that_cluster_are() -> None:
    service = one({"replicasOn": {"prod": {"min": 99, "max": 99}}})
    judge(service)
    [finding] = service.site.problems
    assert finding.path == "spec.replicasOn.prod"


@pytest.mark.parametrize(("most", "blamed"), [(40, ["chat"]), (2, [])])
def test_of_services_that_want_too_much_together_the_greatest_is_told(most: int, blamed: list[str]) -> None:
    quotas = [{"cluster": "prod", "pool": "a100", "gpus": 16}]
    one_each = {"replicas": {"min": 1, "max": 1}}
    services = list(served(site({"replicas": {"min": most, "max": most}}, one_each, one_each, quotas=quotas)))
    for service in services:
        judge(service)
    assert [finding.message.split()[3] for finding in services[0].site.problems] == blamed


def test_a_service_that_is_too_large_by_itself_is_told_beside_the_greatest() -> None:
    quotas = [{"cluster": "prod", "pool": "a100", "gpus": 16, "borrow": 0}]
    large = [{"replicas": {"min": count, "max": count}} for count in (40, 30, 1)]
    services = list(served(site(*large, quotas=quotas)))
    for service in services:
        judge(service)
    assert [finding.message.split()[3] for finding in services[0].site.problems] == ["chat", "chat-2"]
