"""The tree of a cluster, the faults seeded into it, and what is made of it: nodes, a corpus, an order."""

from pathlib import Path

import pytest

from blueprint.admission.nodes import find_nodes, inventories
from blueprint.conform.corpus import corpus, sampled
from blueprint.conform.install import outside, volume_for
from blueprint.conform.lab import places
from blueprint.conform.nodes import node_objects
from blueprint.conform.suites import ALL
from blueprint.conform.suites.access import Question, _covers, subjects
from blueprint.conform.tree import Tree, rendered
from blueprint.errors import UsageError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tree() -> Tree:
    return rendered(ROOT)


def test_the_production_cluster_is_taken(tree):
    assert tree.name == "prod-a"
    assert len(list(tree.manifests)) > 200


def test_an_unknown_cluster_is_a_usage_error():
    with pytest.raises(UsageError, match="no cluster is called nowhere"):
        rendered(ROOT, "nowhere")


def test_applications_come_by_their_waves(tree):
    names = list(tree.applications)
    assert names.index("queues") < names.index("team-chat") < names.index("serve-chat-70b")


def test_nodes_are_those_that_predictions_are_made_about(tree):
    made = {node["metadata"]["name"]: node for node in node_objects(tree.bodies)}
    known = find_nodes([], inventories(tree.manifests))
    assert made.keys() == {node.name for node in known}
    for node in known:
        assert made[node.name]["metadata"]["labels"] == dict(node.labels)


@pytest.mark.parametrize("suite", ALL, ids=lambda suite: suite.name)
def test_every_suite_has_a_fault_that_changes_the_tree(tree, suite):
    assert suite.faults
    for fault in suite.faults:
        assert fault.seed(tree).bodies != tree.bodies
    assert [body for body in tree.bodies if "no-such-pool" in str(body)] == []  # the tree itself stays


def test_a_fault_that_hits_nothing_is_an_error(tree):
    with pytest.raises(LookupError, match="no Deployment nowhere"):
        tree.changed("Deployment", lambda body: None, "nowhere")


def test_a_sample_of_the_corpus_has_every_change_by_each_user_and_every_pod(tree):
    requests = corpus(tree)
    part = sampled(requests)
    assert len(part) < len(requests) / 3

    def split(request):
        pod, _, change = request.what.partition(", ")
        return (pod, change) if pod.startswith("pod of") else ("", request.what)

    assert {(split(r)[1], r.user) for r in part} == {(split(r)[1], r.user) for r in requests}
    assert {split(r)[0] for r in part} == {split(r)[0] for r in requests}


def test_the_corpus_is_large_and_of_unique_pods(tree):
    requests = corpus(tree)
    assert len(requests) >= 500
    pods = [r.body["metadata"]["name"] for r in requests if r.body["kind"] == "Pod"]
    assert len(set(pods)) * 2 == len(pods)  # by a person and by a controller
    assert len({str(r.body) for r in requests}) > 250


def test_namespaces_outside_are_those_of_components(tree):
    names = {body["metadata"]["name"] for body in outside(tree.bodies)}
    assert "kueue-system" in names
    assert not names & {"chat", "research", "search-ai", "default"}


def test_a_volume_is_bound_to_its_claim(tree):
    claim = tree.of_kind("PersistentVolumeClaim")[0]
    volume = volume_for(claim)
    assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"]
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"]


def test_queues_are_read_with_their_limits(tree):
    found = {place.cluster_queue: place for place in places(tree)}
    lender = found["search-ai-training"]
    assert (lender.nominal, lender.borrow, lender.lend) == (64, 32, 48)
    assert found["research-training"].lend is None


def test_groups_are_read_from_bindings(tree):
    assert ("oidc:search-ai", "platform-tenant-developer", "search-ai") in [
        (person.group, person.role, person.namespace) for person in subjects(tree)
    ]


@pytest.mark.parametrize(
    ("rule", "question", "covered"),
    [
        ({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}, Question("get", "", "pods", "a"), True),
        ({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}, Question("get", "", "pods/log", "a"), False),
        ({"apiGroups": [""], "resources": ["*/log"], "verbs": ["*"]}, Question("get", "", "pods/log", "a"), True),
        ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, Question("get", "x", "y/z", "a"), True),
        ({"apiGroups": ["apps"], "resources": ["*"], "verbs": ["get"]}, Question("get", "", "pods", "a"), False),
        ({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, Question("get", "", "pods", "a"), False),
    ],
)
def test_a_rule_covers_as_the_server_reads_it(rule, question, covered):
    assert _covers(rule, question) is covered
