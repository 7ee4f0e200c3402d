"""What is written to a cluster that is somebody's: only things that are called after the run, and what gives no right
to anybody who is there.
"""

from pathlib import Path

import pytest

from blueprint.conform.borrowed import MARK, Borrowed, described, new_prefix, prefixed
from blueprint.conform.client import Answer
from blueprint.conform.suites.access import subjects
from blueprint.conform.tree import rendered
from blueprint.errors import EnvironmentLacks

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tree():
    return rendered(ROOT)


def test_nothing_that_is_written_bears_a_name_that_could_be_there(tree):
    plan = Borrowed(None, prefixed(tree, "conform-1-"), "conform-1-").plan
    assert {body["kind"] for body in plan} >= {"Namespace", "ClusterRole", "ClusterRoleBinding", "RoleBinding"}
    for body in plan:
        meta = body["metadata"]
        own = meta.get("namespace") or meta["name"]
        assert own.startswith("conform-1-"), body
        assert meta["labels"][MARK] == "conform-1"
    spaces = {body["metadata"]["name"] for body in plan if body["kind"] == "Namespace"}
    assert {body["metadata"]["namespace"] for body in plan if "namespace" in body["metadata"]} <= spaces
    assert "Namespaces" in next(described(plan))


def test_nobody_who_is_there_gets_a_right(tree):
    moved = prefixed(tree, "conform-1-")
    assert all(person.group.startswith("conform-1-") for person in subjects(moved))
    assert all(person.role.startswith("conform-1-") for person in subjects(moved))
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for body in moved.of_kind(kind):
            for subject in body["subjects"]:
                if subject["kind"] == "ServiceAccount":
                    assert subject["namespace"].startswith("conform-1-")
    assert len(subjects(moved)) == len(subjects(tree))
    assert not any(person.group.startswith("conform-1-") for person in subjects(tree)), "the tree itself is as it was"


def test_each_run_has_its_own_prefix():
    assert len({new_prefix() for _ in range(20)}) == 20


class Refusing:
    """Takes three objects, refuses the fourth, and remembers what is deleted."""

    def __init__(self):
        self.there, self.deleted = [], []

    def create(self, body):
        if len(self.there) == 3:
            return Answer(403, {"message": "no more"})
        stamped = {**body["metadata"], "creationTimestamp": "2999-01-01T00:00:00Z"}
        self.there.append({**body, "metadata": stamped})
        return Answer(201, body)

    def every(self, api_version, kind, namespace="", *, labels=""):
        key, _, value = labels.partition("=")
        rows = [b for b in self.there if b["kind"] == kind and key in b["metadata"]["labels"]]
        return [b for b in rows if value in ("", b["metadata"]["labels"][key])]

    def delete(self, target):
        self.deleted.append(target.name)
        self.there = [b for b in self.there if b["metadata"]["name"] != target.name]
        return Answer(200, {})


def test_a_refusal_in_the_middle_leaves_nothing(tree):
    client = Refusing()
    place = Borrowed(client, prefixed(tree, "conform-1-"), "conform-1-")
    with pytest.raises(EnvironmentLacks, match="no more"), place:
        raise AssertionError("not entered")
    assert client.there == []
    assert len(client.deleted) == 3
    assert place.leftovers == []


def test_what_a_killed_run_left_is_found_when_it_is_old(tree):
    client = Refusing()
    young = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "young", "labels": {MARK: "conform-2"}}}
    client.create(young)
    old = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "old", "labels": {MARK: "conform-3"}}}
    client.there.append({**old, "metadata": {**old["metadata"], "creationTimestamp": "2020-01-01T00:00:00Z"}})
    place = Borrowed(client, prefixed(tree, "conform-1-"), "conform-1-")
    assert [target.name for target in place.earlier()] == ["old"]
    place.sweep()
    assert client.deleted == [], "another run may be at work"
