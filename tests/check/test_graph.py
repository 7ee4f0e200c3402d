"""The index of objects: lookups, what may make a missing object, and one graph for each cluster of a tree."""

from __future__ import annotations

from blueprint.check.applications import Deliveries
from blueprint.check.clusters import graphs
from blueprint.check.graph import Graph, kind_of, selects
from blueprint.finding import Ref, Source
from blueprint.objects import Manifest


def make(
    kind: str, name: str, namespace: str = "", file: str = "a/x.yaml", api: str = "v1", **spec: object
) -> Manifest:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return Manifest({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}, Source(file, 1))


KUEUE = "kueue.x-k8s.io/v1beta2"


def test_looks_up_by_identity_kind_and_who_names_it() -> None:
    queue = make("ClusterQueue", "shared", api=KUEUE)
    local = make("LocalQueue", "team", "a", api=KUEUE, clusterQueue="shared")
    graph = Graph([queue, local])
    assert graph.get(Ref("kueue.x-k8s.io", "ClusterQueue", "", "shared")) is queue
    assert list(graph.kind("LocalQueue.kueue.x-k8s.io")) == [local]
    assert [user for user, _ in graph.named_by(queue.ref)] == [local]
    assert list(graph.namespace("a")) == [local]
    assert kind_of(local) == "LocalQueue.kueue.x-k8s.io"
    assert graph.group("kueue.x-k8s.io") == [queue, local]


def test_absence_is_a_fault_only_among_peers_or_in_a_closed_world() -> None:
    graph = Graph([make("ResourceFlavor", "h100", api=KUEUE)])
    assert graph.closed("ResourceFlavor.kueue.x-k8s.io")
    assert not graph.closed("Topology.kueue.x-k8s.io")
    assert Graph([], closed=["*"]).closed("Topology.kueue.x-k8s.io")
    assert Graph([], closed=["Secret"]).closed("Secret")


def test_a_generate_rule_may_bring_what_is_missing() -> None:
    rules = [{"name": "queue", "generate": {"apiVersion": KUEUE, "kind": "LocalQueue", "name": "main"}}]
    policy = make("ClusterPolicy", "queues", api="kyverno.io/v1", rules=rules)
    local = make("LocalQueue", "team", "a", api=KUEUE)
    graph = Graph([policy, local])
    assert graph.generated("LocalQueue.kueue.x-k8s.io") == [policy]
    assert not graph.closed("LocalQueue.kueue.x-k8s.io")
    assert not graph.generated("ClusterQueue.kueue.x-k8s.io")
    # What a policy of a whole tree generates is a part of it, unless the kind itself is said to be all there.
    assert not Graph([policy, local], closed=["*"]).closed("LocalQueue.kueue.x-k8s.io")
    assert Graph([policy, local], closed=["*"]).closed("ClusterQueue.kueue.x-k8s.io")
    assert Graph([policy, local], closed=["*", "LocalQueue.kueue.x-k8s.io"]).closed("LocalQueue.kueue.x-k8s.io")


def test_other_makers_are_known() -> None:
    wish = make("ExternalSecret", "db", "a", api="external-secrets.io/v1")
    generating = make(
        "GeneratingPolicy", "g", api="policies.kyverno.io/v1", generate=[{"expression": '"kind": "NetworkPolicy"'}]
    )
    graph = Graph([wish, generating])
    assert graph.generated("Secret") == [wish]
    assert graph.generated("NetworkPolicy.networking.k8s.io") == [generating]
    apps = make("ApplicationSet", "all", "argocd", api="argoproj.io/v1alpha1")
    assert Graph([apps]).generated("Application.argoproj.io") == [apps]


def applications(path: str, **generator: object) -> Manifest:
    source = {"repoURL": "https://git.example.com/teams.git", "path": path}
    return make(
        *("ApplicationSet", "teams", "argocd"),
        api="argoproj.io/v1alpha1",
        generators=[generator],
        template={"metadata": {"name": "{{name}}"}, "spec": {"source": source}},
    )


def test_a_set_of_applications_may_bring_anything_from_a_folder_that_is_not_here() -> None:
    kind = "LocalQueue.kueue.x-k8s.io"
    local = make("LocalQueue", "main", "a", file="here/teams/a/queue.yaml", api=KUEUE)
    of_git = {"git": {"directories": [{"path": "others/*"}, {"path": "teams/old", "exclude": True}]}}
    for each in (applications("others/{{name}}"), applications("others"), applications("{{path}}", **of_git)):
        graph = Graph([local, each])
        assert graph.generated(kind) == [each] and not graph.closed(kind)
        assert Graph([local, each], closed=["*"]).closed(kind)
    of_git = {"git": {"directories": [{"path": "teams/*"}]}}
    for each in (applications("teams/{{name}}"), applications("./teams/a/"), applications("{{path}}", **of_git)):
        assert Graph([local, each]).closed(kind)
    chart = applications("")
    chart.body["spec"]["template"]["spec"]["source"] = {"repoURL": "https://charts.example.com", "chart": "kueue"}
    assert Graph([local, chart]).closed(kind)


def test_labels_of_namespaces_are_those_on_the_server() -> None:
    graph = Graph([make("Namespace", "a")])
    assert graph.labels_of_namespace("a") == {"kubernetes.io/metadata.name": "a"}
    assert graph.labels_of_namespace("b") is None


def test_selectors() -> None:
    assert selects({}, {})
    assert not selects(None, {"a": "b"})
    assert selects({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"})
    assert not selects({"matchLabels": {"a": "b"}}, {})
    assert selects({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, {})
    assert not selects({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, {"a": "c"})
    assert selects({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"c": "d"})
    assert not selects({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"c": "d"})


def names(graph: Graph) -> set[tuple[str, str]]:
    return {(manifest.ref.name, manifest.source.file) for manifest in graph.manifests}


def test_clusters_of_one_tree_are_kept_apart_and_share_the_rest() -> None:
    tree = [
        make("ConfigMap", "x", "n", "tree/one/app/x.yaml"),
        make("ConfigMap", "x", "n", "tree/two/app/x.yaml"),
        make("Secret", "y", "n", "tree/two/other/y.yaml"),
        make("Secret", "z", "n", "tree/z.yaml"),
    ]
    one, two = graphs(tree)
    assert names(one) == {("x", "tree/one/app/x.yaml"), ("z", "tree/z.yaml")}
    assert names(two) == {("x", "tree/two/app/x.yaml"), ("y", "tree/two/other/y.yaml"), ("z", "tree/z.yaml")}
    assert [names(g) for g in graphs(tree[::-1])] in ([names(one), names(two)], [names(two), names(one)])


def test_an_overlay_goes_before_its_base() -> None:
    tree = [
        make("Deployment", "x", "n", "base/x.yaml", "apps/v1"),
        make("Deployment", "x", "n", "overlays/prod/x.yaml", "apps/v1"),
        make("Deployment", "x", "n", "overlays/test/x.yaml", "apps/v1"),
        make("Service", "y", "n", "base/y.yaml"),
    ]
    found = graphs(tree)
    assert len(found) == 2
    for graph in found:
        assert {name for name, _ in names(graph)} == {"x", "y"}
        assert len(graph.kind("Deployment.apps")) == 1


def test_folders_of_one_destination_are_one_cluster() -> None:
    tree = [make("ConfigMap", "x", "n", "one/x.yaml"), make("ConfigMap", "x", "n", "two/x.yaml")]
    assert len(graphs(tree)) == 2
    apps = [
        make(
            "Application", f, "argocd", "apps.yaml", "argoproj.io/v1alpha1", source={"path": f}, destination={"name": c}
        )
        for f, c in (("one", "prod"), ("two", "prod"))
    ]
    assert len(graphs([*tree, *apps], deliveries=Deliveries(Graph([*tree, *apps])))) == 1


def test_a_namespace_in_every_folder_divides_nothing() -> None:
    assert len(graphs([make("Namespace", "n", file="a/n.yaml"), make("Namespace", "n", file="b/n.yaml")])) == 1


def test_many_copies_of_one_example_cost_no_more_than_their_number() -> None:
    tree = [make("ConfigMap", "x", "n", f"examples/{number}/x.yaml") for number in range(2000)]
    tree += [make("Secret", str(number), "n", "shared.yaml") for number in range(2000)]
    found = graphs(tree)
    assert sum(len(graph.manifests) for graph in found) <= 5 * len(tree)
    assert not any(graph.closed("ConfigMap") for graph in found)


def test_a_namespace_on_what_lives_in_none_breaks_nothing() -> None:
    def binding(namespace: str, line: int) -> Manifest:
        metadata = {"name": "a", "namespace": namespace}
        body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata}
        return Manifest(body, Source("a.yaml", line))

    first, second = binding("system", 1), binding("other", 9)
    graph = Graph([first, second])
    assert graph.nearest(Ref("rbac.authorization.k8s.io", "ClusterRoleBinding", "", "a"), second) is first
