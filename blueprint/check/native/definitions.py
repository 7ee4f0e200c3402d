"""CustomResourceDefinitions: what needs no compiling of their schemas.

Source: k8s.io/apiextensions-apiserver@v0.35.4 pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from collections import Counter

from blueprint.check.native.problems import Problems
from blueprint.check.shapes import Body, mapping, maps, text


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
    for name, times in Counter(text(version.get("name")) for version in versions).items():
        if name and times > 1:
            problems.add("NAT606", "spec.versions", f"version {name} is given twice")
    stored = sum(version.get("storage") is True for version in versions)
    if versions and stored != 1:
        problems.add("NAT606", "spec.versions", f"{stored} versions are stored; it must be one")
