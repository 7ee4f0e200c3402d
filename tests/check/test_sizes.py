"""Sizes at their bounds."""

from __future__ import annotations

import base64
from typing import Any

from blueprint.check.sizes import ANNOTATIONS, DATA, REQUEST, sizes
from blueprint.finding import Source
from blueprint.objects import Manifest

APPLIED = {"argocd.argoproj.io/sync-options": "Prune=false, ServerSideApply=true"}


def codes(body: dict[str, Any]) -> list[str]:
    head = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    return [finding.code for finding in sizes(Manifest({**head, **body}, Source("a.yaml")), None)]


def test_annotations() -> None:
    large = {"k": "x" * (ANNOTATIONS - 1), **{}}
    assert codes({"metadata": {"name": "a", "annotations": large}}) == ["SIZ104"]
    assert codes({"metadata": {"name": "a", "annotations": {"k": "é" * (ANNOTATIONS // 2)}}})[0] == "SIZ101"


def config_map(**data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": APPLIED}, **data}


def test_data_counts_decoded_bytes() -> None:
    assert codes(config_map(data={"a": "x" * DATA})) == []
    assert codes(config_map(data={"a": "x" * DATA, "b": "y"})) == ["SIZ102"]
    exactly = base64.b64encode(b"x" * DATA).decode()
    assert codes(config_map(binaryData={"a": exactly})) == []
    assert codes(config_map(data={"b": "y"}, binaryData={"a": exactly})) == ["SIZ102"]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": APPLIED}}
    assert codes({**secret, "data": {"a": exactly}}) == []
    assert codes({**secret, "data": {"a": exactly}, "stringData": {"b": "y"}}) == ["SIZ102"]


def test_objects_too_large_for_etcd() -> None:
    assert codes({"spec": "x" * REQUEST}) == ["SIZ103"]


def test_client_side_apply() -> None:
    assert codes({"spec": "x" * (ANNOTATIONS - 200)}) == []
    assert codes({"spec": "x" * ANNOTATIONS}) == ["SIZ104"]
    assert codes({"metadata": {"name": "a", "annotations": APPLIED}, "spec": "x" * ANNOTATIONS}) == []


def test_what_json_cannot_hold_is_left_to_the_schema_check() -> None:
    assert codes({"spec": {1: object()}}) == []
