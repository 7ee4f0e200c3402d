import copy
import json

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.conform import values
from blueprint.conform.mutate import Label, mutations, put

QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "search-ai", "labels": {"team": "search"}},
    "spec": {
        "cohortName": "shared",
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": [
            {
                "coveredResources": ["nvidia.com/gpu"],
                "flavors": [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}],
            }
        ],
    },
}
CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "serving"},
    "value": 1000,
    "preemptionPolicy": "Never",
}


@pytest.fixture(scope="module")
def pack():
    return SchemaPack.shipped()


@pytest.fixture(scope="module")
def queue(pack):
    return pack.kind("kueue.x-k8s.io/v1beta2", "ClusterQueue")


def every(body, kind):
    return mutations(body, kind, seed=1, each=10**6)


def of(found, label):
    return {m.place: m for m in found if m.label is label}


def test_the_same_seed_gives_the_same_mutations_and_another_gives_others(queue):
    first = [str(m) for m in mutations(QUEUE, queue, seed=3, each=5)]
    assert first == [str(m) for m in mutations(QUEUE, queue, seed=3, each=5)]
    assert first != [str(m) for m in mutations(QUEUE, queue, seed=4, each=5)]
    assert len(first) == len(set(first))


def test_the_given_object_is_never_changed_and_every_mutation_differs(queue):
    before = copy.deepcopy(QUEUE)
    found = every(QUEUE, queue)
    assert before == QUEUE
    whole = json.dumps(QUEUE)
    assert [str(m) for m in found if json.dumps(m.body) == whole] == []


def test_every_label_that_fits_the_kind_is_there(queue):
    labels = {m.label for m in every(QUEUE, queue)}
    assert labels == set(Label) - {Label.IMMUTABLE, Label.NUMBER}


@pytest.mark.parametrize(
    ("label", "place"),
    [
        (Label.MISSING, ("spec", "resourceGroups", 0, "flavors", 0, "name")),
        (Label.ABSENT, ("spec", "cohortName")),
        (Label.UNKNOWN, ("spec", "resourceGroups", 0, "flavorsX")),
        (Label.ENUM, ("spec", "queueingStrategy")),
        (Label.DUPLICATE, ("spec", "resourceGroups", 0, "flavors")),
        (Label.NAME, ("metadata", "name")),
        (Label.CEL, ("spec", "cohortName")),
        (Label.QUANTITY, ("spec", "resourceGroups", 0, "flavors", 0, "resources", 0, "nominalQuota")),
        (Label.NULL, ("spec", "resourceGroups", 0)),
        (Label.SCOPE, ("apiVersion",)),
    ],
)
def test_mutations_reach_deep_places(queue, label, place):
    assert place in of(every(QUEUE, queue), label)


def test_an_absent_field_that_a_rule_reads_is_added(pack):
    kind = pack.kind("kueue.x-k8s.io/v1beta2", "ClusterQueue")
    body = put(QUEUE, ("spec", "flavorFungibility"), {"whenCanBorrow": "TryNextFlavor"})
    added = [m for m in every(body, kind) if m.label is Label.CEL and m.place[-1] == "preference"]
    assert {m.value for m in added} == set(kind.at(("spec", "flavorFungibility", "preference"))["enum"])


def test_immutable_fields_become_updates(pack):
    found = every(CLASS, pack.kind("scheduling.k8s.io/v1", "PriorityClass"))
    updates = [m for m in found if m.update]
    assert {m.label for m in updates} == {Label.IMMUTABLE}
    assert {m.place for m in updates} == {("value",), ("preemptionPolicy",)}
    assert all(not m.update for m in found if m.label is not Label.IMMUTABLE)


def test_two_and_two_point_zero_are_different_values(pack):
    found = every(put(CLASS, ("value",), 2), pack.kind("scheduling.k8s.io/v1", "PriorityClass"))
    forms = [m.value for m in found if m.label is Label.NUMBER and m.place == ("value",)]
    assert any(isinstance(form, float) and form == 2 for form in forms)


def test_put_sets_adds_and_takes_away_without_touching_the_rest():
    body = {"a": [{"b": 1}, {"c": 2}], "d": {"e": 3}}
    assert put(body, ("a", 1, "c"), 5) == {"a": [{"b": 1}, {"c": 5}], "d": {"e": 3}}
    assert put(body, ("d", "f"), None) == {"a": [{"b": 1}, {"c": 2}], "d": {"e": 3, "f": None}}
    assert put(body, ("a", 0), values.GONE) == {"a": [{"c": 2}], "d": {"e": 3}}
    assert body == {"a": [{"b": 1}, {"c": 2}], "d": {"e": 3}}
    assert put(body, ("a", 1, "c"), 5)["d"] is body["d"]
