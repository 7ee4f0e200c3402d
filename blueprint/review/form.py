"""One form for all ways to write an object: what the API server would make of it, as far as it is known offline.

Defaults are filled in, nulls read as the server reads them, quantities compared by amount. Two objects with the same
form are the same object, however they are written.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from blueprint.catalog.crds import ITEM, VALUE, Json
from blueprint.catalog.references import pod_spec_paths
from blueprint.catalog.schemas import Kind, ListMap, SchemaPack
from blueprint.catalog.tables import table
from blueprint.check.defaults import with_defaults
from blueprint.check.nulls import decoded
from blueprint.check.pods import containers, pod_templates
from blueprint.check.shapes import maps
from blueprint.objects import Manifest
from blueprint.quantity import QuantityError, parse_quantity
from blueprint.review.diff import Amount, Lists, SchemaPath
from blueprint.review.filled import fill_places, fill_pod, with_top
from blueprint.review.workloads import inline, own_containers

_POD = ("v1", "Pod")
_QUANTITY = "[KMGTPE]i"
"""What only the patterns of quantities hold, in OpenAPI documents and in CRDs."""


def form(manifest: Manifest, kind: Kind | None) -> dict[str, Any]:
    """The body in the one form; the manifest's own body is not changed."""
    body = manifest.body
    if kind is not None:
        body = decoded(manifest, kind).body
        filled: dict[str, Any] = with_defaults(kind.defaults, body)
        body = _canonical(kind, kind.schema, filled)
        if kind.status_subresource and "status" in body:
            body = {name: value for name, value in body.items() if name != "status"}
    name = f"{manifest.kind}.{manifest.ref.group}" if manifest.ref.group else manifest.kind
    body = secret(body) if name == "Secret" else _service(body) if name == "Service" else body
    body = _copied(with_top(body, table("review_defaults")["kinds"].get(name, {})))
    fill_places(body, name)
    _pods(Manifest(body, manifest.source), name)
    return _metadata(body)


def secret(body: dict[str, Any]) -> dict[str, Any]:
    """With `stringData` in `data`, where the server writes it, over what stands there.

    Source: k8s.io/kubernetes v1.35.4 pkg/apis/core/v1/conversion.go Convert_v1_Secret_To_core_Secret.
    """
    plain, data = body.get("stringData"), body.get("data", {})
    if not isinstance(plain, dict) or not isinstance(data, dict):
        return body
    if not all(isinstance(value, str) for value in plain.values()):
        return body
    written = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
    return {**{name: value for name, value in body.items() if name != "stringData"}, "data": {**data, **written}}


def _service(body: dict[str, Any]) -> dict[str, Any]:
    """With what the server fills into ports: TCP, and the port itself as the one that pods listen on.

    Source: k8s.io/kubernetes v1.35.4 pkg/apis/core/v1/defaults.go SetDefaults_Service.
    """
    spec = body.get("spec")
    ports = spec.get("ports") if isinstance(spec, dict) else None
    if not isinstance(ports, list):
        return body
    filled = [
        {"protocol": "TCP", "targetPort": row.get("port"), **row} if isinstance(row, dict) else row for row in ports
    ]
    return {**body, "spec": {**body["spec"], "ports": filled}}


def _metadata(body: dict[str, Any]) -> dict[str, Any]:
    """Without metadata that says nothing: empty maps, and the fields that a server writes itself."""
    meta = body.get("metadata")
    if not isinstance(meta, dict):
        return body
    idle = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink")
    kept = {name: value for name, value in meta.items() if name not in idle and value not in ({}, [], None)}
    return {**body, "metadata": kept}


def _pods(manifest: Manifest, name: str) -> None:
    """Write what the server fills into pods, into the body itself."""
    rows = table("review_defaults")
    for container in own_containers(manifest.body, name):
        _container(container, rows["pod"]["container"])
    for pod in pod_templates(manifest):
        for key, value in rows["pod"]["spec"].items():
            if not (key == "restartPolicy" and name in rows["must_say_restart"]):
                pod.spec.setdefault(key, value)
        for key in ("serviceAccount",):  # the old spelling, which the server keeps beside the new one
            if key in pod.spec and "serviceAccountName" not in pod.spec:
                pod.spec["serviceAccountName"] = pod.spec[key]
            pod.spec.pop(key, None)
        pod.metadata.pop("creationTimestamp", None)
        fill_pod(pod.spec)
        for _, container in containers(pod.spec):
            _container(container, rows["pod"]["container"])


def _container(container: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    for key, value in defaults.items():
        if not isinstance(value, dict):
            container.setdefault(key, value)
        elif isinstance(container.get(key), dict):
            container[key] = with_top(container[key], value)
    image = container.get("image")
    if isinstance(image, str):
        tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
        latest = "@" not in image and tag in ("", "latest")
        container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    for port in maps(container.get("ports")):
        port.setdefault("protocol", "TCP")
    resources = container.get("resources")
    if isinstance(resources, dict):
        limits = resources.get("limits")
        if isinstance(limits, dict):  # a request that is left out is the limit
            requests = resources.setdefault("requests", {})
            if isinstance(requests, dict):
                for key, amount in limits.items():
                    requests.setdefault(key, amount)
        for part in ("limits", "requests"):
            if isinstance(resources.get(part), dict):
                resources[part] = {key: _quantity(amount) for key, amount in resources[part].items()}
    if resources == {}:
        del container["resources"]


def _copied(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _copied(child) for name, child in value.items()}
    return [_copied(child) for child in value] if isinstance(value, list) else value


def _quantity(value: Json) -> Json:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return Amount(str(value), parse_quantity(value))
    except QuantityError:
        return value


def _canonical(kind: Kind, schema: Mapping[str, Any], value: Json) -> Json:
    """Quantities as amounts; in built-in kinds an empty list, too, is one that is left out."""
    node = kind.resolve(dict(schema)) if "$ref" in schema else schema
    if isinstance(value, dict):
        properties, rest = node.get("properties", {}), node.get("additionalProperties")
        out = {}
        for name, child in value.items():
            below = properties.get(name, rest)
            if kind.core and child == [] and name != "rules":
                continue
            out[name] = _canonical(kind, below, child) if isinstance(below, dict) else child
        return out
    if isinstance(value, list):
        items = node.get("items")
        return [_canonical(kind, items, child) for child in value] if isinstance(items, dict) else value
    return _quantity(value) if _QUANTITY in str(node.get("pattern", "")) else value


def lists(kind: Kind | None, manifest: Manifest, pack: SchemaPack) -> Lists:
    """The lists of an object's kind; those of the pods in it count even where a CRD does not say so."""
    name = manifest.ref.kind_name
    return _lists(manifest.api_version, manifest.kind, name, kind is not None, pack).where(
        _ordered(manifest.body, name)
    )


@lru_cache(maxsize=64)
def _lists(api_version: str, called: str, name: str, known: bool, pack: SchemaPack) -> Lists:
    """The lists of a kind, worked out once for all its objects."""
    kind = pack.kind(api_version, called) if known else None
    maps: dict[SchemaPath, ListMap] = dict(kind.list_maps) if kind else {}
    sets = set(kind.sets) if kind else set()
    pod_maps, pod_sets = _pod_lists(pack)
    if called != "Pod":
        for where in pod_spec_paths(name):
            maps |= {(*where, *path): shape for path, shape in pod_maps.items()}
            sets |= {(*where, *path) for path in pod_sets}
        for place in inline(name):
            maps |= {(*place.spec, *path): shape for path, shape in pod_maps.items()}
            for alone in place.containers:
                of_one = {path[2:]: shape for path, shape in pod_maps.items() if path[:2] == ("containers", "[]")}
                maps |= {(*place.spec, alone, *path): shape for path, shape in of_one.items() if path}
    maps |= {tuple(path): ListMap(tuple(keys), {}) for path, keys in _more().get(name, ())}
    sets |= {_schema_path(path) for path in table("review_risks")["sets"].get(name, ())}
    return Lists(maps, sets, free=_free(name))


def _schema_path(path: str) -> SchemaPath:
    return tuple(path.split("."))


def _free(name: str) -> Callable[[SchemaPath, list[Any], list[Any]], bool]:
    """Whether the order of a list that is told apart by nothing is no part of it: rows of `free`."""
    rows = _rows_about("free", name)

    def free(path: SchemaPath, old: list[Any], new: list[Any]) -> bool:
        where = ".".join(path)
        return any(
            any(fnmatchcase(where, each) for each in row["lists"])
            and not any(row["unless"] in str(item) for item in (*old, *new) if "unless" in row)
            for row in rows
        )

    return free


@lru_cache(maxsize=1 << 10)
def _rows_about(section: str, name: str) -> tuple[Mapping[str, Any], ...]:
    """The rows of a section about a kind."""
    return tuple(row for row in table("review_risks")[section] if any(fnmatchcase(name, kind) for kind in row["kinds"]))


@lru_cache(maxsize=4)
def _pod_lists(pack: SchemaPack) -> tuple[Mapping[SchemaPath, ListMap], tuple[SchemaPath, ...]]:
    pod = pack.kind(*_POD)
    if pod is None:
        return {}, ()
    maps = {path[1:]: shape for path, shape in pod.list_maps.items() if path[0] == "spec"}
    return maps, tuple(path[1:] for path in pod.sets if path[0] == "spec")


def _more() -> dict[str, list[tuple[list[str], list[str]]]]:
    rows = table("review_risks")["lists"]
    return {kind: [(path.split("."), keys) for path, keys in found.items()] for kind, found in rows.items()}


def _ordered(body: Mapping[str, Any], name: str) -> Callable[[SchemaPath, list[Any], list[Any]], bool]:
    """Whether the order of a list map of an object means something: rows of `order` in review_risks.yaml."""
    rows = _rows_about("order", name)

    def ordered(path: SchemaPath, old: list[Any], new: list[Any]) -> bool:
        return any(_means(row, body, path, (*old, *new)) for row in rows if fnmatchcase(".".join(path), row["list"]))

    return ordered


def _means(row: Mapping[str, Any], body: Mapping[str, Any], path: SchemaPath, found: tuple[Any, ...]) -> bool:
    """Whether the condition of a row holds: a word in the items, a value beside the list."""
    if "holds" in row and not any(row["holds"] in str(each) for each in found):
        return False
    for beside, value in row.get("beside", {}).items():
        there: Json = body
        for step in (*path[:-1], *beside.split(".")):
            there = there.get(step) if isinstance(there, dict) else None
        if there != value:
            return False
    return True


__all__ = ["ITEM", "VALUE", "form", "lists"]
