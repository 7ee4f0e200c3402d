import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import Validator
from blueprint.finding import Confidence, Source
from blueprint.objects import Manifest


@pytest.fixture(scope="module")
def validator():
    return Validator(SchemaPack.shipped(), rules=())


def verdict(validator, old, **changes):
    new = {**old, **changes}
    found = validator.update(Manifest(new, Source("new.yaml")), Manifest(old, Source("old.yaml")))
    return [(f.code, f.path, f.confidence) for f in found]


SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "n"}, "type": "Opaque"}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "data": {"a": "1"}}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "a", "namespace": "n"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
    "subjects": [],
}


def test_a_changed_immutable_field_is_certain(validator):
    assert verdict(validator, SECRET, type="kubernetes.io/tls") == [("SCH115", "type", Confidence.CERTAIN)]
    role = {**BINDING["roleRef"], "name": "b"}
    assert verdict(validator, BINDING, roleRef=role) == [("SCH115", "roleRef", Confidence.CERTAIN)]


def test_a_field_that_is_left_out_may_be_filled_in_again(validator):
    assert verdict(validator, SECRET, type="") == [], "its default is what it was"
    role = {**BINDING["roleRef"], "apiGroup": ""}
    assert verdict(validator, BINDING, roleRef=role) == [("SCH115", "roleRef", Confidence.LIKELY)]


def test_the_same_object_may_always_come_again(validator):
    assert verdict(validator, SECRET) == []
    assert verdict(validator, SECRET, stringData={"a": "b"}) == []


def test_data_is_free_until_the_object_says_immutable(validator):
    assert verdict(validator, MAP, data={"a": "2"}) == []
    fixed = {**MAP, "immutable": True}
    assert verdict(validator, fixed, data={"a": "2"}) == [("SCH115", "data", Confidence.CERTAIN)]


def test_a_transition_rule_of_a_crd_is_judged_only_on_a_change(validator):
    spec = {"controllerName": "example.com/a"}
    check = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "a"}, "spec": spec}
    assert validator.create(Manifest(check, Source("x"))) == []
    assert verdict(validator, check, spec={"controllerName": "example.com/b"})[0][0] == "CEL101"


SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "a"},
    "spec": {
        "serviceName": "a",
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "d"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("change", "confidence"),
    [
        ({"replicas": 3}, None),
        ({"podManagementPolicy": "OrderedReady"}, None),
        ({"podManagementPolicy": "Parallel"}, Confidence.CERTAIN),
        ({"serviceName": "b"}, Confidence.CERTAIN),
        ({"serviceName": None}, Confidence.CERTAIN),
        ({"volumeClaimTemplates": []}, Confidence.CERTAIN),
    ],
)
def test_stateful_sets(validator, change, confidence):
    found = verdict(validator, SET, spec={**SET["spec"], **change})
    assert [row[2] for row in found] == ([confidence] if confidence else [])


def claims(storage, **more):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **more}
    return {**SET["spec"], "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": spec}]}


def test_amounts_are_compared_as_amounts(validator):
    doubtful = [("SCH115", "spec.volumeClaimTemplates", Confidence.LIKELY)]
    assert verdict(validator, SET, spec=claims("1Gi")) == doubtful
    assert verdict(validator, SET, spec=claims("1024Mi", volumeMode="Filesystem")) == doubtful
    assert verdict(validator, SET, spec=claims("2Gi")) == [("SCH115", "spec.volumeClaimTemplates", Confidence.CERTAIN)]
