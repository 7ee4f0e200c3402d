"""Emitted YAML as the API server reads it: sent as `application/yaml`, it comes back as the object that was emitted."""

from __future__ import annotations

import json
import random

import pytest

from blueprint.conform.client import YAML
from blueprint.render.canonical import canonical
from blueprint.render.emit import emit
from tests.render.strings import NASTY

NAMESPACE = "emit"
STRICT = {"fieldValidation": "Strict"}
ANYTHING = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "anythings.test.platform.blueprint"},
    "spec": {
        "group": "test.platform.blueprint",
        "scope": "Namespaced",
        "names": {"plural": "anythings", "singular": "anything", "kind": "Anything", "listKind": "AnythingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def post(control_plane):
    """Send an object as YAML; the answer's body."""
    control_plane.namespace(NAMESPACE)
    control_plane.load_crds([ANYTHING])

    def send(path, body):
        text = emit(body).encode()
        answer = control_plane.client.request("POST", path, text, content_type=YAML, query=STRICT)
        assert answer.status == 201, f"{answer.message}\n{text.decode()[:2000]}"
        assert not answer.warnings
        return answer.body

    return send


def anything(spec):
    metadata = {"generateName": "a-", "namespace": NAMESPACE}
    return {"apiVersion": "test.platform.blueprint/v1", "kind": "Anything", "metadata": metadata, "spec": spec}


def mixed(count, seed=20261130):
    """Strings made of pieces that mean something to some reader."""
    chance = random.Random(seed)
    pieces = [*NASTY[:-4], *"0123456789abefxoTZ_.:+-/%#, \n\t'\"\\{}[]&*!|>?@`~=<$yYnN"]
    return ["".join(chance.choices(pieces, k=chance.randint(1, 6))) for _ in range(count)]


@pytest.mark.parametrize("texts", [NASTY, mixed(3000)], ids=["known", "mixed"])
def test_config_map_values(post, texts):
    data = {f"k{index}": text for index, text in enumerate(texts)}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}, "data": data}
    assert post(f"/api/v1/namespaces/{NAMESPACE}/configmaps", body)["data"] == data


@pytest.mark.parametrize("texts", [NASTY, mixed(1500, seed=1)], ids=["known", "mixed"])
def test_keys_lists_and_maps(post, texts):
    spec = {
        "keys": {text: {text: [text]} for text in texts},
        "list": [*texts, texts, [{text: "x", "y": {text: text}} for text in texts]],
    }
    read = post(f"/apis/test.platform.blueprint/v1/namespaces/{NAMESPACE}/anythings", anything(spec))
    assert read["spec"] == spec


def test_numbers_and_words(post):
    numbers = [0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 0.1, 1.5, -0.25, 1e16, 1.5e-7, 1e21, 2.5e300, 5e-324]
    spec = {"numbers": numbers, "words": [True, False, "true", "false", "null", "0", "1.0"], "empty": [{}, [], ""]}
    read = post(f"/apis/test.platform.blueprint/v1/namespaces/{NAMESPACE}/anythings", anything(spec))
    assert read["spec"] == spec
    assert json.dumps(read["spec"]["words"]) == json.dumps(spec["words"])


AMOUNTS = {
    "requests.cpu": (0.1, "100m"),
    "limits.cpu": ("1000m", "1"),
    "requests.memory": ("1024Mi", "1Gi"),
    "limits.memory": ("1.5Gi", "1536Mi"),
    "requests.storage": ("62.5Ki", "64k"),
    "requests.ephemeral-storage": ("1000k", "1M"),
    "requests.nvidia.com/gpu": ("0.5Ki", "512"),
    "pods": (1000, "1k"),
}


def quota(hard):
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"generateName": "q-"}, "spec": {"hard": hard}}


def test_the_server_writes_quantities_as_we_do(post):
    written = quota({name: amount for name, (amount, _) in AMOUNTS.items()})
    path = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"
    ours = canonical(written)
    assert ours["spec"]["hard"] == {name: text for name, (_, text) in AMOUNTS.items()}
    assert post(path, written)["spec"] == ours["spec"]
    assert post(path, ours)["spec"] == ours["spec"]
