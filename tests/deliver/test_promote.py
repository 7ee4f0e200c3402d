import pytest

from blueprint.deliver import Order, Remote, Status, deliver, source_of_promotion, source_of_rollback
from blueprint.errors import UsageError

from .repositories import PATH, bare, both, files_at, git, history, own_config, someone_pushes

STAGES = (("preprod",), ("prod-a",))


@pytest.fixture
def remote(tmp_path, monkeypatch):
    own_config(monkeypatch, tmp_path)
    return bare(tmp_path)


def branch(cluster):
    return "main"


def commit(remote, inputs):
    whole = both(inputs)
    with Remote.open(str(remote)) as place:
        return deliver(place, Order(whole.of(["preprod"]), "main", PATH, keep=whole))


def promote(remote, cluster="prod-a"):
    with Remote.open(str(remote)) as place:
        source = source_of_promotion(place, cluster, STAGES, branch, PATH)
        return deliver(place, Order(source, "main", PATH, verb="Promote"))


def back(remote, cluster="prod-a"):
    with Remote.open(str(remote)) as place:
        source, left = source_of_rollback(place, cluster, "main", PATH)
        order = Order(source, "main", PATH, verb="Roll back", trailers={"Rolled-Back": left})
        return deliver(place, order)


def runs(remote, cluster="prod-a"):
    return files_at(remote).get(f"{PATH}/{cluster}/queues/a.yaml", "").removeprefix("a: ").strip()


def test_an_environment_takes_what_the_one_before_it_runs(remote):
    commit(remote, "one")
    assert (runs(remote, "preprod"), runs(remote)) == ("one", "")
    assert promote(remote).status is Status.COMMITTED
    commit(remote, "two")
    assert (runs(remote, "preprod"), runs(remote)) == ("two", "one")
    promote(remote)
    assert runs(remote) == "two"
    assert promote(remote).status is Status.UNCHANGED
    trees = [git(remote, "rev-parse", f"main:{PATH}/{name}") for name in ("preprod", "prod-a")]
    assert trees[0] == trees[1]
    assert [line.partition(":")[0] for line in history(remote)] == [
        "Promote prod-a",
        "Deliver preprod",
        "Promote prod-a",
        "Deliver preprod",
    ]


def test_a_rollback_is_one_commit_and_goes_further_each_time(remote):
    for inputs in ("one", "two", "three"):
        commit(remote, inputs)
        promote(remote)
    before = len(history(remote))
    back(remote)
    assert (runs(remote), len(history(remote))) == ("two", before + 1)
    someone_pushes(remote, "README.md", "between")
    back(remote)
    assert runs(remote) == "one"
    with pytest.raises(UsageError, match="ran nothing before"):
        back(remote)
    promote(remote)
    assert runs(remote) == "three"
    back(remote)
    assert runs(remote) == "one"


def test_a_rollback_restores_the_same_bytes(remote):
    commit(remote, "one")
    promote(remote)
    first = git(remote, "rev-parse", f"main:{PATH}/prod-a")
    commit(remote, "two")
    promote(remote)
    back(remote)
    assert git(remote, "rev-parse", f"main:{PATH}/prod-a") == first


def test_a_rollback_that_is_far_back_is_found(remote):
    commit(remote, "one")
    promote(remote)
    commit(remote, "two")
    promote(remote)
    for number in range(25):
        someone_pushes(remote, f"note-{number}", "x")
        if number % 5 == 0:
            commit(remote, f"later-{number}")
    back(remote)
    assert runs(remote) == "one"


def test_the_first_stage_has_nothing_before_it(remote):
    commit(remote, "one")
    with pytest.raises(UsageError, match="first stage"):
        promote(remote, "preprod")
    with pytest.raises(UsageError, match="no place in the order"):
        promote(remote, "prod-z")


def test_nothing_is_promoted_that_was_edited_by_hand(remote):
    commit(remote, "one")
    someone_pushes(remote, "a.yaml", "a: by hand\n", path=f"{PATH}/preprod/queues/a.yaml")
    with pytest.raises(UsageError, match="not as it was rendered"):
        promote(remote)
    assert runs(remote) == ""


def test_nothing_is_promoted_before_something_runs(remote):
    with pytest.raises(UsageError, match="nothing is delivered to preprod"):
        promote(remote)


def test_a_release_that_is_not_kept_is_not_guessed(remote):
    with Remote.open(str(remote)) as place:
        deliver(place, Order(both("one").of(["preprod"]), "main", PATH))
    with pytest.raises(UsageError, match="keeps no release"):
        promote(remote)
    commit(remote, "one")  # nothing to commit, but the release is kept from now on
    assert promote(remote).status is Status.COMMITTED


def test_a_release_under_a_false_name_is_refused(remote):
    commit(remote, "one")
    commit(remote, "two")
    one, two = (f"refs/blueprint/releases/{both(inputs).name}" for inputs in ("one", "two"))
    git(remote, "update-ref", two, one)
    with pytest.raises(UsageError, match="another release under the name"):
        promote(remote)


def test_a_stage_of_two_clusters_must_run_one_release(remote):
    stages = (("preprod", "prod-a"), ("prod-b",))
    with Remote.open(str(remote)) as place:
        deliver(place, Order(both("one"), "main", PATH, keep=both("one")))
        deliver(place, Order(both("two").of(["preprod"]), "main", PATH, keep=both("two")))
        with pytest.raises(UsageError, match="several releases: preprod runs"):
            source_of_promotion(place, "prod-b", stages, branch, PATH)
