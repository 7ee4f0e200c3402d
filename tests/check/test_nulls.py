from __future__ import annotations

from blueprint.catalog.schemas import Kind, SchemaPack
from blueprint.check.nulls import has_null, without_nulls
from tests.check.objects import CLUSTER_QUEUE, DEPLOYMENT, changed, codes

PACK = SchemaPack.shipped()


def kind(api_version: str, name: str) -> Kind:
    found = PACK.kind(api_version, name)
    assert found is not None
    return found


def test_null_is_absent_in_built_in_kinds() -> None:
    body = changed(DEPLOYMENT, "spec", "replicas", None)
    assert "replicas" not in without_nulls(kind("apps/v1", "Deployment"), body)["spec"]
    assert codes(body) == []
    assert codes(changed(DEPLOYMENT, "spec", "selector", None)) == ["SCH105"]


def test_null_in_a_list_or_map_of_a_built_in_kind_is_the_zero_value() -> None:
    container = {"name": "a", "image": "b", "args": [None], "resources": {"limits": {"memory": None}}}
    body = changed(DEPLOYMENT, "spec", "template", "spec", "containers", [container])
    body = changed(body, "metadata", "labels", {"a": None})
    read = without_nulls(kind("apps/v1", "Deployment"), body)
    held = read["spec"]["template"]["spec"]["containers"][0]
    assert held["args"] == [""] and held["resources"]["limits"] == {"memory": 0}
    assert read["metadata"]["labels"] == {"a": ""}
    assert codes(body) == []


def test_null_in_a_custom_resource_goes_where_it_may() -> None:
    queue = changed(CLUSTER_QUEUE, "spec", "cohortName", None)
    assert "cohortName" not in without_nulls(kind("kueue.x-k8s.io/v1beta2", "ClusterQueue"), queue)["spec"]
    assert codes(queue) == []
    item = changed(CLUSTER_QUEUE, "spec", "resourceGroups", 0, "coveredResources", ["nvidia.com/gpu", None])
    assert "SCH106" in codes(item)  # in a list it stays


def test_null_gives_way_to_a_default_and_stays_where_it_is_allowed() -> None:
    queue = changed(CLUSTER_QUEUE, "spec", "preemption", {"withinClusterQueue": None})
    assert codes(queue) == []
    selector = changed(CLUSTER_QUEUE, "spec", "namespaceSelector", None)
    assert codes(selector) == []


def test_metadata_of_a_custom_resource_is_read_like_that_of_any_object() -> None:
    body = changed(CLUSTER_QUEUE, "metadata", {"name": "a", "labels": {"a": None}, "creationTimestamp": None})
    read = without_nulls(kind("kueue.x-k8s.io/v1beta2", "ClusterQueue"), body)
    assert read["metadata"] == {"name": "a", "labels": {"a": ""}}
    assert codes(body) == []


def test_null_for_a_required_field_without_a_type_is_missing() -> None:
    template = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "digest"},
        "spec": {
            "crd": {"spec": {"names": {"kind": "Digest"}}},
            "targets": [
                {"target": "admission.k8s.gatekeeper.sh", "code": [{"engine": "Rego", "source": {"rego": "x"}}]}
            ],
        },
    }
    assert codes(template) == []
    assert codes(changed(template, "spec", "targets", 0, "code", 0, "source", None)) == ["SCH105"]


def test_has_null() -> None:
    assert has_null({"a": [{"b": None}]}) and has_null(None)
    assert not has_null({"a": [{"b": 0}], "c": ""})
