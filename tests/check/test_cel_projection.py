"""A rule sees of a map only what its text names; a macro on `self` itself sees all of it."""

import pytest

from blueprint.catalog.schemas import SchemaPack
from blueprint.check import Validator
from blueprint.finding import Source
from blueprint.objects import Manifest


@pytest.fixture(scope="module")
def validator():
    return Validator(SchemaPack.shipped(), rules=())


def mtls(ports):
    spec = {"selector": {"matchLabels": {"app": "chat"}}, "portLevelMtls": ports}
    metadata = {"name": "strict", "namespace": "chat"}
    body = {"apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication", "metadata": metadata, "spec": spec}
    return Manifest(body, Source("x.yaml"))


@pytest.mark.parametrize("ports", [{"70000": {}}, {"8000": {}, "0": {}}, {"all": {}}, {"8000": {}, "http": {}}])
def test_a_macro_over_the_keys_of_self_sees_every_key(validator, ports):
    assert {finding.code for finding in validator.create(mtls(ports))} <= {"CEL101", "CEL102"}
    assert validator.create(mtls(ports)) != []


def test_good_keys_pass(validator):
    assert validator.create(mtls({"8000": {"mode": "STRICT"}, "65535": {}})) == []
