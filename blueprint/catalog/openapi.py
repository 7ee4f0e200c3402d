"""From the OpenAPI v3 documents of a Kubernetes release to what the pack holds about its built-in kinds.

An API server decodes a built-in kind into Go structs: unknown fields and wrong Go types are refused, `required` is
mostly kept by hand-written validation, `status` of kinds with that subresource is decoded and then dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blueprint.catalog.crds import INT64, ITEM, VALUE, Path, Record, Schema
from blueprint.catalog.sharing import children, name_pointer, rebuilt

_INT32 = {"minimum": -(2**31), "maximum": 2**31 - 1}
_PREFIX = "#/components/schemas/"

# k8s.io/apimachinery@v0.35.4 pkg/api/resource/quantity.go UnmarshalJSON and parseQuantityString, suffix.go: spaces
# around are cut (from the JSON text, in which a tab or line break is an escape), a sign or a suffix alone is zero, and
# any JSON number will do.
_EXPONENT = "[eE][+-]?[0-9]+"
_BARE = f"(?:[numkMGTPE]|[KMGT]i|{_EXPONENT})"  # `Pi` and `Ei` want a digit
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_QUANTITY = rf"^ *(?:[+-]?{_NUMBER}(?:[numkMGTPE]|[KMGTPE]i|{_EXPONENT})?|[+-]\.?{_BARE}?|\.?{_BARE}|\.) *$"

# Go types with a decoder of their own; the document describes them loosely.
_SPECIAL: Mapping[str, Schema] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"], "pattern": _QUANTITY},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["integer", "string"], **_INT32},
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "rfc3339"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": {"type": "string", "format": "rfc3339"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": {"type": "object"},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": {},
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": {},
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": {},
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": {},
}


def records(document: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[Record]:
    """One pack record for each kind that a group version lets clients create and list; `table` is `data/core.yaml`."""
    paths = document["paths"]
    optional = {name: set(row["fields"]) for name, row in table["optional"].items()}
    for path, verbs in paths.items():
        gvk = verbs.get("post", {}).get("x-kubernetes-group-version-kind")
        plural = path.rpartition("/")[2]
        if not gvk or f"{path}/{{name}}" not in paths:
            continue
        api_version = f"{gvk['group']}/{gvk['version']}" if gvk["group"] else gvk["version"]
        label = f"{api_version} {gvk['kind']}"
        status = f"{path}/{{name}}/status" in paths
        schema = _Closing(document["components"]["schemas"], optional).schema(_definition(document, gvk), status)
        yield {
            "apiVersion": api_version,
            "kind": gvk["kind"],
            "plural": plural,
            "scope": "Namespaced" if "/{namespace}/" in path else "Cluster",
            "served": True,
            "storage": label not in table["not_storage"],
            "deprecated": label in table["deprecated"],
            "deprecation": table["deprecated"].get(label, ""),
            "core": True,
            "status": status,
            "scale": "spec.replicas" if f"{path}/{{name}}/scale" in paths else "",
            "schema": schema,
            "defaults": {},
            **_lists(document, gvk),
            "rules": [],
            "casts": [],
            "immutable": [
                [field.split("."), row["source"], row.get("unless", ""), row.get("defaults", {}).get(field)]
                for row in table["immutable"]
                if row["kind"] == label
                for field in row["paths"]
            ],
        }


def object_meta(document: Mapping[str, Any]) -> Schema:
    """The closed schema of `metadata`, with nothing outside itself."""
    name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    closing = _Closing(document["components"]["schemas"], {})
    return _inlined(closing.use(name), closing.defs)


def _inlined(schema: Schema, defs: Mapping[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _inlined(defs[schema["$ref"].removeprefix("#/$defs/")], defs)
    return rebuilt(schema, [(word, name, _inlined(child, defs)) for word, name, child in children(schema)])


def _definition(document: Mapping[str, Any], gvk: Mapping[str, str]) -> str:
    for name, schema in document["components"]["schemas"].items():
        if gvk in schema.get("x-kubernetes-group-version-kind", ()) and "metadata" in schema.get("properties", {}):
            return str(name)
    raise LookupError(f"no definition of {gvk}")


def _reference(schema: Mapping[str, Any]) -> str | None:
    """The definition that a field names; the document wraps it in `allOf` to give it a description."""
    for part in (schema, *schema.get("allOf", ())):
        if "$ref" in part:
            return str(part["$ref"].removeprefix(_PREFIX))
    return None


def short(name: str) -> str:
    """`io.k8s.api.core.v1.Pod` is `core.v1.Pod`; definitions of other modules keep their last two parts."""
    return name.removeprefix("io.k8s.api.") if name.startswith("io.k8s.api.") else ".".join(name.split(".")[-2:])


class _Closing:
    """Closes the definitions that one kind reaches; recursion stays, as references."""

    def __init__(self, schemas: Mapping[str, Any], optional: Mapping[str, set[str]]) -> None:
        self.schemas = schemas
        self.optional = optional
        self.defs: Schema = {}

    def schema(self, root: str, status: bool) -> Schema:
        self.use(root)
        body: Schema = self.defs.pop(short(root))
        if status and "status" in body["properties"]:
            body["properties"]["status"] = _types_only(_inlined(body["properties"]["status"], self.defs))
        used = _reached(body, self.defs)
        return body | ({"$defs": {name: self.defs[name] for name in sorted(used)}} if used else {})

    def use(self, name: str) -> Schema:
        if name in _SPECIAL and len(str(_SPECIAL[name])) < 80:
            return dict(_SPECIAL[name])
        key = short(name)
        if key not in self.defs:
            self.defs[key] = {}
            self.defs[key] = dict(_SPECIAL[name]) if name in _SPECIAL else self.close(self.schemas[name], key)
        return {"$ref": f"#/$defs/{name_pointer(key)}"}

    def close(self, schema: Mapping[str, Any], key: str = "") -> Schema:
        if reference := _reference(schema):
            return self.use(reference)
        if schema.get("x-kubernetes-preserve-unknown-fields") or "type" not in schema:
            return {}
        out: Schema = {"type": schema["type"]}
        if out["type"] == "integer":
            out |= _INT32 if schema.get("format") == "int32" else INT64
        if schema.get("format") == "byte":
            out["format"] = "base64"
        if "items" in schema:
            out["items"] = self.close(schema["items"])
        if out["type"] == "object":
            additional = schema.get("additionalProperties")
            out["additionalProperties"] = self.close(additional) if isinstance(additional, dict) else False
            if "properties" in schema:
                out["properties"] = {name: self.close(child) for name, child in schema["properties"].items()}
        required = [name for name in schema.get("required", ()) if name not in self.optional.get(key, ())]
        if required:
            out["required"] = required
        return out


def _types_only(schema: Schema) -> Schema:
    """What decoding asks of a `status`: nothing is required."""
    kept = {word: value for word, value in schema.items() if word != "required"}
    return rebuilt(kept, [(word, name, _types_only(child)) for word, name, child in children(schema)])


def _reached(schema: Schema, defs: Schema, seen: frozenset[str] = frozenset()) -> frozenset[str]:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return seen if name in seen else _reached(defs[name], defs, seen | {name})
    for _, _, child in children(schema):
        seen = _reached(child, defs, seen)
    return seen


def _lists(document: Mapping[str, Any], gvk: Mapping[str, str]) -> Record:
    """The list-maps and sets of one kind; a definition inside itself is not entered again."""
    schemas = document["components"]["schemas"]
    out: Record = {"lists": [], "sets": []}

    def visit(schema: Mapping[str, Any], path: Path, above: tuple[str, ...]) -> None:
        reference = _reference(schema)
        if reference in above or path == ("status",):
            return
        if reference:
            schema, above = schemas[reference], (*above, reference)
        if schema.get("x-kubernetes-list-type") == "map":
            out["lists"].append([path, schema["x-kubernetes-list-map-keys"], _key_defaults(schema, schemas)])
        elif schema.get("x-kubernetes-list-type") == "set":
            out["sets"].append(path)
        for name, child in schema.get("properties", {}).items():
            visit(child, (*path, name), above)
        if isinstance(schema.get("items"), dict):
            visit(schema["items"], (*path, ITEM), above)
        if isinstance(schema.get("additionalProperties"), dict):
            visit(schema["additionalProperties"], (*path, VALUE), above)

    visit(schemas[_definition(document, gvk)], (), ())
    return out


def _key_defaults(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Record:
    item = schemas[reference] if (reference := _reference(schema["items"])) else schema["items"]
    fields = item.get("properties", {})
    return {key: d for key in schema["x-kubernetes-list-map-keys"] if (d := fields.get(key, {}).get("default"))}
