"""CustomResourceDefinitions: their names, versions and schemas.

Source: k8s.io/apiextensions-apiserver@v0.35.4 pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

from blueprint.check import forms
from blueprint.check.native.expressions import expression
from blueprint.check.native.problems import Problems
from blueprint.check.native.structural import faults
from blueprint.check.shapes import Body, mapping, maps, text

_MOST = 20
"""More faults of one schema than this tell nobody more."""
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")


def definition(problems: Problems, body: Body) -> None:
    """NAT606: versions of a CustomResourceDefinition and their schemas."""
    spec = mapping(body.get("spec"))
    if spec.get("preserveUnknownFields") is True:
        message = (
            "preserveUnknownFields must be false; a part of a schema may have x-kubernetes-preserve-unknown-fields"
        )
        problems.add("NAT606", "spec.preserveUnknownFields", message)
    versions = maps(spec.get("versions"))
    for index, version in enumerate(versions):
        if not isinstance(mapping(version.get("schema")).get("openAPIV3Schema"), dict):
            path = f"spec.versions[{index}].schema"
            problems.add("NAT606", path, "a version needs a schema with openAPIV3Schema")
            continue
        _version(problems, version, f"spec.versions[{index}]")
    _names(problems, spec)
    for name, times in Counter(text(version.get("name")) for version in versions).items():
        if name and times > 1:
            problems.add("NAT606", "spec.versions", f"version {name} is given twice")
    stored = sum(version.get("storage") is True for version in versions)
    if versions and stored != 1:
        problems.add("NAT606", "spec.versions", f"{stored} versions are stored; it must be one")


def _version(problems: Problems, version: Body, at: str) -> None:
    schema, here = mapping(mapping(version["schema"]).get("openAPIV3Schema")), f"{at}.schema.openAPIV3Schema"
    status = mapping(version.get("subresources")).get("status") is not None
    found = list(islice(faults(schema, here, status=status), _MOST))
    for fault in found:
        problems.add("NAT606", fault.path, fault.message, fault.fix)
    if not found:
        _rules(problems, schema, here)
    for index, column in enumerate(maps(version.get("additionalPrinterColumns"))):
        where = f"{at}.additionalPrinterColumns[{index}]"
        problems.choice("NAT606", f"{where}.type", column.get("type"), _COLUMN_TYPES)
        if column.get("jsonPath") == "":
            problems.add("NAT606", f"{where}.jsonPath", "the path is empty")


def _rules(problems: Problems, schema: Body, at: str) -> None:
    """The validation rules of a schema, as far as they can be read without its types."""
    for index, rule in enumerate(maps(schema.get("x-kubernetes-validations"))):
        where = f"{at}.x-kubernetes-validations[{index}].rule"
        expression(problems, "NAT606", where, rule.get("rule"), ("self", "oldSelf"))
    for name, part in mapping(schema.get("properties")).items():
        if isinstance(part, dict):
            _rules(problems, part, f"{at}.properties.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            _rules(problems, schema[name], f"{at}.{name}")


def _names(problems: Problems, spec: Body) -> None:
    group = text(spec.get("group"))
    if group and (problem := forms.subdomain(group)):
        problems.add("NAT606", "spec.group", f"group {group!r} {problem}")
    elif group and "." not in group:
        problems.add("NAT606", "spec.group", f"group {group!r} must be a domain with a dot in it")
    problems.choice("NAT606", "spec.scope", spec.get("scope"), ("Cluster", "Namespaced"))
    names = mapping(spec.get("names"))
    for name in ("plural", "singular"):
        written = text(names.get(name))
        if written and (problem := forms.label_1035(written)):
            problems.add("NAT606", f"spec.names.{name}", f"{name} {written!r} {problem}")
    for name in ("kind", "listKind"):
        written = text(names.get(name))
        if written and (problem := forms.label_1035(written.lower())):
            problems.add("NAT606", f"spec.names.{name}", f"{name} {written!r} {problem}")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        problems.add("NAT606", "spec.names.listKind", "kind and listKind must differ")
