"""Load CustomResourceDefinitions into an API server, as fast as it takes them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from blueprint.conform.client import Client
from blueprint.conform.daemon import NotReady

_AT_ONCE = 4
_ONE_SCHEMA = frozenset(("items", "additionalProperties", "not"))
_SCHEMA_LISTS = frozenset(("allOf", "anyOf", "oneOf"))


def load(client: Client, crds: Iterable[Mapping[str, Any]], seconds: float) -> int:
    """Create them, four at a time, and wait at most `seconds` until each version is served; returns how many.

    Descriptions are left out: they decide nothing and double the server's memory and OpenAPI. Served means found in
    discovery, which lists only what is Established (k8s.io/apiextensions-apiserver@v0.35.4
    pkg/apiserver/customresource_discovery_controller.go).
    Raises NotReady naming the first that is refused, or those that are not served in time.
    """
    stripped = [without_descriptions(crd) for crd in crds]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(client.create, stripped))
    for crd, answer in zip(stripped, answers, strict=True):
        if not answer.ok and answer.status != 409:
            raise NotReady(f"CustomResourceDefinition {crd['metadata']['name']} is refused: {answer.message}")
    versions = [
        (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"])
        for crd in stripped
        for version in crd["spec"]["versions"]
        if version["served"]
    ]
    deadline = time.monotonic() + seconds
    while waiting := _unserved(client, versions):
        if time.monotonic() > deadline:
            raise NotReady(f"waited {seconds:g} s for CustomResourceDefinitions: {', '.join(waiting[:5])} not served")
        time.sleep(0.1)
    return len(stripped)


def without_descriptions(crd: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a CRD whose schemas have no `description`; a property of that name stays."""
    copy: dict[str, Any] = json.loads(json.dumps(crd))
    for version in copy["spec"]["versions"]:
        _strip(version.get("schema", {}).get("openAPIV3Schema"))
    return copy


def _strip(schema: object) -> None:
    if not isinstance(schema, dict):
        return
    schema.pop("description", None)
    for key, value in schema.items():
        if key == "properties":
            for entry in value.values():
                _strip(entry)
        elif key in _SCHEMA_LISTS:
            for entry in value:
                _strip(entry)
        elif key in _ONE_SCHEMA:
            _strip(value)


def _unserved(client: Client, versions: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{api_version} {kind}" for api_version, kind in versions if not client.serves(api_version, kind)]
