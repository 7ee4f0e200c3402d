"""The CRD that Gatekeeper makes of a ConstraintTemplate, so that constraints are judged as the API server will."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blueprint.catalog.tables import table

GROUP = "constraints.gatekeeper.sh"


def constraint_crd(template: Mapping[str, Any]) -> dict[str, Any]:
    """The CRD for one template; raises KeyError or TypeError where the template names no kind.

    Source: github.com/open-policy-agent/frameworks/constraint pkg/client/crds/{schema,crds}.go, as in gatekeeper
    v3.23.1.
    """
    crd = template["spec"]["crd"]["spec"]
    kind = crd["names"]["kind"]
    points = {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
    scoped = {"type": "object", "properties": {"action": {"type": "string"}, "enforcementPoints": points}}
    spec = {
        "match": table("constraint_match"),
        "enforcementAction": {"type": "string", "default": "deny"},
        "scopedEnforcementActions": {"type": "array", "items": scoped},
    }
    if parameters := (crd.get("validation") or {}).get("openAPIV3Schema"):
        spec["parameters"] = parameters
    schema = {
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 63}}},
            "spec": {"type": "object", "properties": spec},
            "status": {"x-kubernetes-preserve-unknown-fields": True},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}.{GROUP}", "labels": {"gatekeeper.sh/constraint": "yes"}},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": kind.lower(), "singular": kind.lower()},
            "scope": "Cluster",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == "v1beta1",
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
                for version in ("v1beta1", "v1alpha1")
            ],
        },
    }
